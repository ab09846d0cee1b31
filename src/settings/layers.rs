//! The three layers of settings: defaults, a file, the environment.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::Path;

use config::{Config, ConfigError, File, FileFormat, Map, Source, Value};

use super::SettingsError;
use super::environment::{Override, read_environment};
use super::known::Known;

/// The defaults, which are also the documentation.
pub const DEFAULTS: &str = include_str!("../../config/default.toml");

/// A table of settings.
pub(super) type Table = Map<String, Value>;

/// One layer, with each value knowing where it came from.
#[derive(Debug, Clone)]
struct Layer(Table);

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Table, ConfigError> {
        Ok(self.0.clone())
    }
}

/// The defaults alone. Their values have no origin, by which they are told from given ones.
pub(super) fn defaults() -> Result<Table, SettingsError> {
    parse_toml("the built-in defaults", DEFAULTS, None)
}

/// All layers on top of each other.
pub(super) fn merged(
    file: Option<&Path>,
    environment: impl Iterator<Item = (OsString, OsString)>,
    known: &Known,
) -> Result<Table, SettingsError> {
    let mut builder = Config::builder().add_source(Layer(defaults()?));
    if let Some(path) = file {
        let table = read_toml(path, "--config or LANEKEEPER_CONFIG")?;
        known.check_file(&table, &path.display().to_string())?;
        builder = builder.add_source(Layer(table));
    }
    let mut layer = Table::new();
    for found in read_environment(environment, known)? {
        insert(&mut layer, &found.path, &found);
    }
    let merged = builder.add_source(Layer(layer)).build();
    let table = merged.and_then(|config| config.cache.into_table());
    table.map_err(|error| SettingsError::NotToml {
        path: "the merged settings".to_owned(),
        why: error.to_string(),
    })
}

/// The longest file of settings that is read, in bytes: room for hundreds of thousands of accounts.
const LONGEST: u64 = 64 * 1024 * 1024;

/// Reads a file whole, but not one that never ends, such as a device.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let mut file = std::fs::File::open(path)?.take(LONGEST);
    if file.read_to_string(&mut text)? as u64 == LONGEST {
        return Err(io::Error::other("it is longer than 64 MiB"));
    }
    Ok(text)
}

/// Reads a TOML file; `place` says what named it.
pub(super) fn read_toml(path: &Path, place: &str) -> Result<Table, SettingsError> {
    let shown = path.display().to_string();
    let text = read_text(path).map_err(|error| SettingsError::Unreadable {
        place: place.to_owned(),
        path: shown.clone(),
        why: error.to_string(),
    })?;
    parse_toml(&shown, &text, Some(&shown))
}

fn parse_toml(path: &str, text: &str, origin: Option<&String>) -> Result<Table, SettingsError> {
    let table = File::from_str(text, FileFormat::Toml)
        .collect()
        .map_err(|error| SettingsError::NotToml {
            path: path.to_owned(),
            why: without_snippet(&error),
        })?;
    Ok(with_origin(table, origin))
}

/// The parser's message without the lines that it quotes from the file: they may hold a password.
fn without_snippet(error: &ConfigError) -> String {
    let text = match error {
        ConfigError::FileParse { cause, .. } => cause.to_string(),
        _ => return "it cannot be read".to_owned(),
    };
    let quoted = |line: &str| {
        line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ')
            .starts_with('|')
    };
    let mut lines = text.lines();
    let position = lines.next().unwrap_or_default();
    let position = position.trim_start_matches("TOML parse error at ");
    let message = lines
        .skip_while(|line| !quoted(line))
        .find(|line| !quoted(line));
    match message {
        Some(message) => format!("{position}: {message}"),
        None => position.to_owned(),
    }
}

fn with_origin(table: Table, origin: Option<&String>) -> Table {
    table
        .into_iter()
        .map(|(key, value)| {
            let value = match value.kind {
                config::ValueKind::Table(inner) => Value::new(origin, with_origin(inner, origin)),
                kind => Value::new(origin, kind),
            };
            (key, value)
        })
        .collect()
}

fn insert(table: &mut Table, path: &[String], found: &Override) {
    match path {
        [] => {}
        [key] => {
            let value = Value::new(Some(&found.name), found.value.clone());
            table.insert(key.clone(), value);
        }
        [key, rest @ ..] => {
            let entry = table
                .entry(key.clone())
                .or_insert_with(|| Value::new(None, Table::new()));
            if let config::ValueKind::Table(inner) = &mut entry.kind {
                insert(inner, rest, found);
            }
        }
    }
}
