//! What serde says of a value that is wrong, in words for clients and without the value.

/// What is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The field that is missing, unknown or there twice, where it is that.
    pub(super) name: Option<String>,
    /// What would have been right.
    pub(super) expected: String,
}

/// The longest name that is told back, in characters.
const LONGEST_NAME: usize = 64;

/// Reads one of serde's texts. What was found stands in it, too, and is not passed on.
pub(super) fn wrong(text: &str) -> Wrong {
    let about = |kind: &str| {
        let rest = text.strip_prefix(kind)?.strip_prefix(" field `")?;
        // The name is the client's own, and may itself hold what stands around it.
        let end = rest.rfind("`, expected ").or_else(|| rest.rfind('`'))?;
        Some(rest[..end].chars().take(LONGEST_NAME).collect::<String>())
    };
    let among = |what: &str| match text.rsplit_once(", expected ") {
        Some((_, known)) => format!("{what}; expected {known}"),
        None => what.to_owned(),
    };
    if let name @ Some(_) = about("missing") {
        let expected = "expected a value".to_owned();
        return Wrong { name, expected };
    }
    if let name @ Some(_) = about("duplicate") {
        let expected = "expected once".to_owned();
        return Wrong { name, expected };
    }
    if let name @ Some(_) = about("unknown") {
        let expected = among("there is none of that name");
        return Wrong { name, expected };
    }
    Wrong {
        name: None,
        expected: format!("expected {}", kind_of(text)),
    }
}

/// The kind of value that was expected.
fn kind_of(text: &str) -> &str {
    let kind = text.rsplit_once("expected ").map(|(_, kind)| kind);
    match kind.unwrap_or(text) {
        "u8" | "u16" | "u32" | "u64" | "usize" if is_too_large(text) => "a smaller number",
        // The last two are of values in query strings, which are parsed from texts.
        "u8"
        | "u16"
        | "u32"
        | "u64"
        | "usize"
        | "invalid digit found in string"
        | "cannot parse integer from empty string" => "a whole number, not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" | "provided string was not `true` or `false`" => "true or false",
        "number too large to fit in target type" => "a smaller number",
        kind if kind.starts_with("struct ") => "an object",
        kind if std::ptr::eq(kind, text) => "another value",
        kind => kind,
    }
}

/// A whole number, and not a negative one, is refused only for its size.
fn is_too_large(text: &str) -> bool {
    let number = text.strip_prefix("invalid value: integer `");
    number.is_some_and(|number| !number.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_the_matter_is_named() {
        for (text, name, expected) in [
            ("missing field `to`", "to", "expected a value"),
            ("duplicate field `to`", "to", "expected once"),
            (
                "unknown field `tu`, expected `to` or `body`",
                "tu",
                "there is none of that name; expected `to` or `body`",
            ),
            (
                "unknown field `a`, expected `b`, expected `to`",
                "a`, expected `b",
                "there is none of that name; expected `to`",
            ),
            (
                "unknown field `a`, there are no fields",
                "a",
                "there is none of that name",
            ),
        ] {
            let wrong = wrong(text);
            assert_eq!(wrong.name.as_deref(), Some(name), "{text}");
            assert_eq!(wrong.expected, expected, "{text}");
        }
        let long = wrong(&format!(
            "unknown field `{}`, expected `a`",
            "x".repeat(9_000)
        ));
        assert_eq!(long.name.unwrap().len(), 64);
    }

    #[test]
    fn what_was_expected_is_told_and_what_was_found_is_not() {
        for (text, expected) in [
            (
                "invalid type: floating point `1.5`, expected u64",
                "expected a whole number, not negative",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "expected a whole number, not negative",
            ),
            (
                "invalid value: integer `4294967296`, expected u32",
                "expected a smaller number",
            ),
            (
                "invalid type: string \"S3NTINEL, expected S3NTINEL\", expected a boolean",
                "expected true or false",
            ),
            (
                "unknown variant `S3NTINEL`, expected one of `a`, `b`",
                "expected one of `a`, `b`",
            ),
            (
                "invalid type: null, expected struct New",
                "expected an object",
            ),
            (
                "number too large to fit in target type",
                "expected a smaller number",
            ),
            ("something S3NTINEL", "expected another value"),
        ] {
            let told = wrong(text);
            assert_eq!((told.name, &*told.expected), (None, expected), "{text}");
        }
    }
}
