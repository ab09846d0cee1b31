//! Reading one message. Whatever is wrong with it concerns that message alone.
//!
//! A message that cannot be told apart from others (no readable `id`, `account_id` or `channel`)
//! is undecodable and goes to the dead queue. One that can is a job: if a field is wrong, it ends
//! as refused, with the field's name in the reason, where its publisher will see it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserializer;
use serde::de::{Deserialize, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::domain::{
    AccountId, Channel, Decoded, Field, Hint, Job, JobHead, JobId, Lane, LaneHints, Origin,
    Payload, Priority, Region, UnrecognisedHints, normalise_number, normalise_sender,
};

/// The largest message that is read, in bytes.
pub const MAX_PAYLOAD: usize = 256 * 1024;

/// The longest channel name that an event repeats, in characters.
const MAX_CHANNEL_ECHO: usize = 32;

/// What reading a message gave, and what is to be counted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoding {
    /// The job, or why there is none.
    pub decoded: Decoded,
    /// Lane hints that were there and not understood.
    pub hints: UnrecognisedHints,
}

/// Reads one message. Numbers without a country code are taken for numbers of `default_region`.
#[must_use]
pub fn decode(payload: Bytes, default_region: Option<Region>) -> Decoding {
    let payload = Payload::new(payload);
    match Fields::of(payload.as_bytes())
        .and_then(|fields| Identity::of(&fields).map(|id| (fields, id)))
    {
        Ok((fields, identity)) => {
            let hints = fields.lane_hints();
            let unrecognised = hints.unrecognised();
            let decoded = Reading::decode(&fields, identity, hints, default_region, &payload);
            Decoding {
                decoded,
                hints: unrecognised,
            }
        }
        Err(detail) => Decoding {
            decoded: Decoded::Undecodable { detail, payload },
            hints: UnrecognisedHints::default(),
        },
    }
}

/// The known fields of a message, each still as its JSON text.
struct Fields<'a> {
    values: [Option<&'a RawValue>; Field::ALL.len()],
    /// A field that identifies the job and was given twice.
    ambiguous: Option<Field>,
    /// Any other field that was given twice: readers may differ in which one they take.
    repeated: Option<Field>,
}

impl<'a> Fields<'a> {
    fn of(payload: &'a [u8]) -> Result<Self, String> {
        if payload.len() > MAX_PAYLOAD {
            return Err(format!(
                "the message has {} bytes; at most {MAX_PAYLOAD} are read",
                payload.len()
            ));
        }
        let text = std::str::from_utf8(payload)
            .map_err(|error| format!("not UTF-8 from byte {} on", error.valid_up_to()))?;
        let fields: Self = serde_json::from_str(text).map_err(|error| {
            format!(
                "not a JSON object: {} at line {} column {}",
                category(&error),
                error.line(),
                error.column()
            )
        })?;
        match fields.ambiguous {
            Some(field) => Err(format!("`{}` is given twice", field.as_str())),
            None => Ok(fields),
        }
    }

    fn get(&self, field: Field) -> Value<'a> {
        self.values[field as usize].map_or(Value::Absent, Value::of)
    }

    fn lane_hints(&self) -> LaneHints {
        LaneHints {
            traffic_lane: match self.get(Field::Metadata) {
                Value::Object(object) => traffic_lane(object),
                _ => Hint::Absent,
            },
            priority: hint(self.get(Field::Priority), Priority::parse),
            origin: hint(self.get(Field::Origin), Origin::parse),
        }
    }
}

/// What kind of error it is, without the text that it was found in.
fn category(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        serde_json::error::Category::Eof => "it ends too early",
        serde_json::error::Category::Syntax => "a syntax error",
        serde_json::error::Category::Data => "another kind of value",
        serde_json::error::Category::Io => "unreadable",
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Fields {
            values: [None; Field::ALL.len()],
            ambiguous: None,
            repeated: None,
        };
        while let Some(Key(field)) = map.next_key()? {
            let Some(field) = field else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let before = fields.values[field as usize].replace(map.next_value()?);
            let identifies = matches!(
                field,
                Field::Id | Field::AccountId | Field::Channel | Field::To
            );
            if before.is_some() {
                let twice = if identifies {
                    &mut fields.ambiguous
                } else {
                    &mut fields.repeated
                };
                twice.get_or_insert(field);
            }
        }
        Ok(fields)
    }
}

/// The name of a field; `None` for one that is not known here.
struct Key(Option<Field>);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field's name")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Key, E> {
                Ok(Key(Field::parse(name)))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// One field's value, by what kind it is.
enum Value<'a> {
    Absent,
    Text(Cow<'a, str>),
    Object(&'a str),
    /// A string that holds a NUL or half a surrogate pair, which no database can store.
    BrokenText,
    Other,
}

impl<'a> Value<'a> {
    fn of(raw: &'a RawValue) -> Self {
        let json = raw.get();
        match json.as_bytes().first() {
            Some(b'n') => Self::Absent,
            Some(b'{') => Self::Object(json),
            Some(b'"') => Self::text(json),
            _ => Self::Other,
        }
    }

    fn text(json: &'a str) -> Self {
        if memchr::memchr(b'\\', json.as_bytes()).is_none() {
            return Self::Text(Cow::Borrowed(&json[1..json.len() - 1]));
        }
        match serde_json::from_str::<String>(json) {
            Ok(text) if !text.contains('\0') => Self::Text(Cow::Owned(text)),
            _ => Self::BrokenText,
        }
    }
}

fn hint<T>(value: Value<'_>, parse: impl Fn(&str) -> Option<T>) -> Hint<T> {
    match value {
        Value::Absent => Hint::Absent,
        Value::Text(text) => parse(&text).map_or(Hint::Unrecognised, Hint::Known),
        Value::Object(_) | Value::BrokenText | Value::Other => Hint::Unrecognised,
    }
}

/// `traffic_lane` in a job's metadata, which may hold anything else besides.
fn traffic_lane(metadata: &str) -> Hint<Lane> {
    let bytes = metadata.as_bytes();
    let may_hold_it = memchr::memmem::find(bytes, b"traffic_lane").is_some();
    let may_spell_it_in_escapes = memchr::memchr(b'\\', bytes).is_some();
    if !may_hold_it && !may_spell_it_in_escapes {
        return Hint::Absent;
    }
    let entries: HashMap<String, &RawValue> = serde_json::from_str(metadata).unwrap_or_default();
    let value = entries
        .get("traffic_lane")
        .map_or(Value::Absent, |raw| Value::of(raw));
    hint(value, Lane::parse)
}

/// What tells a job apart from others. Without it a message is undecodable.
struct Identity<'a> {
    id: JobId,
    account: AccountId,
    channel: Cow<'a, str>,
}

impl<'a> Identity<'a> {
    fn of(fields: &Fields<'a>) -> Result<Self, String> {
        let required = |field: Field| match fields.get(field) {
            Value::Text(text) => Ok(text),
            Value::Absent => Err(format!("`{}` is missing", field.as_str())),
            Value::BrokenText => Err(format!("`{}` is not a sound text", field.as_str())),
            Value::Object(_) | Value::Other => Err(format!("`{}` is not a string", field.as_str())),
        };
        let id = required(Field::Id)?;
        let account = required(Field::AccountId)?;
        let channel = required(Field::Channel)?;
        Ok(Self {
            id: JobId::parse(&id).map_err(|error| format!("`id`: {error}"))?,
            account: AccountId::parse(&account)
                .map_err(|error| format!("`account_id`: {error}"))?,
            channel,
        })
    }
}

/// Reads the remaining fields and remembers the first that is wrong.
struct Reading<'f, 'a> {
    fields: &'f Fields<'a>,
    wrong: Option<(Field, String)>,
}

impl<'f, 'a> Reading<'f, 'a> {
    fn decode(
        fields: &'f Fields<'a>,
        identity: Identity<'a>,
        hints: LaneHints,
        default_region: Option<Region>,
        payload: &Payload,
    ) -> Decoded {
        let mut reading = Self {
            fields,
            wrong: None,
        };
        if let Some(field) = fields.repeated {
            reading.reject(field, "expected once");
        }
        let channel = reading.channel(&identity.channel);
        let to = reading.recipient(channel, default_region);
        let from = reading
            .line(Field::From)
            .map(|from| normalise_sender(&from).into());
        let service_id = reading.boxed(Field::ServiceId);
        reading.content();
        let head = reading.head(identity, channel, hints);
        reading.boxed(Field::Category);
        reading.time_zone();
        let not_before = reading.instant(Field::NotBefore);
        let expires_at = reading.instant(Field::ExpiresAt);
        match (reading.wrong, channel, to) {
            (None, Some(channel), Some(to)) => Decoded::Job(Box::new(Job {
                head,
                channel,
                to,
                from,
                service_id,
                not_before,
                expires_at,
                payload: payload.clone(),
            })),
            (wrong, ..) => {
                let (field, detail) = wrong.unwrap_or((Field::To, "expected a recipient".into()));
                Decoded::Invalid {
                    head: Box::new(head),
                    field,
                    detail,
                }
            }
        }
    }

    fn reject(&mut self, field: Field, expected: impl Into<String>) {
        if self.wrong.is_none() {
            self.wrong = Some((field, expected.into()));
        }
    }

    fn text(&mut self, field: Field) -> Option<Cow<'a, str>> {
        match self.fields.get(field) {
            Value::Absent => None,
            Value::Text(text) => Some(text),
            Value::BrokenText => {
                self.reject(
                    field,
                    "expected a text without NUL and without lone surrogates",
                );
                None
            }
            Value::Object(_) | Value::Other => {
                self.reject(field, "expected a string");
                None
            }
        }
    }

    /// A text that ends up in an address, where a line break would start another header.
    fn line(&mut self, field: Field) -> Option<Cow<'a, str>> {
        let text = self.text(field)?;
        if text.chars().any(char::is_control) {
            self.reject(field, "expected a text without control characters");
        }
        Some(text)
    }

    fn boxed(&mut self, field: Field) -> Option<Box<str>> {
        self.text(field).map(std::convert::Into::into)
    }

    fn channel(&mut self, name: &str) -> Option<Channel> {
        let channel = Channel::parse(name);
        if channel.is_none() {
            let known = Channel::ALL.map(Channel::as_str).join(", ");
            self.reject(Field::Channel, format!("expected one of {known}"));
        }
        channel
    }

    fn recipient(
        &mut self,
        channel: Option<Channel>,
        default_region: Option<Region>,
    ) -> Option<Box<str>> {
        let Some(to) = self.line(Field::To) else {
            self.reject(Field::To, "expected a recipient");
            return None;
        };
        if channel.is_some_and(Channel::is_phone) {
            return match normalise_number(&to, default_region) {
                Ok(number) => Some(number.into()),
                Err(error) => {
                    self.reject(Field::To, error.to_string());
                    None
                }
            };
        }
        let to = to.trim();
        if to.is_empty() {
            self.reject(Field::To, "expected a recipient");
        }
        Some(to.into())
    }

    /// The parts that only the carrier reads: their kinds are checked, their text is not copied.
    fn content(&mut self) {
        self.text(Field::Body);
        for field in [Field::Content, Field::Metadata] {
            match self.fields.get(field) {
                Value::Absent => {}
                Value::Object(object) if is_sound(object) => {}
                Value::Object(_) => {
                    self.reject(
                        field,
                        "expected texts without NUL and without lone surrogates",
                    );
                }
                Value::Text(_) | Value::BrokenText | Value::Other => {
                    self.reject(field, "expected an object");
                }
            }
        }
    }

    fn head(
        &mut self,
        identity: Identity<'_>,
        channel: Option<Channel>,
        hints: LaneHints,
    ) -> JobHead {
        let (lane, lane_rule) = hints.resolve();
        let echo = || {
            identity
                .channel
                .chars()
                .take(MAX_CHANNEL_ECHO)
                .collect::<String>()
        };
        JobHead {
            id: identity.id,
            account: identity.account,
            channel: channel.map_or_else(
                || Cow::Owned(echo()),
                |channel| Cow::Borrowed(channel.as_str()),
            ),
            lane,
            lane_rule,
            enqueued_at: self.instant(Field::EnqueuedAt),
            campaign_id: self.boxed(Field::CampaignId),
            journey_id: self.boxed(Field::JourneyId),
            batch_id: self.boxed(Field::BatchId),
        }
    }

    fn instant(&mut self, field: Field) -> Option<Timestamp> {
        let text = self.text(field)?;
        let instant = text.parse().ok();
        if instant.is_none() {
            self.reject(
                field,
                "expected an RFC 3339 instant, such as 2026-01-31T09:00:00.000Z",
            );
        }
        instant
    }

    fn time_zone(&mut self) {
        let Some(name) = self.text(Field::RecipientTimezone) else {
            return;
        };
        if TimeZone::get(&name).is_err() {
            self.reject(
                Field::RecipientTimezone,
                "expected an IANA time zone, such as Europe/Berlin",
            );
        }
    }
}

/// Whether no text in this JSON, however deep, holds a NUL or half a surrogate pair. Both can only
/// be written as `\u` escapes, so that almost every text is known sound without a second reading.
fn is_sound(json: &str) -> bool {
    if memchr::memmem::find(json.as_bytes(), b"\\u").is_none() {
        return true;
    }
    serde_json::from_str(json).is_ok_and(|value| !holds_nul(&value))
}

fn holds_nul(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::String(text) => text.contains('\0'),
        serde_json::Value::Array(items) => items.iter().any(holds_nul),
        serde_json::Value::Object(entries) => entries
            .iter()
            .any(|(name, value)| name.contains('\0') || holds_nul(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::domain::LaneRule;

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
}
