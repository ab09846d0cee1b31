//! A body, laid out for reading without changing what it says: fields given twice, odd numbers and
//! escapes stay as they are written.

use serde::de::IgnoredAny;

/// JSON with a line for each member; any other text as it is.
pub(super) fn pretty(text: &str) -> String {
    if serde_json::from_str::<IgnoredAny>(text).is_err() {
        return text.to_owned();
    }
    let mut laid_out = Layout::default();
    for c in text.chars() {
        laid_out.push(c);
    }
    laid_out.text
}

#[derive(Default)]
struct Layout {
    text: String,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// An opening bracket whose line break waits for its first member.
    opened: bool,
}

impl Layout {
    fn push(&mut self, c: char) {
        if self.in_string {
            self.text.push(c);
            self.in_string = self.escaped || c != '"';
            self.escaped = c == '\\' && !self.escaped;
            return;
        }
        match c {
            ' ' | '\t' | '\n' | '\r' => {}
            ']' | '}' => {
                self.depth -= 1;
                if !std::mem::take(&mut self.opened) {
                    self.line();
                }
                self.text.push(c);
            }
            _ => self.push_in_member(c),
        }
    }

    fn push_in_member(&mut self, c: char) {
        if std::mem::take(&mut self.opened) {
            self.line();
        }
        self.text.push(c);
        match c {
            '[' | '{' => {
                self.depth += 1;
                self.opened = true;
            }
            ',' => self.line(),
            ':' => self.text.push(' '),
            '"' => self.in_string = true,
            _ => {}
        }
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_in_lines_and_keep_their_spelling() {
        let body = r#"{"id":"a\",{b","id":1.0e0,"x":[ ],"y":{"z":[1,2]}}"#;
        let expected = "{\n  \"id\": \"a\\\",{b\",\n  \"id\": 1.0e0,\n  \"x\": [],\n  \"y\": {\n    \
                        \"z\": [\n      1,\n      2\n    ]\n  }\n}";
        assert_eq!(pretty(body), expected);
    }

    #[test]
    fn what_is_no_json_stays() {
        for text in ["", "{\"a\":", "hello, {world}"] {
            assert_eq!(pretty(text), text);
        }
    }
}
