//! One message of the dead queue.

use jiff::Timestamp;
use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::AMQPValue;

use crate::domain::Payload;
use crate::intake::consumer::integer;

use super::digest::Digest;
use super::glance::Glance;

/// The longest header value that is read, in characters.
const LONGEST: usize = 500;

/// What is known of a dead message without its body. All texts come from outside: whoever shows
/// them must escape them.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The digest of its body, by which it is named.
    pub digest: Digest,
    /// The length of its body, in bytes.
    pub size: usize,
    /// Why it is here; nothing where whoever put it here has not said so.
    pub reason: Option<String>,
    /// What exactly was wrong.
    pub detail: Option<String>,
    /// Since when it is here, to the second; unknown of what no worker put here, or an old one.
    pub since: Option<Timestamp>,
    /// The job's id, as far as it can be made out; at most 128 characters. An object or array is
    /// not shown, only named.
    pub id: Option<String>,
    /// The account, likewise.
    pub account: Option<String>,
    /// How often it was taken from the queue and returned.
    pub returns: u32,
}

/// A dead message.
#[derive(Clone)]
pub struct Letter {
    /// What is known of it.
    pub facts: Facts,
    /// What it came with.
    pub properties: BasicProperties,
    /// Its body.
    pub payload: Payload,
}

impl Letter {
    pub(super) fn of(delivery: Delivery) -> Self {
        let Delivery {
            properties, data, ..
        } = delivery;
        let glance = Glance::at(&data);
        let facts = Facts {
            digest: Digest::of(&data),
            size: data.len(),
            reason: text(&properties, "x-reason"),
            detail: text(&properties, "x-detail"),
            since: properties.timestamp().and_then(instant),
            id: glance.id,
            account: glance.account,
            returns: returns(&properties),
        };
        Self {
            facts,
            properties,
            payload: Payload::new(data),
        }
    }
}

fn header<'a>(properties: &'a BasicProperties, name: &str) -> Option<&'a AMQPValue> {
    properties.headers().as_ref()?.inner().get(name)
}

fn text(properties: &BasicProperties, name: &str) -> Option<String> {
    let text = match header(properties, name)? {
        AMQPValue::LongString(text) => String::from_utf8_lossy(text.as_bytes()).into_owned(),
        AMQPValue::ShortString(text) => text.to_string(),
        _ => return None,
    };
    Some(text.chars().take(LONGEST).collect())
}

fn instant(seconds: u64) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(seconds).ok()?).ok()
}

fn returns(properties: &BasicProperties) -> u32 {
    let count = header(properties, "x-delivery-count").and_then(integer);
    count
        .and_then(|count| u32::try_from(count).ok())
        .unwrap_or(0)
}
