//! A message's known fields, each still as its JSON text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::Deserializer;
use serde::de::{Deserialize, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::MAX_PAYLOAD;
use crate::domain::{Field, Hint, Lane, LaneHints, Origin, Priority, TRAFFIC_LANE};

/// The known fields of a message, each still as its JSON text.
pub(super) struct Fields<'a> {
    values: [Option<&'a RawValue>; Field::ALL.len()],
    /// A field that identifies the job and was given twice.
    ambiguous: Option<Field>,
    /// Any other field that was given twice: readers may differ in which one they take.
    pub(super) repeated: Option<Field>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(payload: &'a [u8]) -> Result<Self, String> {
        if payload.len() > MAX_PAYLOAD {
            return Err(format!(
                "the message has {} bytes; at most {MAX_PAYLOAD} are read",
                payload.len()
            ));
        }
        let text = std::str::from_utf8(payload)
            .map_err(|error| format!("not UTF-8 from byte {} on", error.valid_up_to()))?;
        let fields: Self = serde_json::from_str(text).map_err(|error| {
            format!(
                "not a JSON object: {} at line {} column {}",
                category(&error),
                error.line(),
                error.column()
            )
        })?;
        match fields.ambiguous {
            Some(field) => Err(format!("`{}` is given twice", field.as_str())),
            None => Ok(fields),
        }
    }

    pub(super) fn get(&self, field: Field) -> Value<'a> {
        self.values[field as usize].map_or(Value::Absent, Value::of)
    }

    pub(super) fn lane_hints(&self) -> LaneHints {
        LaneHints {
            traffic_lane: match self.get(Field::Metadata) {
                Value::Object(object) => traffic_lane(object),
                _ => Hint::Absent,
            },
            priority: hint(self.get(Field::Priority), Priority::parse),
            origin: hint(self.get(Field::Origin), Origin::parse),
        }
    }
}

/// What kind of error it is, without the text that it was found in.
fn category(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        serde_json::error::Category::Eof => "it ends too early",
        serde_json::error::Category::Syntax => "a syntax error",
        serde_json::error::Category::Data => "another kind of value",
        serde_json::error::Category::Io => "unreadable",
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

pub(super) struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Fields {
            values: [None; Field::ALL.len()],
            ambiguous: None,
            repeated: None,
        };
        while let Some(Key(field)) = map.next_key()? {
            let Some(field) = field else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let before = fields.values[field as usize].replace(map.next_value()?);
            let identifies = matches!(
                field,
                Field::Id | Field::AccountId | Field::Channel | Field::To
            );
            if before.is_some() {
                let twice = if identifies {
                    &mut fields.ambiguous
                } else {
                    &mut fields.repeated
                };
                twice.get_or_insert(field);
            }
        }
        Ok(fields)
    }
}

/// The name of a field; `None` for one that is not known here.
struct Key(Option<Field>);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field's name")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Key, E> {
                Ok(Key(Field::parse(name)))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// One field's value, by what kind it is.
pub(super) enum Value<'a> {
    Absent,
    Text(Cow<'a, str>),
    Object(&'a str),
    /// A string that holds a NUL or half a surrogate pair, which no database can store.
    BrokenText,
    Other,
}

impl<'a> Value<'a> {
    fn of(raw: &'a RawValue) -> Self {
        let json = raw.get();
        match json.as_bytes().first() {
            Some(b'n') => Self::Absent,
            Some(b'{') => Self::Object(json),
            Some(b'"') => Self::text(json),
            _ => Self::Other,
        }
    }

    fn text(json: &'a str) -> Self {
        if memchr::memchr(b'\\', json.as_bytes()).is_none() {
            return Self::Text(Cow::Borrowed(&json[1..json.len() - 1]));
        }
        match serde_json::from_str::<String>(json) {
            Ok(text) if !text.contains('\0') => Self::Text(Cow::Owned(text)),
            _ => Self::BrokenText,
        }
    }
}

fn hint<T>(value: Value<'_>, parse: impl Fn(&str) -> Option<T>) -> Hint<T> {
    match value {
        Value::Absent => Hint::Absent,
        Value::Text(text) => parse(&text).map_or(Hint::Unrecognised, Hint::Known),
        Value::Object(_) | Value::BrokenText | Value::Other => Hint::Unrecognised,
    }
}

/// `traffic_lane` in a job's metadata, which may hold anything else besides.
fn traffic_lane(metadata: &str) -> Hint<Lane> {
    let bytes = metadata.as_bytes();
    let may_hold_it = memchr::memmem::find(bytes, TRAFFIC_LANE.as_bytes()).is_some();
    let may_spell_it_in_escapes = memchr::memchr(b'\\', bytes).is_some();
    if !may_hold_it && !may_spell_it_in_escapes {
        return Hint::Absent;
    }
    let entries: HashMap<String, &RawValue> = serde_json::from_str(metadata).unwrap_or_default();
    let value = entries
        .get(TRAFFIC_LANE)
        .map_or(Value::Absent, |raw| Value::of(raw));
    hint(value, Lane::parse)
}

/// Whether no text in this JSON, however deep, holds a NUL or half a surrogate pair. Both can only
/// be written as `\u` escapes, so that almost every text is known sound without a second reading.
pub(super) fn is_sound(json: &str) -> bool {
    if memchr::memmem::find(json.as_bytes(), b"\\u").is_none() {
        return true;
    }
    serde_json::from_str(json).is_ok_and(|value| !holds_nul(&value))
}

fn holds_nul(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::String(text) => text.contains('\0'),
        serde_json::Value::Array(items) => items.iter().any(holds_nul),
        serde_json::Value::Object(entries) => entries
            .iter()
            .any(|(name, value)| name.contains('\0') || holds_nul(value)),
        _ => false,
    }
}
