//! Texts that are JSON, CSV or lines of JSON, or nearly so.

use fastrand::Rng;

use crate::api::faults::SENTINEL;

/// Numbers, some of which are none.
const NUMBERS: [&str; 12] = [
    "0",
    "-0",
    "1e999",
    "-1e-999",
    "123456789012345678901234567890",
    "1.7976931348623157e309",
    "-9223372036854775809",
    "18446744073709551616",
    "0x1",
    "01",
    "NaN",
    "1.",
];

/// The insides of JSON texts.
const TEXTS: [&str; 21] = [
    "",
    " ",
    "12",
    "high",
    "low",
    "transactional",
    "marketing",
    "all",
    "sms",
    "Europe/London",
    "../../etc/passwd",
    "2099-01-01T00:00:00Z",
    "-009999-01-01T00:00:00Z",
    "2026-13-45T99:99:99+99:99",
    "\\u0000",
    "\\ud800",
    "\\udfff\\ud800",
    "\\u001b[2J\\r\\n2026-01-01T00:00:00Z ERROR FORGED",
    "\u{202e}\u{feff}\u{1f4a9}",
    "' OR 1=1; DROP TABLE waiting; --",
    "\u{1b}[2J\n",
];

/// Recipients, which nothing may tell.
const RECIPIENTS: [&str; 5] = [
    "+447700900123",
    "+14155550132",
    "12",
    "S3NTINEL@example.org",
    SENTINEL,
];

/// Fields of recipients.
const OF_RECIPIENTS: [&str; 4] = ["to", "from", "recipient", "phone"];

fn pick<'a>(random: &mut Rng, from: &[&'a str]) -> &'a str {
    from[random.usize(..from.len())]
}

/// The inside of a text.
pub fn word(random: &mut Rng) -> String {
    match random.u8(..12) {
        0 => "x".repeat(random.usize(..3_000)),
        _ => pick(random, &TEXTS).to_owned(),
    }
}

fn value(random: &mut Rng, names: &[String], depth: u8) -> String {
    match random.u8(..if depth > 3 { 8 } else { 12 }) {
        0 => "null".to_owned(),
        1 => "true".to_owned(),
        2 => pick(random, &NUMBERS).to_owned(),
        8 | 9 => object(random, names, depth + 1),
        10 | 11 => {
            let items: Vec<_> = (0..random.usize(..4))
                .map(|_| value(random, names, depth + 1))
                .collect();
            format!("[{}]", items.join(","))
        }
        _ => format!("\"{}\"", word(random)),
    }
}

/// An object, some of whose names may stand there twice.
fn object(random: &mut Rng, names: &[String], depth: u8) -> String {
    let mut entries: Vec<_> = (0..random.usize(..6))
        .map(|_| {
            let name = match random.u8(..8) {
                0 => word(random),
                _ => names[random.usize(..names.len())].clone(),
            };
            let is_recipient = OF_RECIPIENTS.contains(&&*name) && random.bool();
            let value = if is_recipient {
                format!("\"{}\"", pick(random, &RECIPIENTS))
            } else {
                value(random, names, depth)
            };
            format!("\"{name}\":{value}")
        })
        .collect();
    if depth == 0 && random.u8(..4) > 0 {
        entries.push(format!("\"to\":\"{}\"", pick(random, &RECIPIENTS)));
        entries.push(format!("\"body\":\"{SENTINEL}\""));
    }
    random.shuffle(&mut entries);
    format!("{{{}}}", entries.join(","))
}

/// A body of JSON, seldom broken.
pub fn json(random: &mut Rng, names: &[String]) -> Vec<u8> {
    let deep = random.usize(..50_000);
    let mut text = match random.u8(..24) {
        0 => "[".repeat(deep).into_bytes(),
        1 => "{\"metadata\":".repeat(deep).into_bytes(),
        2 => {
            let nest = |bracket: &str| bracket.repeat(deep);
            format!("{{\"content\":{}{}}}", nest("[").as_str(), nest("]")).into_bytes()
        }
        3 => value(random, names, 0).into_bytes(),
        4 => Vec::new(),
        5 => format!("\u{feff}{}", object(random, names, 0)).into_bytes(),
        6 => format!(
            "{{\"to\":\"{SENTINEL}\",\"body\":\"{}\"}}",
            "y".repeat(300_000)
        )
        .into_bytes(),
        7 => {
            let item = || "{\"to\":\"+447700900123\",\"body\":\"S3NTINEL\"}";
            let items: Vec<_> = (0..random.usize(..1_200)).map(|_| item()).collect();
            format!("[{}]", items.join(",")).into_bytes()
        }
        _ => object(random, names, 0).into_bytes(),
    };
    if random.u8(..6) == 0 {
        spoil(random, &mut text);
    }
    text
}

/// Rows of a batch, each a JSON object.
pub fn lines(random: &mut Rng, names: &[String]) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..random.usize(..30) {
        text.extend(json(random, names));
        text.extend(pick(random, &["\n", "\r\n", "\r", "\n\n", ""]).as_bytes());
    }
    text
}

/// Rows of a batch in cells.
pub fn cells(random: &mut Rng, names: &[String]) -> Vec<u8> {
    let mut columns = vec!["to".to_owned(), "body".to_owned()];
    columns.extend((0..random.usize(..5)).map(|_| names[random.usize(..names.len())].clone()));
    let mut text = columns.join(",") + "\n";
    for _ in 0..random.usize(..30) {
        let cells = 0..columns.len() + random.usize(..3) - 1;
        let cells: Vec<_> = cells
            .map(|_| match random.u8(..6) {
                0 => format!("\"{}\"", word(random)),
                1 => format!("\"{}", word(random)),
                2 => format!("a\"{}\"b", word(random)),
                _ => word(random),
            })
            .collect();
        text.push_str(&cells.join(pick(random, &[",", ",", ",", ";", "\t"])));
        text.push_str(pick(random, &["\n", "\r\n", "\r"]));
    }
    let mut text = text.into_bytes();
    if random.u8(..3) == 0 {
        spoil(random, &mut text);
    }
    text
}

/// Changes some bytes, or leaves some out, or says some twice.
pub fn spoil(random: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..=random.u8(..4) {
        let at = random.usize(..=bytes.len());
        let end = (at + random.usize(..40)).min(bytes.len());
        match random.u8(..5) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            3 => bytes.insert(at, random.u8(..)),
            _ if at < bytes.len() => bytes[at] = random.u8(..),
            _ => {}
        }
    }
}
