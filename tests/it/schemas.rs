//! The published JSON Schemas say what the worker does.

mod events;
mod generated;

use jsonschema::Validator;
use lanekeeper::domain::{Channel, Decoded, Field};
use lanekeeper::intake::decode::decode;
use serde_json::{Value, json};

const JOB: &str = include_str!("../../docs/schema/job.schema.json");

fn schema(text: &str) -> (Value, Validator) {
    let schema: Value = serde_json::from_str(text).unwrap();
    assert!(jsonschema::meta::is_valid(&schema));
    let options = jsonschema::options().should_validate_formats(true);
    let validator = options.build(&schema).unwrap();
    (schema, validator)
}

/// Whether a worker would send it.
fn is_sendable(job: &Value) -> bool {
    let decoding = decode(serde_json::to_vec(job).unwrap().into(), None);
    matches!(decoding.decoded, Decoded::Job(_))
}

fn base() -> Value {
    json!({"id": "j-1", "account_id": "acme", "channel": "email", "to": "sam@example.com"})
}

fn with(field: Field, value: Value) -> Value {
    let mut job = base();
    job[field.as_str()] = value;
    job
}

/// Values that schema and worker both take, and that both refuse.
type GoodAndBad = (Vec<Value>, Vec<Value>);

fn texts() -> GoodAndBad {
    let good = vec![json!("a"), json!(""), json!("line\nbreak"), Value::Null];
    (good, vec![json!(7), json!(["a"]), json!({}), json!("a\0")])
}

fn objects() -> GoodAndBad {
    let deep = json!({"a": [1, {"b": ["\0"]}]});
    let good = vec![json!({}), json!({"a": [1, {"b": null}]}), Value::Null];
    (good, vec![json!([]), json!("{}"), deep, json!({"\0": 1})])
}

fn instants() -> GoodAndBad {
    let good = [
        "2026-01-31T09:00:00Z",
        "2024-02-29t09:00:00.123456789+05:30",
        "2024-02-29T09:00:00.12345678901234Z",
        "9999-12-31T23:59:59Z",
    ];
    let mut bad = [
        "",
        "soon",
        "2026-01-31",
        "2026-02-29T09:00:00Z",
        "2026-01-31T25:00:00Z",
        "2026-01-31T09:00:00",
        "2026-01-31T09:00:00+25:00",
    ]
    .map(Value::from)
    .to_vec();
    bad.extend([json!(1_769_850_000), json!({})]);
    let mut good = good.map(Value::from).to_vec();
    good.push(Value::Null);
    (good, bad)
}

fn hints() -> GoodAndBad {
    let good = ["high", "low", "api", "journey", "urgent", "\0"].map(Value::from);
    let mut good = good.to_vec();
    good.extend([json!(7), json!({}), Value::Null]);
    (good, vec![])
}

fn values(field: Field) -> GoodAndBad {
    match field {
        Field::Id => (
            vec![json!("a.B_9:-"), json!("x".repeat(128))],
            vec![
                json!(""),
                json!("a b"),
                json!("ä"),
                json!("x".repeat(129)),
                json!(7),
                Value::Null,
            ],
        ),
        Field::AccountId => (
            vec![json!("a_B-9"), json!("x".repeat(64))],
            vec![
                json!(""),
                json!("a.b"),
                json!("a\n"),
                json!("x".repeat(65)),
                json!(7),
                Value::Null,
            ],
        ),
        Field::Channel => (
            vec![json!("email"), json!("push"), json!("line")],
            vec![json!("fax"), json!("SMS"), json!(""), json!(7), Value::Null],
        ),
        Field::To => (
            vec![
                json!("sam@example.com"),
                json!(" sam@example.com. "),
                json!("日本@例え.jp"),
                json!("o'neil+x..y@a-b_c"),
            ],
            vec![
                json!("Sam <sam@example.com>"),
                json!("mailto:sam@example.com"),
                json!("\"sam\"@example.com"),
                json!("a@x.org,b@x.org"),
                json!("a@b@c"),
                json!("sam@example.com\\"),
                json!("sam@[192.0.2.1]"),
                json!("+447700900123"),
                json!(format!("{}@x.org", "x".repeat(1_024))),
                json!(""),
                json!(" \u{a0}"),
                json!("a\nb"),
                json!("a\u{85}"),
                json!(7),
                json!({}),
                Value::Null,
            ],
        ),
        Field::From => (
            vec![
                json!("Acme"),
                json!("+447700900123"),
                json!(""),
                Value::Null,
            ],
            vec![json!("a\r\nb"), json!("a\0"), json!("\u{9f}"), json!(7)],
        ),
        Field::RecipientTimezone => (
            vec![
                json!("Europe/Berlin"),
                json!("UTC"),
                json!("Etc/GMT+1"),
                json!("America/Argentina/Ushuaia"),
                Value::Null,
            ],
            vec![json!(""), json!("a b"), json!("/UTC"), json!(1), json!({})],
        ),
        Field::CampaignId | Field::JourneyId | Field::BatchId => (
            vec![
                json!("spring 7"),
                json!(""),
                json!("x".repeat(1_024)),
                Value::Null,
            ],
            vec![
                json!("x".repeat(1_025)),
                json!("line\nbreak"),
                json!("\u{9f}"),
                json!(7),
                json!({}),
            ],
        ),
        Field::ServiceId | Field::Body | Field::Category => texts(),
        Field::Content | Field::Metadata => objects(),
        Field::EnqueuedAt | Field::NotBefore | Field::ExpiresAt => instants(),
        Field::Priority | Field::Origin => hints(),
    }
}

#[test]
fn of_each_field_schema_and_worker_take_and_refuse_the_same() {
    let (_, job_schema) = schema(JOB);
    for field in Field::ALL {
        let (good, bad) = values(field);
        let good = good.into_iter().map(|value| (value, true));
        let bad = bad.into_iter().map(|value| (value, false));
        for (value, expected) in good.chain(bad) {
            let job = with(field, value);
            assert_eq!(job_schema.is_valid(&job), expected, "schema: {job}");
            assert_eq!(is_sendable(&job), expected, "worker: {job}");
        }
    }
}

#[test]
fn on_channels_with_ids_of_their_own_a_recipient_need_not_be_an_address() {
    let (_, job_schema) = schema(JOB);
    for channel in ["push", "telegram", "line", "messenger"] {
        for (to, expected) in [
            (" x ", true),
            ("日本", true),
            ("A <b@c>", true),
            (" ", false),
        ] {
            let mut job = with(Field::To, json!(to));
            job["channel"] = json!(channel);
            assert_eq!(job_schema.is_valid(&job), expected, "schema: {job}");
            assert_eq!(is_sendable(&job), expected, "worker: {job}");
        }
    }
}

#[test]
fn of_each_channel_the_schema_knows_the_name() {
    let (schema, _) = schema(JOB);
    let names = Channel::ALL.map(|channel| json!(channel.as_str()));
    assert_eq!(schema["properties"]["channel"]["enum"], json!(names));
    let properties = schema["properties"].as_object().unwrap();
    let fields = Field::ALL.map(Field::as_str);
    assert_eq!(properties.len(), fields.len());
    assert!(fields.iter().all(|field| properties.contains_key(*field)));
}

#[test]
fn without_a_required_field_or_not_as_an_object_neither_takes_it() {
    let (_, job_schema) = schema(JOB);
    for field in ["id", "account_id", "channel", "to"] {
        let mut job = base();
        job.as_object_mut().unwrap().remove(field);
        assert!(!job_schema.is_valid(&job) && !is_sendable(&job), "{field}");
    }
    for job in [json!([base()]), json!("job"), Value::Null] {
        assert!(!job_schema.is_valid(&job) && !is_sendable(&job), "{job}");
    }
    let mut job = base();
    job["of_a_later_version"] = json!({"any": "\0"});
    assert!(job_schema.is_valid(&job) && is_sendable(&job));
}

/// The schema promises less than the worker holds, or the worker takes more than is promised.
#[test]
fn where_schema_and_worker_differ_is_known() {
    let (_, job_schema) = schema(JOB);
    let number = json!({"id": "j", "account_id": "acme", "channel": "sms", "to": "12"});
    let differing = [
        // Only a worker knows the number plans, the zones, and which domains can be.
        (number, true, false),
        (with(Field::To, json!("sam@example..com")), true, false),
        (with(Field::To, json!("sam@xn--a.org")), true, false),
        (
            with(Field::To, json!("sam\u{200b}@example.com")),
            true,
            false,
        ),
        (
            with(Field::RecipientTimezone, json!("Mars/Base")),
            true,
            false,
        ),
        // Schemas count characters, not bytes.
        (
            with(Field::CampaignId, json!("é".repeat(1_000))),
            true,
            false,
        ),
        (
            with(Field::RecipientTimezone, json!("Factory")),
            true,
            false,
        ),
        // Not RFC 3339, and understood all the same.
        (
            with(Field::ExpiresAt, json!("2026-01-31 09:00Z")),
            false,
            true,
        ),
        (
            with(Field::ExpiresAt, json!("2026-01-31T23:59:60Z")),
            false,
            true,
        ),
    ];
    for (job, by_schema, by_worker) in differing {
        assert_eq!(job_schema.is_valid(&job), by_schema, "schema: {job}");
        assert_eq!(is_sendable(&job), by_worker, "worker: {job}");
    }
}

#[test]
fn the_examples_in_the_schema_are_valid() {
    let (schema_of_jobs, jobs) = schema(JOB);
    let examples = schema_of_jobs["examples"].as_array().unwrap();
    assert!(!examples.is_empty());
    for job in examples {
        assert!(jobs.is_valid(job) && is_sendable(job), "{job}");
    }
    for field in Field::ALL {
        let examples = schema_of_jobs["properties"][field.as_str()]["examples"].as_array();
        for example in examples.into_iter().flatten() {
            let mut job = with(field, example.clone());
            if field == Field::To {
                job["channel"] = json!("sms");
            }
            assert!(jobs.is_valid(&job) && is_sendable(&job), "{job}");
        }
    }
}
