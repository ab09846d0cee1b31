//! A queue that exists with other arguments than wanted, in words that an operator can use.

use thiserror::Error;

/// A queue or exchange exists already, and an argument of it differs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the {kind} {name:?} exists already with another {argument:?}: wanted {wanted}, found {found}. Arguments are \
     fixed when a queue is first declared: either change the setting back to what is there, or drain and \
     delete the {kind} and start again (docs/OPERATIONS.md, \"Changing a queue's arguments\"). \
     Existing queues are left as they are"
)]
pub struct Mismatch {
    /// `queue` or `exchange`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The argument that differs.
    pub argument: String,
    /// What this program asked for.
    pub wanted: String,
    /// What is there.
    pub found: String,
}

impl Mismatch {
    /// Reads the broker's own text of a refused declaration. Its form is
    /// `PRECONDITION_FAILED - inequivalent arg 'ARG' for queue 'NAME' in vhost '/': received …
    /// but current is …`, cut off at 255 bytes.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("inequivalent arg '")?;
        let (argument, rest) = rest.split_once("' for ")?;
        let (kind, rest) = rest.split_once(" '")?;
        let (name, rest) = rest.split_once('\'')?;
        let (wanted, found) = rest
            .split_once("received ")
            .and_then(|(_, values)| values.split_once(" but current is "))
            .unwrap_or(("another value", "a value that the broker did not name"));
        Some(Self {
            kind: kind.to_owned(),
            name: name.to_owned(),
            argument: argument.to_owned(),
            wanted: value(wanted),
            found: value(found),
        })
    }
}

/// `the value '5' of type 'signedint'`, `'5'` and `none` as they are told to an operator.
fn value(text: &str) -> String {
    let text = text.trim().trim_start_matches("the value ");
    let text = text.split_once(" of type").map_or(text, |(value, _)| value);
    text.trim_matches('\'').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brokers_text_becomes_its_parts() {
        let text = "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'lk.marketing.delay' in \
                    vhost '/': received the value '1000' of type 'signedint' but current is the value '5000' of \
                    type 'signedint'";
        let mismatch = Mismatch::read(text).unwrap();
        assert_eq!(mismatch.name, "lk.marketing.delay");
        assert_eq!(mismatch.argument, "x-message-ttl");
        assert_eq!(
            (mismatch.wanted.as_str(), mismatch.found.as_str()),
            ("1000", "5000")
        );
        let shown = mismatch.to_string();
        assert!(shown.contains("Changing a queue's arguments"), "{shown}");
    }

    #[test]
    fn other_forms_are_read_too() {
        let none = Mismatch::read(
            "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': received the value \
             'quorum' of type 'longstr' but current is none",
        )
        .unwrap();
        assert_eq!(
            (none.wanted.as_str(), none.found.as_str()),
            ("quorum", "none")
        );
        let exchange = Mismatch::read(
            "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'e' in vhost '/': received 'topic' but \
             current is 'direct'",
        )
        .unwrap();
        assert_eq!(
            (exchange.kind.as_str(), exchange.found.as_str()),
            ("exchange", "direct")
        );
    }

    #[test]
    fn a_text_that_was_cut_off_still_names_the_queue() {
        let cut =
            Mismatch::read("inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': rece");
        assert_eq!(cut.unwrap().name, "q");
        assert_eq!(Mismatch::read("NOT_FOUND - no queue 'q'"), None);
    }
}
