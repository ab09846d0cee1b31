//! Texts from outside, made harmless for a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;

/// Whether a character could move the cursor, colour the rest, or turn the order of what is read.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The text in one line, harmful characters as `\n` or `\u{1b}`.
pub(super) fn line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// The same, but for the line breaks and tabs of a text that is shown as a block.
pub(super) fn block(text: &str) -> Cow<'_, str> {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

fn escape(text: &str, spared: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|c| is_harmful(c) && !spared(c)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmful(c) && !spared(c) {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// A value as one line of JSON. Harmful characters can only stand in its strings, where JSON has
/// its own escape for them.
pub(super) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(value)?;
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmful(c) {
            write!(safe, "\\u{:04x}", u32::from(c)).expect("writing to a text does not fail");
        } else {
            safe.push(c);
        }
    }
    Ok(safe)
}

/// At most so many characters, the last one being a sign that there are more.
pub(super) fn cut(text: &str, longest: usize) -> Cow<'_, str> {
    if text.chars().count() <= longest {
        return Cow::Borrowed(text);
    }
    let mut cut: String = text.chars().take(longest.saturating_sub(1)).collect();
    cut.push('…');
    Cow::Owned(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}[31m\nb\u{9b}2J\u{202e}c\u{7f}";

    #[test]
    fn nothing_reaches_the_terminal_but_text() {
        let safe = line(HOSTILE);
        assert_eq!(safe, "a\\u{1b}[31m\\nb\\u{9b}2J\\u{202e}c\\u{7f}");
        assert_eq!(line("Grüße, 世界"), "Grüße, 世界");
        assert_eq!(block("a\n\tb\r\u{1b}"), "a\n\tb\\r\\u{1b}");
    }

    #[test]
    fn json_says_the_same_in_its_own_escapes() {
        let safe = json(&HOSTILE).unwrap();
        assert!(!safe.chars().any(is_harmful), "{safe}");
        let read: String = serde_json::from_str(&safe).unwrap();
        assert_eq!(read, HOSTILE);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
    }
}
