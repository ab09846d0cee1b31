//! A batch as one JSON array: made into lines, one for each item, so that what follows is the same.

use std::fmt;

use serde::Deserializer;
use serde::de::{Deserialize, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::api::body::broken_json;
use crate::api::error::{ApiError, ApiResult, Code};

/// The most items of an array. More are sent as lines, which are read as a stream.
pub(super) const MOST_ITEMS: usize = 1_000;

/// The largest array, in bytes: it is read as a whole.
pub(super) const MOST_BYTES: usize = 8 * 1024 * 1024;

/// Makes lines of an array. The item at place N, from 1, stands on line N.
///
/// # Errors
/// When it is no JSON array, or has too many items.
pub(super) fn lines(body: &[u8]) -> ApiResult<Vec<u8>> {
    let text = std::str::from_utf8(body).map_err(|error| {
        let place = error.valid_up_to();
        let message = format!("the body is not UTF-8 from byte {place} on");
        ApiError::new(Code::MalformedBody, message)
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Items(items) = serde_json::from_str(text).map_err(|error| broken_json(&error, ""))?;
    let mut lines = Vec::with_capacity(body.len());
    for item in items {
        // In JSON a raw line end stands between tokens only.
        let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let bytes = item.get().bytes();
        lines.extend(bytes.map(|byte| if is_break(&byte) { b' ' } else { byte }));
        lines.push(b'\n');
    }
    Ok(lines)
}

struct Items<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Few;
        impl<'de> Visitor<'de> for Few {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON array of messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = all.next_element()? {
                    if items.len() == MOST_ITEMS {
                        return Err(A::Error::custom(format!(
                            "expected at most {MOST_ITEMS} items; send more as application/x-ndjson"
                        )));
                    }
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        deserializer.deserialize_seq(Few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<String, (Code, String)> {
        let lines = lines(text.as_bytes()).map(|lines| String::from_utf8(lines).unwrap());
        lines.map_err(|error| (error.code(), error.message().to_owned()))
    }

    #[test]
    fn each_item_has_a_line_of_its_own() {
        let found = of("\u{feff}[{\n \"to\":\"a\",\r\n\"body\":\"x\\ny\"}, 7,\n\"s\"]\n").unwrap();
        assert_eq!(found, "{  \"to\":\"a\",  \"body\":\"x\\ny\"}\n7\n\"s\"\n");
        assert_eq!(of("[]"), Ok(String::new()));
    }

    #[test]
    fn too_many_items_and_anything_else_is_refused() {
        let items = |count| format!("[{}]", vec!["1"; count].join(","));
        assert!(of(&items(MOST_ITEMS)).is_ok());
        let (code, message) = of(&items(MOST_ITEMS + 1)).unwrap_err();
        assert_eq!(code, Code::ValidationError);
        assert!(
            message.contains("at most 1000 items; send more as"),
            "{message}"
        );
        for (text, code) in [
            ("{\"to\":\"+447700900123\"}", Code::ValidationError),
            ("[1", Code::MalformedBody),
            ("[1] 2", Code::MalformedBody),
            ("", Code::MalformedBody),
        ] {
            let error = of(text).unwrap_err();
            assert_eq!(error.0, code, "{text}");
            assert!(!error.1.contains("+447"), "{}", error.1);
        }
    }
}
