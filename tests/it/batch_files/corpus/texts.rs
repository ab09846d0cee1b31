//! Texts of all kinds.

use super::{refused, rows};
use crate::batch_files::AwkwardFile;

pub(super) fn plain() -> Vec<AwkwardFile> {
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

fn utf16(text: &str, mark: bool) -> Vec<u8> {
    let mark = if mark { "\u{feff}" } else { "" };
    let units = mark.encode_utf16().chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

pub(super) fn encodings() -> Vec<AwkwardFile> {
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

pub(super) fn other_kinds() -> Vec<AwkwardFile> {
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
