//! Settings from environment variables.
//!
//! The `config` crate's own environment source lower-cases and splits names by itself; doing it here
//! keeps underscores inside keys, dashes in carrier names and an error for each name that is none.

use std::ffi::OsString;

use super::SettingsError;
use super::known::Known;

/// The start of each setting's environment variable.
pub const ENV_PREFIX: &str = "LANEKEEPER__";

/// The environment variable that names the settings file.
pub const ENV_CONFIG: &str = "LANEKEEPER_CONFIG";

/// One setting given by an environment variable.
#[derive(Debug)]
pub(super) struct Override {
    pub(super) name: String,
    pub(super) path: Vec<String>,
    pub(super) value: String,
}

/// The environment variable of a setting such as `lanes.budget_per_second`.
#[must_use]
pub fn env_name(path: &str) -> String {
    let spelled = path.to_uppercase().replace('.', "__").replace('-', "_");
    format!("{ENV_PREFIX}{spelled}")
}

/// The settings among the environment variables.
pub(super) fn read_environment(
    environment: impl Iterator<Item = (OsString, OsString)>,
    known: &Known,
) -> Result<Vec<Override>, SettingsError> {
    let mut found = Vec::new();
    for (name, value) in environment {
        let Some(name) = name.to_str() else { continue };
        known.check_near_miss(name)?;
        let Some(rest) = name.strip_prefix(ENV_PREFIX) else {
            continue;
        };
        let path = path_of(rest);
        known.check_env(name, &path)?;
        let name = name.to_owned();
        let Ok(value) = value.into_string() else {
            return Err(SettingsError::NotText { name });
        };
        if value.trim().is_empty() {
            return Err(SettingsError::Empty { name });
        }
        found.push(Override { name, path, value });
    }
    Ok(found)
}

/// `LANES__BUDGET_PER_SECOND` → `lanes`, `budget_per_second`. Carrier names have no underscores, so
/// one that stands there was a dash.
fn path_of(rest: &str) -> Vec<String> {
    let mut path: Vec<String> = rest.split("__").map(str::to_lowercase).collect();
    if let [section, carrier, _] = path.as_mut_slice()
        && section == "carriers"
    {
        *carrier = carrier.replace('_', "-");
    }
    path
}
