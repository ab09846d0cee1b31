//! Tables: separators, headers, quotes, and rows of any length.

use std::fmt::Write as _;

use super::{one_column, refused, rows};
use crate::batch_files::AwkwardFile;

pub(super) fn separators() -> Vec<AwkwardFile> {
    vec![
        rows(
            "semicolons-with-commas-in-bodies",
            "to;body\n+447700900001;Hallo, you, there\n+447700900002;1,5 kg\n",
            &[2, 3],
            &[],
        ),
        rows(
            "tabs",
            "to\tbody\n+447700900001\tHallo; you, there\n",
            &[2],
            &[],
        ),
        rows(
            "more-semicolons-in-the-data-than-commas-in-the-header",
            "to,body\n+447700900001,a;b;c;d\n+447700900002,e;f;g;h\n",
            &[2, 3],
            &[],
        ),
        refused(
            "pipes",
            "to|body\n+447700900001|Hallo\n",
            "missing column to",
        ),
        rows(
            "named-semicolon",
            "sep=;\nto;body\n+447700900001;Hallo, you\n",
            &[3],
            &[],
        ),
        rows(
            "named-pipe",
            "\u{feff}sep=|\r\nto|body\r\n+447700900001|Hallo\r\n",
            &[3],
            &[],
        ),
        one_column(rows(
            "one-column",
            "to\n+447700900001\n+44 7700 900002\n",
            &[2, 3],
            &[],
        )),
        one_column(rows(
            "one-column-of-numbers-with-separators",
            "to\n+447700,900001\n+447700;900002\n+447700900003\n",
            &[4],
            &[(2, "row"), (3, "to")],
        )),
        rows(
            "one-column-without-a-body",
            "to\n+447700900001\n",
            &[],
            &[(2, "body")],
        ),
    ]
}

pub(super) fn headers() -> Vec<AwkwardFile> {
    let row = "+447700900001,Hallo,x\n";
    let with = |header: &str| format!("{header}\n{row}");
    vec![
        refused(
            "no-recipients",
            with("phone,body,x"),
            "`phone`, `body`, `x`",
        ),
        refused(
            "no-header",
            "+447700900001,Hallo\n",
            "put a header line before it",
        ),
        refused(
            "no-header-and-no-number",
            "tokenabc,Your code is 4711\nTokendef,Your code is 4712\n",
            "the columns found are: 2",
        ),
        refused(
            "no-header-and-the-same-twice",
            "to,Sesame opens it,Your code is 4711,sesame opens it\n",
            "columns 2 and 4 have the same name",
        ),
        refused(
            "duplicate-header",
            with("to,Name, name "),
            "columns 2 and 3, `name`, have the same name",
        ),
        refused(
            "column-of-the-batch",
            with("to,body,Account_ID"),
            "column account_id",
        ),
        rows("capitals-and-blanks", with("To, BODY\u{a0},x"), &[2], &[]),
        rows(
            "unnamed-column",
            "to,body,\n+447700900001,Hallo,\n+447700900002,Hallo,x\n",
            &[2],
            &[(3, "row")],
        ),
    ]
}

pub(super) fn quotes() -> Vec<AwkwardFile> {
    vec![
        rows(
            "line-breaks-in-cells",
            "to,body\n+447700900001,\"Hallo\r\nyou\n\nthere\"\n+447700900002,Hallo\n",
            &[2, 6],
            &[],
        ),
        rows(
            "doubled-quotes",
            "to,body\n+447700900001,\"Say \"\"Hallo\"\", please\"\n",
            &[2],
            &[],
        ),
        rows(
            "quotes-that-are-not-doubled",
            "to,body\n+447700900001,\"Say \"Hallo\" please\"\n+447700900002,5\" Hallo\n",
            &[3],
            &[(2, "row")],
        ),
        refused(
            "quote-never-closed",
            "to,body\n+447700900001,Hallo\n+447700900002,\"Hallo\n+447700900003,Hallo\n",
            "line 3: a quoted cell",
        ),
        refused(
            "quote-of-the-header-never-closed",
            "to,\"body\n+447700900001,Hallo\n",
            "line 1: a quoted cell",
        ),
        refused(
            "quote-closed-by-the-next-row",
            "to,body\n+447700900001,\"Hallo\n+447700900002,\"Hallo\"\n",
            "line 2: a quoted cell",
        ),
    ]
}

pub(super) fn ragged() -> Vec<AwkwardFile> {
    vec![
        rows(
            "ragged",
            "to,body\n+447700900001\n+447700900002,Hallo,you\n+447700900003,Hallo,,\n",
            &[4],
            &[(2, "row"), (3, "row")],
        ),
        rows(
            "empty-cells",
            "to,body\n,Hallo\n+447700900002,\n+447700900003,Hallo\n",
            &[4],
            &[(2, "to"), (3, "body")],
        ),
    ]
}

/// A file of so many rows of which one, from 1, is bad.
fn with_bad_row(name: &'static str, count: u64, bad: u64) -> AwkwardFile {
    let mut text = "to,body\n".to_owned();
    for row in 1..=count {
        let plus = if row == bad { "x" } else { "+" };
        writeln!(text, "{plus}44770090{row:04},Hallo").unwrap();
    }
    let good: Vec<_> = (1..=count)
        .filter(|row| *row != bad)
        .map(|row| row + 1)
        .collect();
    rows(name, text, &good, &[(bad + 1, "to")])
}

pub(super) fn sizes() -> Vec<AwkwardFile> {
    let large = "x".repeat(300_000);
    vec![
        with_bad_row("the-only-row-is-bad", 1, 1),
        with_bad_row("first-of-3-is-bad", 3, 1),
        with_bad_row("second-of-3-is-bad", 3, 2),
        with_bad_row("last-of-3-is-bad", 3, 3),
        with_bad_row("first-of-1001-is-bad", 1001, 1),
        with_bad_row("middle-of-1001-is-bad", 1001, 501),
        with_bad_row("last-of-1001-is-bad", 1001, 1001),
        rows(
            "300-kB-cells",
            format!(
                "to,body\n+447700900001,{large}\n+447700900002,Hallo\n\
                 +447700900003,\"{large}\n\"\n+447700900004,Hallo\n"
            ),
            &[3, 6],
            &[(2, "row"), (4, "row")],
        ),
        rows(
            "300-kB-line-of-json",
            format!(
                "{{\"to\":\"+447700900001\",\"body\":\"{large}\"}}\n\
                 {{\"to\":\"+447700900002\",\"body\":\"Hallo\"}}\n"
            ),
            &[2],
            &[(1, "row")],
        ),
    ]
}
