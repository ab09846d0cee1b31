//! The published JSON Schemas say what the worker does.

use jiff::Timestamp;
use jsonschema::Validator;
use lanekeeper::domain::{
    AccountId, Channel, Decoded, Failure, Field, JobHead, JobId, Lane, LaneRule, Origin, Outcome,
    OutcomeEvent, Priority, Refusal,
};
use lanekeeper::intake::decode::decode;
use lanekeeper_client::Job;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

const JOB: &str = include_str!("../../docs/schema/job.schema.json");
const EVENTS: &str = include_str!("../../docs/schema/outcome-events.schema.json");

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

/// Good and bad values of a field, which schema and worker agree about.
fn values(field: Field) -> (Vec<Value>, Vec<Value>) {
    let text = || {
        let good = vec![json!("a"), json!(""), json!("line\nbreak"), Value::Null];
        (good, vec![json!(7), json!(["a"]), json!({}), json!("a\0")])
    };
    let object = || {
        let deep = json!({"a": [1, {"b": ["\0"]}]});
        let good = vec![json!({}), json!({"a": [1, {"b": null}]}), Value::Null];
        (good, vec![json!([]), json!("{}"), deep, json!({"\0": 1})])
    };
    let instant = || {
        let good = [
            "2026-01-31T09:00:00Z",
            "2024-02-29t09:00:00.123456789+05:30",
        ];
        let mut bad = [
            "",
            "soon",
            "2026-01-31",
            "2026-02-29T09:00:00Z",
            "2026-01-31T25:00:00Z",
            "2026-01-31T09:00:00",
        ]
        .map(Value::from)
        .to_vec();
        bad.extend([json!(1_769_850_000), json!({})]);
        let mut good = good.map(Value::from).to_vec();
        good.push(Value::Null);
        (good, bad)
    };
    let anything = || {
        let good = ["high", "low", "api", "journey", "urgent", "\0"].map(Value::from);
        let mut good = good.to_vec();
        good.extend([json!(7), json!({}), Value::Null]);
        (good, vec![])
    };
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
            vec![json!("sam@example.com"), json!(" x "), json!("日本")],
            vec![
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
        Field::ServiceId
        | Field::Body
        | Field::CampaignId
        | Field::JourneyId
        | Field::BatchId
        | Field::Category => text(),
        Field::Content | Field::Metadata => object(),
        Field::EnqueuedAt | Field::NotBefore | Field::ExpiresAt => instant(),
        Field::Priority | Field::Origin => anything(),
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
        // Only a worker knows the number plans and the zones.
        (number, true, false),
        (
            with(Field::RecipientTimezone, json!("Mars/Base")),
            true,
            false,
        ),
        // Past the last instant that a worker can compute with.
        (
            with(Field::ExpiresAt, json!("9999-12-31T23:59:59Z")),
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
fn the_examples_in_the_schemas_are_valid() {
    let (schema_of_jobs, jobs) = schema(JOB);
    let examples = schema_of_jobs["examples"].as_array().unwrap();
    assert!(!examples.is_empty());
    for job in examples {
        assert!(jobs.is_valid(job) && is_sendable(job), "{job}");
    }
    for field in Field::ALL {
        let examples = schema_of_jobs["properties"][field.as_str()]["examples"].as_array();
        for example in examples.into_iter().flatten() {
            let job = with(field, example.clone());
            assert!(jobs.is_valid(&job) && is_sendable(&job), "{job}");
        }
    }
    let (schema_of_events, events) = schema(EVENTS);
    for message in schema_of_events["examples"].as_array().unwrap() {
        assert!(events.is_valid(message), "{message}");
    }
}

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => "\\PC{0,12}".prop_map(Value::from),
        1 => select(vec!["a\0", "\n", "\u{7f}", " ", "high", "api", "marketing"]).prop_map(Value::from),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => text(),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let entries = prop::collection::btree_map("[a-z\0]{0,3}", inner.clone(), 0..3);
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(Value::from),
            entries.prop_map(|entries| Value::from(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn instant() -> impl Strategy<Value = Value> {
    let date = (1900..2200, 0..14, 0..33).prop_map(|(y, m, d)| format!("{y:04}-{m:02}-{d:02}"));
    let time = (0..26, 0..62, 0..60).prop_map(|(h, m, s)| format!("{h:02}:{m:02}:{s:02}"));
    let rest = select(vec![
        "Z",
        "z",
        ".5Z",
        ".123456789+01:00",
        "-23:59",
        "+24:00",
        ".Z",
        "",
        "+1:00",
    ]);
    let made =
        (date, time, rest).prop_map(|(date, time, rest)| format!("{date}T{time}{rest}").into());
    prop_oneof![4 => made, 1 => any_json()]
}

/// Values of a field: of its type mostly, of any other sometimes. A recipient is no number, because
/// schemas know no number plans, and a zone that looks like one exists.
fn value_of(field: Field) -> BoxedStrategy<Value> {
    match field {
        Field::Id => prop_oneof!["[A-Za-z0-9._:-]{1,128}", "\\PC{0,9}"]
            .prop_map(Value::from)
            .boxed(),
        Field::AccountId => prop_oneof!["[A-Za-z0-9_-]{1,64}", "\\PC{0,9}"]
            .prop_map(Value::from)
            .boxed(),
        Field::Channel => select(vec![
            "email",
            "messenger",
            "line",
            "telegram",
            "push",
            "fax",
        ])
        .prop_map(Value::from)
        .boxed(),
        Field::EnqueuedAt | Field::NotBefore | Field::ExpiresAt => instant().boxed(),
        Field::RecipientTimezone => select(values(field).0).boxed(),
        _ => any_json().boxed(),
    }
}

fn jobs() -> impl Strategy<Value = Value> {
    let required = [Field::Id, Field::AccountId, Field::Channel, Field::To];
    let usual = prop::sample::subsequence(Field::ALL.to_vec(), 0..5);
    let fields = usual.prop_map(move |mut fields| {
        fields.retain(|field| !required.contains(field));
        [&required[..], &fields].concat()
    });
    fields.prop_flat_map(|fields| {
        let names = fields
            .iter()
            .map(|field| field.as_str().to_owned())
            .collect::<Vec<_>>();
        let values = fields.into_iter().map(value_of).collect::<Vec<_>>();
        values.prop_map(move |values| {
            Value::from(names.iter().cloned().zip(values).collect::<Map<_, _>>())
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn of_any_job_schema_and_worker_say_the_same(job in jobs()) {
        thread_local!(static SCHEMA: Validator = schema(JOB).1);
        let valid = SCHEMA.with(|schema| schema.is_valid(&job));
        prop_assert_eq!(valid, is_sendable(&job), "{}", job);
    }

    #[test]
    fn a_job_that_a_client_makes_is_valid_and_has_the_lane_that_the_worker_gives_it(
        text in "\\PC{0,9}",
        metadata in any_json(),
        lane in prop::option::of(select(&Lane::ALL)),
        priority in prop::option::of(select(&Priority::ALL)),
        origin in prop::option::of(select(&Origin::ALL)),
        millis in -62_135_596_800_000_i64..253_000_000_000_000,
    ) {
        thread_local!(static SCHEMA: Validator = schema(JOB).1);
        let at = Timestamp::from_millisecond(millis).unwrap();
        let mut job = Job::new("j-1", "acme", Channel::Email, text.clone()).unwrap();
        job = job.body(text.clone()).from(text.clone()).category(text).expires_at(at).enqueued_at(at);
        job = job.metadata("any", metadata.clone()).metadata("traffic_lane", metadata);
        if let Some(lane) = lane { job = job.traffic_lane(lane); }
        if let Some(priority) = priority { job = job.priority(priority); }
        if let Some(origin) = origin { job = job.origin(origin); }
        let Ok(bytes) = job.to_json() else { return Ok(()) };
        let json: Value = serde_json::from_slice(&bytes).unwrap();
        prop_assert!(SCHEMA.with(|schema| schema.is_valid(&json)), "{}", json);
        let Decoded::Job(decoded) = decode(bytes.into(), None).decoded else {
            return Err(TestCaseError::fail(format!("refused: {json}")));
        };
        prop_assert_eq!((decoded.head.lane, decoded.head.lane_rule), job.lane_and_rule());
    }
}

fn outcomes() -> Vec<Outcome> {
    let invalid = Field::ALL.map(|field| Outcome::Refused(Refusal::Invalid(field)));
    let mut outcomes = vec![
        Outcome::Dispatched,
        Outcome::Expired,
        Outcome::Refused(Refusal::UnknownAccount),
        Outcome::Failed(Failure::CarrierRejected),
        Outcome::Failed(Failure::AttemptsExhausted),
    ];
    outcomes.extend(invalid);
    outcomes
}

fn event(outcome: Outcome, full: bool) -> Value {
    let some = |text: &str| full.then(|| text.into());
    let head = JobHead {
        id: JobId::parse("j-1").unwrap(),
        account: AccountId::parse("acme").unwrap(),
        channel: "sms".into(),
        lane: Lane::Marketing,
        lane_rule: LaneRule::Origin,
        enqueued_at: full.then_some(Timestamp::UNIX_EPOCH),
        campaign_id: some("c"),
        journey_id: some("j"),
        batch_id: some("b"),
    };
    let event = OutcomeEvent {
        head: &head,
        outcome,
        detail: full.then_some("status 400"),
        carrier: full.then_some("default"),
        carrier_ref: full.then_some("ref"),
        attempts: 1,
        sheds: 2,
        settled_at: Timestamp::UNIX_EPOCH,
    };
    serde_json::to_value(event).unwrap()
}

#[test]
fn every_event_that_a_worker_makes_is_valid() {
    let (_, events) = schema(EVENTS);
    for outcome in outcomes() {
        for full in [true, false] {
            let message = json!([event(outcome, full)]);
            let errors: Vec<_> = events
                .iter_errors(&message)
                .map(|e| e.to_string())
                .collect();
            assert!(errors.is_empty(), "{message}: {errors:?}");
        }
    }
}

#[test]
fn what_is_no_message_of_events_is_invalid() {
    let (_, events) = schema(EVENTS);
    let good = event(Outcome::Dispatched, true);
    assert!(events.is_valid(&json!(vec![&good; 256])));
    for wrong in [json!([]), json!(vec![&good; 257]), good.clone()] {
        assert!(!events.is_valid(&wrong));
    }
    let names: Vec<_> = good.as_object().unwrap().keys().cloned().collect();
    for name in names {
        let mut event = good.clone();
        event.as_object_mut().unwrap().remove(&name);
        assert!(!events.is_valid(&json!([event])), "without {name}");
    }
    let wrong = [
        ("outcome", json!("dead")),
        ("lane", json!("bulk")),
        ("settled_at", json!("2026-01-31")),
        ("attempts", json!(-1)),
        ("reason", json!(7)),
    ];
    for (name, value) in wrong {
        let mut event = good.clone();
        event[name] = value;
        assert!(!events.is_valid(&json!([event])), "{name}");
    }
    let mut refused = event(Outcome::Refused(Refusal::UnknownAccount), true);
    refused["reason"] = json!("because");
    assert!(!events.is_valid(&json!([refused])));
}
