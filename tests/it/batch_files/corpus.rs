//! The files. Recipients are British numbers kept for drama.

use std::fmt::Write as _;

use super::{AwkwardFile, Expected};

/// Every file.
pub fn corpus() -> Vec<AwkwardFile> {
    [
        plain(),
        separators(),
        encodings(),
        other_kinds(),
        headers(),
        quotes(),
        ragged(),
        numbers(),
        contents(),
        duplicates(),
        sizes(),
        json(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn file(name: &'static str, bytes: impl AsRef<[u8]>, expected: Expected) -> AwkwardFile {
    AwkwardFile {
        name,
        bytes: bytes.as_ref().to_vec(),
        default_body: None,
        expected,
    }
}

fn refused(name: &'static str, bytes: impl AsRef<[u8]>, part: &'static str) -> AwkwardFile {
    file(name, bytes, Expected::Refused(part))
}

/// A file whose rows are as expected: lines of jobs, and lines and fields of rejected rows.
fn rows(
    name: &'static str,
    bytes: impl AsRef<[u8]>,
    jobs: &[u64],
    rejected: &[(u64, &'static str)],
) -> AwkwardFile {
    let expected = Expected::Rows {
        jobs: jobs.to_vec(),
        duplicates: Vec::new(),
        rejected: rejected.to_vec(),
    };
    file(name, bytes, expected)
}

fn one_column(mut file: AwkwardFile) -> AwkwardFile {
    file.default_body = Some("Hallo");
    file
}

fn plain() -> Vec<AwkwardFile> {
    let two = "to,body\n+447700900001,Hallo\n+447700900002,Hallo\n";
    vec![
        rows("plain", two, &[2, 3], &[]),
        rows("no-final-newline", two.trim_end(), &[2, 3], &[]),
        rows("crlf", two.replace('\n', "\r\n"), &[2, 3], &[]),
        rows("old-mac-line-ends", two.replace('\n', "\r"), &[2, 3], &[]),
        rows(
            "mixed-line-ends",
            "to,body\r\n+447700900001,Hallo\n+447700900002,Hallo\r\n",
            &[2, 3],
            &[],
        ),
        rows(
            "one-line-end-of-the-old-mac",
            "to,body\n+447700900001,Hallo\r+447700900002,Hallo\n+447700900003,Hallo\n",
            &[3],
            &[(2, "row")],
        ),
        rows("trailing-blank-lines", format!("{two}\n\n\n"), &[2, 3], &[]),
        rows(
            "blank-rows",
            "\n\nto,body,x\n\n+447700900001,Hallo,\n,,,\n \u{a0},\t,\n+447700900002,Hallo,\n",
            &[5, 8],
            &[],
        ),
        rows("header-only", "to,body\n", &[], &[]),
        rows("header-only-without-newline", "to,body", &[], &[]),
        refused("empty", "", "the file is empty"),
        refused("only-a-byte-order-mark", "\u{feff}", "the file is empty"),
        refused("only-blank-lines", "\n \r\n\n", "the file is empty"),
    ]
}

fn separators() -> Vec<AwkwardFile> {
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

fn utf16(text: &str, mark: bool) -> Vec<u8> {
    let mark = if mark { "\u{feff}" } else { "" };
    let units = mark.encode_utf16().chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

fn encodings() -> Vec<AwkwardFile> {
    let text = "to,body\n+447700900001,Hallo\n";
    vec![
        rows("byte-order-mark", format!("\u{feff}{text}"), &[2], &[]),
        rows(
            "byte-order-mark-and-quoted-header",
            "\u{feff}\"to\",\"body\"\r\n\"+447700900001\",\"Hallo\"\r\n",
            &[2],
            &[],
        ),
        refused("utf-16-with-mark", utf16(text, true), "UTF-16"),
        refused("utf-16-without-mark", utf16(text, false), "UTF-16"),
        refused(
            "windows-1252",
            b"to,body\n+447700900001,Hallo\n+447700900002,caf\xe9\n",
            "line 3: ",
        ),
        refused(
            "cut-in-a-character",
            b"to,body\n+447700900001,caf\xc3",
            "line 2: ",
        ),
        refused(
            "nul-in-a-cell",
            b"to,body\n+447700900001,Hal\0lo, Hallo\n",
            "line 2: there is a NUL",
        ),
        rows(
            "emoji-combining-and-right-to-left",
            "to,body\n+447700900001,Hallo \u{1f469}\u{200d}\u{1f467}\n\
             +447700900002,e\u{301}a\u{308}\n+447700900003,\u{202b}שלום\u{202c}\n",
            &[2, 3, 4],
            &[],
        ),
    ]
}

fn other_kinds() -> Vec<AwkwardFile> {
    let kind = |name, magic: &[u8], part| refused(name, [magic, &[0, 1, 0xff]].concat(), part);
    vec![
        kind("xlsx", b"PK\x03\x04", "an Excel workbook"),
        kind(
            "xls",
            b"\xd0\xcf\x11\xe0\xa1\xb1",
            "an Excel workbook of the old kind",
        ),
        kind("gzip", b"\x1f\x8b\x08", "a gzip archive"),
        kind("pdf", b"%PDF-1.7\n", "a PDF document"),
        refused("html", "<table><tr><td>to</td></tr></table>", "HTML"),
    ]
}

fn headers() -> Vec<AwkwardFile> {
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
            "duplicate-header",
            with("to,Name, name "),
            "`name` is there twice",
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

fn quotes() -> Vec<AwkwardFile> {
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
            "quote-closed-by-the-next-row",
            "to,body\n+447700900001,\"Hallo\n+447700900002,\"Hallo\"\n",
            "line 2: a quoted cell",
        ),
    ]
}

fn ragged() -> Vec<AwkwardFile> {
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

fn numbers() -> Vec<AwkwardFile> {
    vec![
        rows(
            "numbers-of-spreadsheets",
            "to;body\n4.47901E+11;Hallo\n4,47901E+11;Hallo\n+447700900001.0;Hallo\n\
             \"=\"\"+447700900002\"\"\";Hallo\n'+447700900003;Hallo\n=\"+447700900004\";Hallo\n",
            &[4, 5, 6, 7],
            &[(2, "to"), (3, "to")],
        ),
        rows(
            "spellings-of-numbers",
            "to,body\n+44 7700 900001,Hallo\n+44 (0)7700-900002,Hallo\n07700900003,Hallo\n\
             447700900004,Hallo\n\u{202a}+447700900005\u{202c},Hallo\n########,Hallo\nn/a,Hallo\n",
            &[2, 3, 6],
            &[(4, "to"), (5, "to"), (7, "to"), (8, "to")],
        ),
        rows(
            "only-telephone-numbers-are-unwrapped",
            "to,body,channel\n'abc,Hallo,push\n1E+5,Hallo,push\n1E+5,Hallo,sms\n",
            &[2, 3],
            &[(4, "to")],
        ),
    ]
}

fn contents() -> Vec<AwkwardFile> {
    vec![
        rows(
            "formulas",
            "to,body\n+447700900001,\"=HYPERLINK(\"\"https://example.org\"\",\"\"Hallo\"\")\"\n\
             +447700900002,+1+1\n+447700900003,@SUM(1)\n+447700900004,-2\n",
            &[2, 3, 4, 5],
            &[],
        ),
        rows(
            "objects-in-cells",
            "to;content;metadata\n+447700900001;{\"a\":1};\n+447700900002;[1];\n\
             +447700900003;{\"a\":1};{\"a\":1,\"a\":2}\n+447700900004;{\"a\":1};7\n",
            &[2],
            &[(3, "content"), (4, "metadata"), (5, "metadata")],
        ),
        rows(
            "unknown-values",
            "to,body,priority,channel,recipient_timezone,expires_at\n\
             +447700900001,Hallo,urgent,,,\n+447700900002,Hallo,,fax,,\n\
             +447700900003,Hallo,,,Mars/Base,\n+447700900004,Hallo,,,,tomorrow\n\
             +447700900005,Hallo,high,rcs,Europe/Berlin,2099-01-01T00:00:00Z\n",
            &[6],
            &[
                (2, "priority"),
                (3, "channel"),
                (4, "recipient_timezone"),
                (5, "expires_at"),
            ],
        ),
        rows(
            "lanes",
            "to,body,Traffic_Lane\n+447700900001,Hallo,transactional\n+447700900002,Hallo,fast\n",
            &[2],
            &[(3, "traffic_lane")],
        ),
    ]
}

fn duplicates() -> Vec<AwkwardFile> {
    let expected =
        |jobs: &[u64], duplicates: &[u64], rejected: &[(u64, &'static str)]| Expected::Rows {
            jobs: jobs.to_vec(),
            duplicates: duplicates.to_vec(),
            rejected: rejected.to_vec(),
        };
    vec![
        file(
            "duplicates-in-other-spellings",
            "to,body\n+447700900001,Hallo\n+44 7700 900001,Hallo you\n+447700900001,Hallo\n",
            expected(&[2], &[3, 4], &[]),
        ),
        file(
            "a-rejected-row-was-not-there",
            "to,body\n+447700900001,\n+447700900001,Hallo\n+447700900001,Hallo\n",
            expected(&[3], &[4], &[(2, "body")]),
        ),
        file(
            "one-recipient-on-several-channels",
            "to,body,channel\n+447700900001,Hallo,\n+447700900001,Hallo,rcs\n\
             +447700900001,Hallo,push\n+447700900001,Hallo,rcs\n+447700900001,Hallo,push\n",
            expected(&[2, 3, 4], &[5, 6], &[]),
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

fn sizes() -> Vec<AwkwardFile> {
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

fn json() -> Vec<AwkwardFile> {
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
