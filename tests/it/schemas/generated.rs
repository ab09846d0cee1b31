//! Jobs of all kinds: schema, worker and client agree about them.

use jiff::Timestamp;
use jsonschema::Validator;
use lanekeeper::domain::{Channel, Decoded, Field, Lane, Origin, Priority};
use lanekeeper::intake::decode::decode;
use lanekeeper_client::Job;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};

use super::{JOB, is_sendable, schema, values};

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

/// An address of a domain that can be one, or anything without an `@`: schemas know no domains.
fn recipient() -> impl Strategy<Value = Value> {
    let address = "[a-zA-Z.+'ä]{1,5}@[a-zA-Zä]{1,5}([.][a-z]{2}[.]?)?";
    prop_oneof![
        1 => address.prop_map(Value::from),
        1 => any_json().prop_filter("no @", |to| !to.to_string().contains('@')),
    ]
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
        Field::To => recipient().boxed(),
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
        let mut job = Job::new("j-1", "acme", Channel::Push, text.clone()).unwrap();
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
