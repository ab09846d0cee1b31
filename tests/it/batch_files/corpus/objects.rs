//! JSON, on one line or on several.

use super::{refused, rows};
use crate::batch_files::AwkwardFile;

pub(super) fn json() -> Vec<AwkwardFile> {
    let one = "{\"to\":\"+447700900001\",\"body\":\"Hallo\"}";
    let two = "{\"to\":\"+447700900002\",\"body\":\"Hallo\"}";
    let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
    let with = |more: &str| format!("{one}\n{{\"to\":\"+447700900002\",{more}}}\n");
    vec![
        rows("json-lines", format!("{one}\n\n{two}"), &[1, 3], &[]),
        rows(
            "json-lines-with-mark",
            format!("\u{feff}{one}\n{two}\n"),
            &[1, 2],
            &[],
        ),
        rows(
            "json-lines-with-crlf",
            format!("{one}\r\n{two}\r\n"),
            &[1, 2],
            &[],
        ),
        rows(
            "json-lines-one-broken",
            format!("{one}\n{{\"to\":\n{two}\n"),
            &[1, 3],
            &[(2, "row")],
        ),
        refused("json-array", format!("[{one},\n{two}]"), "a JSON array"),
        refused(
            "json-over-several-lines",
            "{\n  \"to\": \"+447700900001\",\n  \"body\": \"Hallo\"\n}\n",
            "span several lines",
        ),
        rows(
            "json-to-twice",
            with("\"to\":\"+447700900003\",\"body\":\"Hallo\""),
            &[1],
            &[(2, "to")],
        ),
        rows(
            "json-body-twice",
            with("\"body\":\"Hallo\",\"body\":null"),
            &[1],
            &[(2, "body")],
        ),
        rows(
            "json-body-twice-but-null-first",
            with("\"body\":null,\"body\":\"Hallo\""),
            &[1],
            &[(2, "body")],
        ),
        rows(
            "json-deep",
            with(&format!("\"body\":\"Hallo\",\"metadata\":{deep}")),
            &[1, 2],
            &[],
        ),
        rows(
            "json-number-as-recipient",
            "{\"to\":447700900001,\"body\":\"Hallo\"}",
            &[],
            &[(1, "to")],
        ),
        rows(
            "json-nul-in-body",
            with("\"body\":\"Hallo\\u0000\""),
            &[1],
            &[(2, "body")],
        ),
        rows(
            "json-field-of-the-batch",
            with("\"body\":\"Hallo\",\"id\":\"7\""),
            &[1],
            &[(2, "id")],
        ),
        rows(
            "json-nulls",
            with("\"body\":\"Hallo\",\"channel\":null,\"from\":null"),
            &[1, 2],
            &[],
        ),
    ]
}
