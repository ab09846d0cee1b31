//! Reading typed values out of the merged settings.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use config::{Value, ValueKind};

use super::SettingsError;
use super::environment::{ENV_PREFIX, env_name};
use super::layers::{Table, read_text};

/// One section of the settings, such as `[amqp]`, being read.
pub(super) struct Section<'a> {
    path: String,
    values: Option<&'a Table>,
    fallback: Option<&'a Table>,
    asked: &'a RefCell<BTreeSet<String>>,
}

/// A text that came straight out of the settings or out of a file that they name.
struct Text {
    value: String,
    place: String,
}

impl<'a> Section<'a> {
    /// The section of that name; `asked` collects the settings that are asked for.
    pub(super) fn new(root: &'a Table, name: &str, asked: &'a RefCell<BTreeSet<String>>) -> Self {
        Self {
            path: name.to_owned(),
            values: root.get(name).and_then(as_table),
            fallback: None,
            asked,
        }
    }

    /// The same with defaults for what it leaves out.
    pub(super) fn with_fallback(
        root: &'a Table,
        name: &str,
        fallback: &'a Table,
        asked: &'a RefCell<BTreeSet<String>>,
    ) -> Self {
        Self {
            fallback: Some(fallback),
            ..Self::new(root, name, asked)
        }
    }

    /// A table inside this section, with defaults for what it leaves out.
    pub(super) fn inner(&self, name: &str, fallback: Option<&'a Table>) -> Section<'a> {
        Section {
            path: format!("{}.{name}", self.path),
            values: self.table(name),
            fallback,
            asked: self.asked,
        }
    }

    /// The values of a table inside this section.
    pub(super) fn table(&self, name: &str) -> Option<&'a Table> {
        self.values
            .and_then(|values| values.get(name))
            .and_then(as_table)
    }

    /// Names of the tables inside this section, sorted.
    pub(super) fn table_names(&self) -> BTreeSet<&'a str> {
        let all = self.values.into_iter().flatten();
        all.filter(|(_, value)| as_table(value).is_some())
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// Whether this section itself has the key, rather than its defaults.
    pub(super) fn has_own(&self, key: &str) -> bool {
        self.values.is_some_and(|values| values.contains_key(key))
    }

    /// A whole number in a range.
    pub(super) fn number(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, SettingsError> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let value = self.required(key, &expected)?;
        number_in(value)
            .filter(|number| range.contains(number))
            .ok_or_else(|| self.invalid(key, value, &expected))
    }

    /// A whole number that fits the type; the range must.
    pub(super) fn count<T: TryFrom<u64>>(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<T, SettingsError> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let number = self.number(key, range)?;
        T::try_from(number).map_err(|_| self.error(key, &number.to_string(), &expected))
    }

    /// A number of milliseconds.
    pub(super) fn millis(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Duration, SettingsError> {
        self.number(key, range).map(Duration::from_millis)
    }

    /// A number of seconds.
    pub(super) fn seconds(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Duration, SettingsError> {
        self.number(key, range).map(Duration::from_secs)
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, key: &str) -> Result<bool, SettingsError> {
        let expected = "true or false";
        let value = self.required(key, expected)?;
        match &value.kind {
            ValueKind::Boolean(flag) => Some(*flag),
            ValueKind::String(text) => text.trim().parse().ok(),
            _ => None,
        }
        .ok_or_else(|| self.invalid(key, value, expected))
    }

    /// One of a closed list of words.
    pub(super) fn choice<T: Copy>(
        &self,
        key: &str,
        choices: &[(&str, T)],
    ) -> Result<T, SettingsError> {
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        let expected = format!("one of {}", words.join(", "));
        let value = self.required(key, &expected)?;
        let found = text_in(value).and_then(|text| choices.iter().find(|(word, _)| *word == text));
        found
            .map(|(_, choice)| *choice)
            .ok_or_else(|| self.invalid(key, value, &expected))
    }

    /// A text that must be there, read by `parse`, whose error says what is expected.
    pub(super) fn parsed<T, E: Display>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, SettingsError> {
        self.parsed_if_given(key, parse)?
            .ok_or_else(|| self.error(key, "nothing", "a value"))
    }

    /// A text that may be absent, read by `parse`, whose error says what is expected.
    pub(super) fn parsed_if_given<T, E: Display>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, SettingsError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let text = text_in(value).ok_or_else(|| self.invalid(key, value, "a text"))?;
        match parse(text) {
            Ok(parsed) => Ok(Some(parsed)),
            Err(expected) => Err(self.invalid(key, value, &expected.to_string())),
        }
    }

    /// A list of words, or from the environment a text with commas.
    pub(super) fn list<T>(
        &self,
        key: &str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, SettingsError> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let words: Option<Vec<&str>> = match &value.kind {
            ValueKind::Array(items) => items.iter().map(text_in).collect(),
            ValueKind::String(text) => Some(text.split(',').map(str::trim).collect()),
            _ => None,
        };
        words
            .and_then(|words| words.into_iter().map(&parse).collect())
            .ok_or_else(|| self.invalid(key, value, expected))
    }

    /// A secret text, given as `key` or in the file named by `key_file`, read by `parse`. Errors
    /// never show it.
    pub(super) fn secret<T, E: Display>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, SettingsError> {
        let Some(text) = self.secret_text(key)? else {
            return Ok(None);
        };
        parse(&text.value)
            .map(Some)
            .map_err(|expected| SettingsError::Invalid {
                place: text.place,
                problem: "found a value that cannot be used (not shown)".to_owned(),
                expected: expected.to_string(),
            })
    }

    fn secret_text(&self, key: &str) -> Result<Option<Text>, SettingsError> {
        let file_key = format!("{key}_file");
        let (direct, file) = (self.get(key), self.get(&file_key));
        match (direct, file) {
            (Some(direct), Some(_)) if direct.origin().is_some() => Err(SettingsError::Both {
                value: self.place(key, direct.origin()),
                file: self.place(&file_key, file.and_then(Value::origin)),
            }),
            (_, Some(file)) => self.secret_in_file(&file_key, file).map(Some),
            (Some(direct), None) => {
                let place = self.place(key, direct.origin());
                let value = text_in(direct).map(str::to_owned);
                let value = value.ok_or_else(|| self.error(key, "no text", "a text"))?;
                Ok(Some(Text { value, place }))
            }
            (None, None) => Ok(None),
        }
    }

    fn secret_in_file(&self, key: &str, named: &Value) -> Result<Text, SettingsError> {
        let place = self.place(key, named.origin());
        let path = text_in(named).ok_or_else(|| self.error(key, "no text", "a file's name"))?;
        let text = read_text(Path::new(path)).map_err(|error| SettingsError::Unreadable {
            place: place.clone(),
            path: path.to_owned(),
            why: error.to_string(),
        })?;
        let value = text.strip_suffix('\n').unwrap_or(&text);
        let value = value.strip_suffix('\r').unwrap_or(value).to_owned();
        if value.is_empty() {
            return Err(self.error(key, "an empty file", "a file with the value"));
        }
        let place = format!("{place}, the content of {path}");
        Ok(Text { value, place })
    }

    /// An error about a key of this section, for checks that only the section can make.
    pub(super) fn error(&self, key: &str, found: &str, expected: &str) -> SettingsError {
        let origin = self.get(key).and_then(Value::origin);
        SettingsError::Invalid {
            place: self.place(key, origin),
            problem: format!("found {found}"),
            expected: expected.to_owned(),
        }
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.asked
            .borrow_mut()
            .insert(format!("{}.{key}", self.path));
        let own = self.values.and_then(|values| values.get(key));
        own.or_else(|| self.fallback.and_then(|values| values.get(key)))
    }

    fn required(&self, key: &str, expected: &str) -> Result<&'a Value, SettingsError> {
        self.get(key)
            .ok_or_else(|| self.error(key, "nothing", expected))
    }

    fn invalid(&self, key: &str, value: &Value, expected: &str) -> SettingsError {
        self.error(key, &shown(value), expected)
    }

    /// The setting's name in both its spellings, and the file it came from if it did.
    fn place(&self, key: &str, origin: Option<&str>) -> String {
        let path = format!("{}.{key}", self.path);
        let env = env_name(&path);
        match origin {
            Some(name) if name.starts_with(ENV_PREFIX) => format!("{name} (setting {path})"),
            Some(file) => format!("{path} in {file} (environment: {env})"),
            None => format!("{path} (environment: {env})"),
        }
    }
}

fn as_table(value: &Value) -> Option<&Table> {
    match &value.kind {
        ValueKind::Table(table) => Some(table),
        _ => None,
    }
}

fn text_in(value: &Value) -> Option<&str> {
    match &value.kind {
        ValueKind::String(text) => Some(text),
        _ => None,
    }
}

fn number_in(value: &Value) -> Option<u64> {
    match &value.kind {
        ValueKind::I64(number) => u64::try_from(*number).ok(),
        ValueKind::U64(number) => Some(*number),
        ValueKind::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A value for an error text. What might be a URL or a password put into the wrong setting is not
/// repeated.
fn shown(value: &Value) -> String {
    match &value.kind {
        ValueKind::Boolean(flag) => flag.to_string(),
        ValueKind::I64(number) => number.to_string(),
        ValueKind::U64(number) => number.to_string(),
        ValueKind::Float(number) => number.to_string(),
        ValueKind::String(text) if is_harmless(text) => format!("\"{text}\""),
        ValueKind::String(_) => "a text (not shown)".to_owned(),
        ValueKind::Table(_) => "a table".to_owned(),
        ValueKind::Array(_) => "a list".to_owned(),
        _ => "something else".to_owned(),
    }
}

/// Short words, numbers with their units, and addresses such as `:9464`, where a password behind a
/// colon would not be a number.
fn is_harmless(text: &str) -> bool {
    let behind_colon = text.rsplit_once(':').map_or("", |(_, port)| port);
    text.len() <= 20
        && behind_colon.bytes().all(|byte| byte.is_ascii_digit())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-+._, %:[]".contains(c))
}
