//! Input that is no JSON lines at all, told from its first lines instead of once for each.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// So many lines are looked at.
pub(super) const LOOKED_AT: usize = 3;

/// What the input seems to be, when its first lines that are not blank are all no objects: three of
/// them, or fewer when they begin an array.
pub(super) fn mistaken(lines: &[String]) -> Option<&'static str> {
    let head = lines.first()?.trim();
    let begins_array = head.starts_with('[');
    let enough = lines.len() >= LOOKED_AT || begins_array;
    if !enough || lines.iter().any(|line| is_object(line)) {
        return None;
    }
    Some(match head.as_bytes().first()? {
        b'[' => "this looks like a JSON array",
        b'{' => "this looks like JSON objects that span several lines",
        _ if head.contains([',', ';', '\t']) => "this looks like CSV",
        _ => "this is no JSON",
    })
}

fn is_object(line: &str) -> bool {
    serde_json::from_str::<BTreeMap<String, &RawValue>>(line).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seems(text: &str) -> Option<&'static str> {
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        mistaken(&lines)
    }

    #[test]
    fn the_usual_mistakes_are_recognised() {
        assert_eq!(seems("to,body\na,b\nc,d"), Some("this looks like CSV"));
        assert_eq!(seems("[{\"to\":1}]"), Some("this looks like a JSON array"));
        assert_eq!(
            seems("{\n  \"to\": 1,\n  \"body\": 2\n}"),
            Some("this looks like JSON objects that span several lines")
        );
        assert_eq!(seems("a\nb\nc"), Some("this is no JSON"));
    }

    #[test]
    fn a_few_bad_rows_are_only_bad_rows() {
        for text in ["", "x", "x\ny", "x\ny\n{\"to\":1}", "{}\nx\ny\nz"] {
            assert_eq!(seems(text), None, "{text}");
        }
    }
}
