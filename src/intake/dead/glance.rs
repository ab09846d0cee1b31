//! What can be made out of a message that the decoder cannot read: whose it may be.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::domain::Field;

/// The longest id or account that is made out, in characters.
const LONGEST: usize = 128;

/// What is shown for a value that may hold anything, such as recipients.
const OBJECT: &str = "(object)";
const ARRAY: &str = "(array)";

/// The id and the account that a message seems to have: the first of each, as far as it can be
/// read, and whatever their types. For showing only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Glance {
    pub(super) id: Option<String>,
    pub(super) account: Option<String>,
}

impl Glance {
    pub(super) fn at(body: &[u8]) -> Self {
        let mut glance = Self::default();
        let mut reader = serde_json::Deserializer::from_slice(body);
        // What was seen before an error stays.
        let _ = glance.deserialize(&mut reader);
        glance
    }

    fn place(&mut self, name: &str) -> Option<&mut Option<String>> {
        match name {
            name if name == Field::Id.as_str() => Some(&mut self.id),
            name if name == Field::AccountId.as_str() => Some(&mut self.account),
            _ => None,
        }
    }
}

impl<'de> DeserializeSeed<'de> for &mut Glance {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Glance {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match self.place(&name) {
                Some(place) if place.is_none() => *place = text(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// A text as it is, a number or a truth value as it is written, and of what can hold more only what
/// it is.
fn text(value: &RawValue) -> Option<String> {
    let written = value.get();
    match written.as_bytes().first() {
        Some(b'{') => return Some(OBJECT.to_owned()),
        Some(b'[') => return Some(ARRAY.to_owned()),
        _ => {}
    }
    let mut reader = serde_json::Deserializer::from_str(written);
    let text = reader.deserialize_str(Text).ok();
    let text = text.unwrap_or_else(|| written.chars().take(LONGEST).collect());
    (text != "null").then_some(text)
}

struct Text;

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.chars().take(LONGEST).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The id and the account, `-` where there is none.
    fn glance(body: &str) -> [String; 2] {
        let glance = Glance::at(body.as_bytes());
        [glance.id, glance.account].map(|text| text.unwrap_or_else(|| "-".to_owned()))
    }

    #[test]
    fn id_and_account_are_made_out_of_what_is_no_job() {
        let both = glance(r#"{"id":"a b","account_id":"acme"}"#);
        assert_eq!(both, ["a b", "acme"]);
        assert_eq!(glance(r#"{"id":42}"#), ["42", "-"]);
        assert_eq!(glance(r#"{"id":null,"to":{"x":[1]}}"#), ["-", "-"]);
        assert_eq!(glance(r#"{"id":"1","id":"2"}"#), ["1", "-"]);
    }

    #[test]
    fn what_comes_before_a_mistake_counts() {
        assert_eq!(glance(r#"{"id":"j-1","account_id":"#), ["j-1", "-"]);
        assert_eq!(glance("hello"), ["-", "-"]);
        assert_eq!(glance("[1]"), ["-", "-"]);
    }

    #[test]
    fn long_values_are_cut() {
        let [id, _] = glance(&format!(r#"{{"id":"{}"}}"#, "ä".repeat(1000)));
        assert_eq!(id.chars().count(), LONGEST);
        let [id, _] = glance(&format!(r#"{{"id":{}}}"#, "1".repeat(1000)));
        assert_eq!(id.len(), LONGEST);
    }

    #[test]
    fn what_may_hold_recipients_is_not_shown() {
        let both = glance(r#"{"id": {"to":"+447700900123"},"account_id": ["+447700900123"]}"#);
        assert_eq!(both, ["(object)", "(array)"]);
        assert_eq!(glance(r#"{"id":true,"account_id":-1.5}"#), ["true", "-1.5"]);
    }
}
