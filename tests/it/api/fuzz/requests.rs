//! Requests as bytes: for the routes of a document, and such as no document knows.

use std::fmt::Write as _;

use fastrand::Rng;
use serde_json::Value;

use super::texts;
use crate::support::api::DEV_KEY;

/// What the routes of a document are asked with.
pub struct Operations {
    all: Vec<Operation>,
    /// Every name of a field.
    names: Vec<String>,
    key: String,
}

struct Operation {
    method: String,
    path: String,
    query: Vec<String>,
    kinds: Vec<String>,
}

/// Values of parameters in paths and query strings, percent-encoded or as good as.
const PARAMETERS: [&str; 22] = [
    "sms",
    "email",
    "sms",
    "pigeon",
    "",
    "%00",
    "%ff%fe",
    "%",
    "%zz",
    "..%2f..%2fetc",
    "%2e%2e",
    "msg_00000000000000000000000000000000",
    "%2B447700900123",
    "+447700900123",
    "%F0%9F%92%A9",
    "1",
    "-1",
    "99999999999999999999",
    "true",
    "' OR 1=1",
    "a&b=c=d",
    "S3NTINEL%40example.org",
];

/// Kinds that a body may say it has.
const KINDS: [&str; 10] = [
    "application/json; charset=utf-8",
    "application/json; charset=utf-16",
    "application/json;",
    "text/plain",
    "text/csv; header=absent",
    "application/x-ndjson",
    "multipart/form-data; boundary=x",
    "application/x-www-form-urlencoded",
    "*/*",
    "application/json, text/csv",
];

/// Headers that a request may also have.
const HEADERS: [&[u8]; 20] = [
    b"Idempotency-Key: S3NTINEL",
    b"Idempotency-Key: again",
    b"Idempotency-Key: two words",
    b"Idempotency-Key: ",
    b"Idempotency-Key: \xff\xfe",
    b"Idempotency-Key: a\r\nIdempotency-Key: b",
    b"X-API-Key: S3NTINEL",
    b"X-API-Key: ",
    b"Content-Encoding: gzip",
    b"Content-Encoding: identity",
    b"Expect: 100-continue",
    b"Expect: nothing",
    b"Accept: text/html;q=\xe9",
    b"Range: bytes=0-18446744073709551616",
    b"X-Request-Id: S3NTINEL",
    b"X-Forwarded-For: 127.0.0.1, S3NTINEL",
    b"If-None-Match: *",
    b"Cookie: a=S3NTINEL; a=b",
    b"User-Agent: \x1b[2JFORGED",
    b"Upgrade: h2c",
];

impl Operations {
    /// Those of a document, without the answers that never end.
    pub fn of(document: &Value, key: &str) -> Self {
        let mut all = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            let methods = item.as_object().unwrap().iter();
            let methods = methods.filter(|(_, operation)| operation["responses"].is_object());
            for (method, operation) in methods {
                if !operation["responses"]["200"]["content"]["text/event-stream"].is_null() {
                    continue;
                }
                all.push(Operation {
                    method: method.to_uppercase(),
                    path: path.clone(),
                    query: query(operation),
                    kinds: keys(&operation["requestBody"]["content"]),
                });
            }
        }
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let mut names: Vec<_> = schemas
            .values()
            .flat_map(|schema| keys(&schema["properties"]))
            .collect();
        names.push("traffic_lane".to_owned());
        Self {
            all,
            names,
            key: key.to_owned(),
        }
    }

    /// One request, the last of its connection.
    pub fn request(&self, random: &mut Rng) -> Vec<u8> {
        let operation = &self.all[random.usize(..self.all.len())];
        let method = match random.u8(..20) {
            0 => "PUT",
            1 => "BREW",
            _ => &operation.method,
        };
        let mut head = format!("{method} {}", operation.target(random)).into_bytes();
        head.extend(b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        if random.u8(..25) > 0 {
            head.extend(format!("X-API-Key: {}\r\n", self.key).bytes());
        }
        for _ in 0..random.u8(..3) {
            if random.u8(..3) == 0 {
                head.extend(HEADERS[random.usize(..HEADERS.len())]);
                head.extend(b"\r\n");
            }
        }
        let body = self.body(random, operation, &mut head);
        frame(random, head, &body)
    }

    fn body(&self, random: &mut Rng, operation: &Operation, head: &mut Vec<u8>) -> Vec<u8> {
        let kind = match (operation.kinds.is_empty(), random.u8(..8)) {
            (false, 1..) => operation.kinds[random.usize(..operation.kinds.len())].as_str(),
            (true, 1..) => return Vec::new(),
            (_, 0) => KINDS[random.usize(..KINDS.len())],
        };
        head.extend(format!("Content-Type: {kind}\r\n").bytes());
        match kind {
            "text/csv" => texts::cells(random, &self.names),
            "application/x-ndjson" => texts::lines(random, &self.names),
            _ => texts::json(random, &self.names),
        }
    }
}

impl Operation {
    fn target(&self, random: &mut Rng) -> String {
        let mut target = String::new();
        for part in self.path.split_inclusive('}') {
            let (fixed, parameter) = part.split_once('{').unwrap_or((part, ""));
            target.push_str(fixed);
            if !parameter.is_empty() {
                // A space would end the target.
                target.push_str(&PARAMETERS[random.usize(..PARAMETERS.len())].replace(' ', "%20"));
            }
        }
        let mut sign = '?';
        for _ in 0..random.usize(..4) {
            let name = match random.usize(..=self.query.len()) {
                0 => "nothing",
                place => &self.query[place - 1],
            };
            let value = PARAMETERS[random.usize(..PARAMETERS.len())].replace(' ', "+");
            write!(target, "{sign}{name}={value}").expect("writing to a text does not fail");
            sign = '&';
        }
        target
    }
}

/// Gives the body's length, or sends it in pieces.
fn frame(random: &mut Rng, mut head: Vec<u8>, body: &[u8]) -> Vec<u8> {
    if random.bool() {
        head.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
        head.extend(body);
        return head;
    }
    head.extend(b"Transfer-Encoding: chunked\r\n\r\n");
    for piece in body.chunks(1 + random.usize(..20_000)) {
        head.extend(format!("{:x}\r\n", piece.len()).bytes());
        head.extend(piece);
        head.extend(b"\r\n");
    }
    head.extend(b"0\r\n\r\n");
    head
}

fn keys(object: &Value) -> Vec<String> {
    let object = object.as_object();
    object.map_or_else(Vec::new, |entries| entries.keys().cloned().collect())
}

fn query(operation: &Value) -> Vec<String> {
    let parameters = operation["parameters"].as_array();
    let parameters = parameters.into_iter().flatten();
    let query = parameters.filter(|parameter| parameter["in"] == "query");
    query
        .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
        .collect()
}

const SEND: &str =
    "POST /api/v1/messages/sms HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
const BODY: &str = r#"{"to":"+447700900123","body":"S3NTINEL"}"#;

/// A request to send with more headers, and whatever follows its head.
fn send(headers: &str, rest: &str) -> Vec<u8> {
    format!("{SEND}X-API-Key: {DEV_KEY}\r\n{headers}\r\n{rest}").into_bytes()
}

fn sized(length: &str) -> Vec<u8> {
    send(
        &format!("Connection: close\r\nContent-Length: {length}\r\n"),
        BODY,
    )
}

fn chunked(coding: &str, rest: &str) -> Vec<u8> {
    send(
        &format!("Connection: close\r\nTransfer-Encoding:{coding}\r\n"),
        rest,
    )
}

/// Requests, and what looks like one.
pub fn shapes() -> Vec<Vec<u8>> {
    let length = BODY.len();
    let sound = sized(&length.to_string());
    let chunk = format!("{length:x}\r\n{BODY}\r\n");
    let lines = |line: &str, count: usize| line.repeat(count);
    let mut shapes = vec![
        sound.clone(),
        Vec::new(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03".to_vec(),
        b"\x00\xff\xfe\r\n\r\n".to_vec(),
        b"GET /\r\n\r\n".to_vec(),
        b"GET /openapi.json HTTP/1.0\r\n\r\n".to_vec(),
        b"GET  /openapi.json  HTTP/1.1\r\n\r\n".to_vec(),
        b"GET http://other/openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            .to_vec(),
        b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_vec(),
        b"CONNECT x:80 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_vec(),
        b"HEAD /api/v1/messages/sms HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            .to_vec(),
        b"GET /docs/%ff%fe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_vec(),
        b"GET /docs/nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_vec(),
        b"GET /page/%ff HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_vec(),
        format!("GET /{} HTTP/1.1\r\n\r\n", lines("a", 70_000)).into_bytes(),
        send(&format!("X-A: {}\r\n", lines("a", 60_000)), BODY),
        send(&lines("X-A: a\r\n", 2_000), BODY),
        send("X-A: a\r\n b\r\n", BODY),
        send("X-A: a\0b\r\n", BODY),
        send("X-A : b\r\n", BODY),
        send(": b\r\n", BODY),
        String::from_utf8_lossy(&sound)
            .replace("\r\n", "\n")
            .into_bytes(),
        String::from_utf8_lossy(&sound)
            .replace("\r\n", "\r")
            .into_bytes(),
        sized("-1"),
        sized("+39"),
        sized("0x27"),
        sized("39, 39"),
        sized("500"),
        sized("18446744073709551613"),
        sized("18446744073709551616"),
        chunked(" chunked", &format!("{chunk}0\r\n\r\n")),
        chunked(" chunked", &format!("{chunk}0\r\nX-API-Key: other\r\n\r\n")),
        chunked(
            " chunked",
            &format!("{chunk}0\r\n{}\r\n", lines("X-A: a\r\n", 5_000)),
        ),
        chunked(" chunked", &format!("zz\r\n{BODY}")),
        chunked(" chunked", &format!("-1\r\n{BODY}")),
        chunked(" chunked", &format!("ffffffffffffffff\r\n{BODY}")),
        chunked(" chunked", &format!("fffffffffffffffff\r\n{BODY}")),
        chunked(" chunked", &format!("5;{}\r\n{BODY}", lines("a", 40_000))),
        chunked(" chunked", &chunk),
    ];
    shapes.extend(ambiguous());
    // Several on one connection.
    let kept = send(&format!("Content-Length: {length}\r\n"), BODY);
    shapes.push([kept.as_slice(), &kept, &sound].concat());
    shapes
}

/// Requests whose end can be seen in two places, with another one behind the first of them.
pub fn ambiguous() -> Vec<Vec<u8>> {
    let smuggled = "GET /docs/ HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let both = |first: &str, second: &str| {
        send(
            &format!("{first}\r\n{second}\r\n"),
            &format!("0\r\n\r\n{smuggled}"),
        )
    };
    let (length, chunked) = ("Content-Length: 4", "Transfer-Encoding: chunked");
    vec![
        both(length, chunked),
        both(chunked, length),
        both(length, "Content-Length: 5"),
        both(length, "Transfer-Encoding: xchunked"),
        both(length, "Transfer-Encoding: chunked, identity"),
        both(length, "Transfer-Encoding : chunked"),
        both(length, "Transfer-Encoding:\u{b}chunked"),
        both(length, "X-A: b\r\n Transfer-Encoding: chunked"),
        both(chunked, "Transfer-Encoding: identity"),
        both("Content-Length: 4, 4", chunked),
        both("Content-Length: +4", chunked),
    ]
}
