//! Input that is no JSON lines at all, told from its first lines instead of once for each.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::chunks::trim;

/// So many lines are looked at.
const LOOKED_AT: usize = 3;

/// What the input seems to be, when its first lines are all no objects: three of them, or fewer when
/// they begin an array.
pub(super) fn mistaken(lines: &[(u64, Vec<u8>)]) -> Option<&'static str> {
    let lines = lines.iter().map(|(number, line)| trim(line, *number));
    let first: Vec<&[u8]> = lines
        .filter(|line| !line.is_empty())
        .take(LOOKED_AT)
        .collect();
    let begins_array = first.first().is_some_and(|line| line.starts_with(b"["));
    let enough = first.len() == LOOKED_AT || begins_array;
    if !enough || first.iter().any(|line| is_object(line)) {
        return None;
    }
    let head = first.first()?;
    Some(match head.first()? {
        b'[' => "this looks like a JSON array",
        b'{' => "this looks like JSON objects that span several lines",
        _ if head.iter().any(|byte| b",;\t".contains(byte)) => "this looks like CSV",
        _ => "this is no JSON",
    })
}

fn is_object(line: &[u8]) -> bool {
    serde_json::from_slice::<BTreeMap<String, &RawValue>>(line).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seems(text: &str) -> Option<&'static str> {
        let lines: Vec<_> = (1..).zip(text.lines().map(Into::into)).collect();
        mistaken(&lines)
    }

    #[test]
    fn the_usual_mistakes_are_recognised() {
        assert_eq!(seems("to,body\na,b\nc,d"), Some("this looks like CSV"));
        assert_eq!(seems("[{\"to\":1}]"), Some("this looks like a JSON array"));
        assert_eq!(
            seems("\n{\n  \"to\": 1,\n  \"body\": 2\n}"),
            Some("this looks like JSON objects that span several lines")
        );
        assert_eq!(seems("a\nb\nc"), Some("this is no JSON"));
    }

    #[test]
    fn a_few_bad_rows_are_only_bad_rows() {
        for text in ["", "\n\n", "x", "x\ny", "x\ny\n{\"to\":1}", "{}\nx\ny\nz"] {
            assert_eq!(seems(text), None, "{text}");
        }
    }
}
