//! What is a job, what is refused, and what cannot be read at all.

use proptest::prelude::*;
use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::domain::{Lane, LaneRule};

fn read(value: &serde_json::Value) -> Decoding {
    read_bytes(&serde_json::to_vec(value).unwrap())
}

fn read_bytes(bytes: &[u8]) -> Decoding {
    decode(Bytes::copy_from_slice(bytes), None)
}

fn job() -> serde_json::Value {
    json!({
        "id": "job-1", "account_id": "acme", "channel": "sms", "to": "+44 7700 900123",
        "from": "+44 7700 900999", "body": "hello", "origin": "campaign",
    })
}

fn with(field: &str, value: serde_json::Value) -> serde_json::Value {
    let mut job = job();
    job[field] = value;
    job
}

fn sound(decoding: Decoding) -> Job {
    match decoding.decoded {
        Decoded::Job(job) => *job,
        other => panic!("{other:?}"),
    }
}

fn invalid(decoding: Decoding) -> Field {
    match decoding.decoded {
        Decoded::Invalid { field, .. } => field,
        other => panic!("{other:?}"),
    }
}

fn undecodable(decoding: Decoding) -> String {
    match decoding.decoded {
        Decoded::Undecodable { detail, .. } => detail,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_is_read_and_its_numbers_normalised() {
    let job = sound(read(&job()));
    assert_eq!(
        (job.head.id.as_str(), job.head.account.as_str()),
        ("job-1", "acme")
    );
    assert_eq!(
        (&*job.to, job.from.as_deref()),
        ("+447700900123", Some("+447700900999"))
    );
    assert_eq!(
        (job.lane(), job.head.lane_rule),
        (Lane::Marketing, LaneRule::Origin)
    );
    assert_eq!(
        job.content().unwrap().body.map(RawValue::get),
        Some("\"hello\"")
    );
}

#[test]
fn null_counts_as_absent_and_unknown_fields_are_ignored() {
    let optional = Field::ALL.map(Field::as_str);
    for field in optional
        .into_iter()
        .filter(|field| !["id", "account_id", "channel", "to"].contains(field))
    {
        sound(read(&with(field, json!(null))));
    }
    sound(read(&with(
        "some_later_field",
        json!({"deep": [1, 2, {"x": null}]}),
    )));
}

#[test]
fn what_cannot_be_told_apart_is_undecodable() {
    let cases: [&[u8]; 12] = [
        b"",
        b"null",
        b"{",
        b"[]",
        b"\"text\"",
        b"\xff\xfe{}",
        b"\x1f\x8b\x08gzip",
        b"{}",
        br#"{"id":1,"account_id":"a","channel":"sms","to":"+447700900123"}"#,
        br#"{"id":"a b","account_id":"a","channel":"sms","to":"+447700900123"}"#,
        br#"{"id":"a","account_id":"a","channel":7,"to":"+447700900123"}"#,
        br#"{"id":"a","account_id":"a","channel":"sms","to":"+447700900123"} trailing"#,
    ];
    for case in cases {
        assert!(!undecodable(read_bytes(case)).is_empty());
    }
    for field in ["id", "account_id", "channel"] {
        assert!(undecodable(read(&with(field, json!(null)))).contains(field));
        assert!(undecodable(read(&with(field, json!(["x"])))).contains(field));
    }
    let large = with("body", json!("x".repeat(MAX_PAYLOAD)));
    assert!(undecodable(read(&large)).contains("at most 262144"));
}

#[test]
fn what_identifies_a_job_may_not_be_given_twice() {
    for field in ["id", "account_id", "channel", "to"] {
        let text = job().to_string();
        let twice = format!("{{\"{field}\":\"x\",{}", &text[1..]);
        assert_eq!(
            undecodable(read_bytes(twice.as_bytes())),
            format!("`{field}` is given twice")
        );
    }
    let escaped =
        r#"{"\u0069d":"x","id":"y","account_id":"a","channel":"sms","to":"+447700900123"}"#;
    assert_eq!(
        undecodable(read_bytes(escaped.as_bytes())),
        "`id` is given twice"
    );
}

#[test]
fn any_other_field_given_twice_refuses_the_job() {
    for field in Field::ALL.map(Field::as_str).into_iter().skip(4) {
        let value = if ["content", "metadata"].contains(&field) {
            "{}"
        } else {
            "\"x\""
        };
        let text = job().to_string();
        let twice = format!("{{\"{field}\":{value},\"{field}\":{value},{}", &text[1..]);
        assert_eq!(invalid(read_bytes(twice.as_bytes())).as_str(), field);
    }
}

#[test]
fn a_wrong_field_refuses_the_job_and_names_the_field() {
    let wrong = [
        ("channel", json!("fax")),
        ("to", json!(null)),
        ("to", json!(447_700_900_123_u64)),
        ("to", json!("4.479E+11")),
        ("to", json!("07700900123")),
        ("from", json!(["+447700900999"])),
        ("from", json!("Acme\r\nBcc: x")),
        ("service_id", json!(1)),
        ("body", json!({"text": "x"})),
        ("body", json!("a\u{0}b")),
        ("content", json!("x")),
        ("content", json!({"a": [{"b": "\u{0}"}]})),
        ("metadata", json!([1])),
        ("metadata", json!({"a\u{0}": 1})),
        ("campaign_id", json!(5)),
        ("journey_id", json!(true)),
        ("batch_id", json!({})),
        ("category", json!("\u{0}")),
        ("recipient_timezone", json!("America/Nowhere")),
        ("recipient_timezone", json!("")),
        ("enqueued_at", json!("yesterday")),
        // What the database cannot keep would fail whatever is written with it.
        ("enqueued_at", json!("-009977-01-01T00:00:00Z")),
        ("not_before", json!("+002026-01-01T00:00:00Z")),
        ("not_before", json!(1)),
        ("expires_at", json!("2026-13-01T00:00:00Z")),
    ];
    for (field, value) in wrong {
        let decoding = read(&with(field, value.clone()));
        assert_eq!(invalid(decoding).as_str(), field, "{value}");
    }
    let lone_surrogate = job().to_string().replace("hello", "\\ud800");
    assert_eq!(invalid(read_bytes(lone_surrogate.as_bytes())), Field::Body);
}

#[test]
fn a_wrong_field_keeps_the_rest_of_the_head() {
    let mut job = with("to", json!("nonsense"));
    job["campaign_id"] = json!("spring");
    job["priority"] = json!("high");
    let Decoded::Invalid { head, .. } = read(&job).decoded else {
        panic!()
    };
    assert_eq!(
        (head.campaign_id.as_deref(), head.lane),
        (Some("spring"), Lane::Transactional)
    );
}

/// What some languages write for an instant that was never set is none that does harm.
#[test]
fn the_first_years_are_read() {
    for text in ["0001-01-01T00:00:00Z", "0000-01-01T00:00:00+14:00"] {
        let decoded = read(&with("enqueued_at", json!(text))).decoded;
        assert!(matches!(decoded, Decoded::Job(_)), "{text}");
    }
}

#[test]
fn an_instant_that_is_refused_is_in_no_row_either() {
    let job = with("enqueued_at", json!("-009977-01-01T00:00:00Z"));
    let Decoded::Invalid { head, .. } = read(&job).decoded else {
        panic!()
    };
    assert_eq!(head.enqueued_at, None);
}

#[test]
fn hints_that_nobody_understands_decide_nothing_and_are_reported() {
    for value in [
        json!("Marketing"),
        json!("MARKETING "),
        json!("promo"),
        json!(1),
        json!({}),
        json!("\u{0}"),
    ] {
        let mut job = with("priority", value.clone());
        job["metadata"] = json!({"traffic_lane": value, "x": 1});
        let decoding = read(&job);
        assert_eq!(
            decoding.hints.fields().collect::<Vec<_>>(),
            ["traffic_lane", "priority"]
        );
        if value != json!("\u{0}") {
            assert_eq!(sound(decoding).head.lane_rule, LaneRule::Origin);
        }
    }
}

#[test]
fn the_lane_is_read_from_metadata_however_it_is_spelt() {
    for metadata in [
        r#"{"traffic_lane":"transactional"}"#,
        r#"{"traffic\u005flane":"transactional"}"#,
        r#"{"a":"\\","traffic_lane":"marketing","traffic_lane":"transactional"}"#,
    ] {
        let text = job().to_string();
        let text = format!("{{\"metadata\":{metadata},{}", &text[1..]);
        let job = sound(read_bytes(text.as_bytes()));
        assert_eq!(
            (job.lane(), job.head.lane_rule),
            (Lane::Transactional, LaneRule::TrafficLane)
        );
    }
}

#[test]
fn addresses_are_not_numbers() {
    let mut job = with("channel", json!("email"));
    job["to"] = json!(" someone@example.org ");
    assert_eq!(&*sound(read(&job)).to, "someone@example.org");
    for bad in ["  ", "a@b\r\nBcc: x@y"] {
        job["to"] = json!(bad);
        assert_eq!(invalid(read(&job)), Field::To);
    }
}

#[test]
fn no_detail_repeats_what_was_received() {
    for case in ["{\"id\":\"S3NTINEL S3NTINEL\"}", "{\"S3NTINEL", "S3NTINEL"] {
        assert!(!undecodable(read_bytes(case.as_bytes())).contains("S3NTINEL"));
    }
    let Decoded::Invalid { detail, .. } = read(&with("to", json!("S3NTINEL"))).decoded else {
        panic!()
    };
    assert!(!detail.contains("S3NTINEL"));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_bytes(&bytes);
    }

    #[test]
    fn no_field_value_makes_it_panic(place in 0..Field::ALL.len(), value in "\\PC{0,40}", raw in any::<bool>()) {
        let value = if raw { serde_json::from_str(&value).unwrap_or(json!(value)) } else { json!(value) };
        let _ = read(&with(Field::ALL[place].as_str(), value));
    }
}
