//! What can be wrong with the settings.

use thiserror::Error;

/// A setting that cannot be used. Each text names the setting, says what is wrong and what would be
/// right; none holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// A value outside what the setting takes.
    #[error("{place}: {problem}; expected {expected}")]
    Invalid {
        /// The setting, and where its value came from.
        place: String,
        /// What was found.
        problem: String,
        /// What would have been right.
        expected: String,
    },
    /// A name that is no setting.
    #[error("{name} is no setting; {}", advice(.nearest.as_deref()))]
    Unknown {
        /// The name, and where it was found.
        name: String,
        /// A name that exists and is much like it.
        nearest: Option<String>,
    },
    /// A per-account override in the environment.
    #[error(
        "{name}: budgets of single accounts are not read from the environment; \
         write them as [accounts.overrides.<id>] in a file named by --config, or in accounts.file"
    )]
    AccountInEnvironment {
        /// The environment variable.
        name: String,
    },
    /// An environment variable without a value.
    #[error("{name} is set but empty; give it a value, or leave it out for the default")]
    Empty {
        /// The environment variable.
        name: String,
    },
    /// An environment variable that is no text.
    #[error("the value of {name} is not UTF-8")]
    NotText {
        /// The environment variable.
        name: String,
    },
    /// A value and the file to read it from, both given.
    #[error("{value} and {file} are both given; keep one of them")]
    Both {
        /// Where the value is given.
        value: String,
        /// Where its file is given.
        file: String,
    },
    /// A file that cannot be read.
    #[error("{place}: cannot read {path}: {why}")]
    Unreadable {
        /// What named the file.
        place: String,
        /// The file.
        path: String,
        /// Why not.
        why: String,
    },
    /// A file that is not TOML.
    #[error("{path} is not TOML: {why}")]
    NotToml {
        /// The file.
        path: String,
        /// Where and why, without the text of the file.
        why: String,
    },
}

fn advice(nearest: Option<&str>) -> String {
    match nearest {
        Some(nearest) => format!("the nearest one is {nearest}"),
        None => "config/default.toml in the source lists all of them".to_owned(),
    }
}
