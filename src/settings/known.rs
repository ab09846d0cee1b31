//! Which names are settings, and which of them a wrong name was meant to be.

use std::collections::BTreeSet;

use config::ValueKind;

use super::SettingsError;
use super::environment::{ENV_PREFIX, env_name};
use super::layers::Table;

/// Every setting's path; carriers' settings under `carriers.default`. Filled by reading the
/// defaults, so that no second list can differ.
#[derive(Debug)]
pub(super) struct Known(BTreeSet<String>);

const OVERRIDE_KEYS: [&str; 2] = ["budget_per_second", "reserve_percent"];

impl Known {
    pub(super) fn new(paths: BTreeSet<String>) -> Self {
        Self(paths)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Refuses keys of a file that are no settings.
    pub(super) fn check_file(&self, table: &Table, file: &str) -> Result<(), SettingsError> {
        for path in leaves(table) {
            if self.has(&path) || is_override(&path) {
                continue;
            }
            let shown = path.join(".");
            return Err(SettingsError::Unknown {
                nearest: self.nearest(&shown, &path),
                name: format!("{shown} in {file}"),
            });
        }
        Ok(())
    }

    /// Refuses an environment variable that is no setting.
    pub(super) fn check_env(&self, name: &str, path: &[String]) -> Result<(), SettingsError> {
        if path.starts_with(&["accounts".to_owned(), "overrides".to_owned()]) {
            let name = name.to_owned();
            return Err(SettingsError::AccountInEnvironment { name });
        }
        let spelled = env_name(&path.join("."));
        if self.has(path) && name.replace('-', "_") == spelled {
            return Ok(());
        }
        Err(SettingsError::Unknown {
            name: name.to_owned(),
            nearest: self.nearest(&path.join("."), path).as_deref().map(env_name),
        })
    }

    /// Refuses `LANEKEEPER_AMQP_URL`, which would be silently without effect. Other names with one
    /// underscore are none of ours: container platforms make such ones for their services.
    pub(super) fn check_near_miss(&self, name: &str) -> Result<(), SettingsError> {
        if name.starts_with(ENV_PREFIX) || !name.starts_with("LANEKEEPER_") {
            return Ok(());
        }
        let single = |path: &&str| env_name(path).replace("__", "_") == name;
        match self.paths().find(single) {
            None => Ok(()),
            Some(path) => Err(SettingsError::Unknown {
                name: name.to_owned(),
                nearest: Some(env_name(path)),
            }),
        }
    }

    fn has(&self, path: &[String]) -> bool {
        match path {
            [section, _, key] if section == "carriers" => {
                self.0.contains(&format!("carriers.default.{key}"))
            }
            _ => self.0.contains(&path.join(".")),
        }
    }

    fn nearest(&self, wrong: &str, path: &[String]) -> Option<String> {
        let carrier = match path {
            [section, carrier, ..] if section.starts_with("carrier") => carrier.as_str(),
            _ => "default",
        };
        let here = |path: &str| match path.strip_prefix("carriers.default.") {
            Some(key) => format!("carriers.{carrier}.{key}"),
            None => path.to_owned(),
        };
        nearest(wrong, self.paths().map(here))
    }
}

/// The name that a wrong one was most likely meant to be, if any is like it: one that it begins, or
/// one of which it has at least two thirds right.
pub(super) fn nearest(wrong: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let begun = |name: &str| !wrong.is_empty() && name.starts_with(wrong);
    let distance = |name: &str| strsim::damerau_levenshtein(name, wrong);
    names
        .min_by_key(|name| (!begun(name), distance(name)))
        .filter(|name| begun(name) || distance(name) * 3 <= name.len())
}

fn is_override(path: &[String]) -> bool {
    matches!(path, [section, table, _, key]
        if section == "accounts" && table == "overrides" && OVERRIDE_KEYS.contains(&key.as_str()))
}

/// The paths of all values in a table, sorted, so that the same file gives the same error.
fn leaves(table: &Table) -> BTreeSet<Vec<String>> {
    let mut paths = BTreeSet::new();
    for (key, value) in table {
        match &value.kind {
            ValueKind::Table(inner) => paths.extend(leaves(inner).into_iter().map(|rest| {
                let mut path = vec![key.clone()];
                path.extend(rest);
                path
            })),
            _ => {
                paths.insert(vec![key.clone()]);
            }
        }
    }
    paths
}
