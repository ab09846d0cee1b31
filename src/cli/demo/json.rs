//! The play for scripts: one JSON object per second, and one at the end.

use std::time::Duration;

use serde::Serialize;

use super::file::Facts;
use super::play::Ending;
use super::rules::Rule;
use super::tally::{self, Second};
use crate::domain::Lane;

#[derive(Serialize)]
struct ByLane {
    transactional: u64,
    marketing: u64,
}

impl From<tally::ByLane> for ByLane {
    fn from(counts: tally::ByLane) -> Self {
        Self {
            transactional: counts[Lane::Transactional.index()],
            marketing: counts[Lane::Marketing.index()],
        }
    }
}

#[derive(Serialize)]
struct Latency {
    p50: f64,
    max: f64,
}

impl From<tally::Latency> for Latency {
    fn from(latency: tally::Latency) -> Self {
        let ms = |duration: Duration| (duration.as_secs_f64() * 1e6).round() / 1e3;
        Self {
            p50: ms(latency.median),
            max: ms(latency.max),
        }
    }
}

#[derive(Serialize)]
struct SecondLine {
    second: u32,
    offered: ByLane,
    dispatched: ByLane,
    shed: ByLane,
    waiting: ByLane,
    counter: u32,
    transactional_latency_ms: Option<Latency>,
}

#[derive(Serialize)]
struct RuleLine<'a> {
    name: String,
    held: Option<bool>,
    detail: &'a str,
}

impl<'a> From<&'a Rule> for RuleLine<'a> {
    fn from(rule: &'a Rule) -> Self {
        Self {
            name: rule.name.replace(' ', "_"),
            held: rule.held,
            detail: &rule.detail,
        }
    }
}

#[derive(Serialize)]
struct Summary<'a> {
    held: bool,
    interrupted: bool,
    seconds: f64,
    offered: ByLane,
    dispatched: ByLane,
    ended_otherwise: ByLane,
    waiting: ByLane,
    shed: ByLane,
    dispatched_by_worker: &'a [u64],
    transactional_latency_ms: Option<Latency>,
    rules: Vec<RuleLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a Facts>,
}

/// One second. The latency, in milliseconds, is null when no transactional job was dispatched.
#[must_use]
pub fn second(second: &Second) -> String {
    line(&SecondLine {
        second: second.number,
        offered: second.offered.into(),
        dispatched: second.dispatched.into(),
        shed: second.shed.into(),
        waiting: second.waiting.into(),
        counter: second.window.map_or(0, |window| window.counted),
        transactional_latency_ms: second.latency.map(Latency::from),
    })
}

/// The end. `file` adds what is only known of a file.
#[must_use]
pub fn summary(ending: &Ending, rules: &[Rule], file: Option<&Facts>) -> String {
    let record = &ending.record;
    line(&Summary {
        held: rules.iter().all(|rule| rule.held != Some(false)),
        interrupted: ending.interrupted,
        seconds: ending.lasted.as_secs_f64(),
        offered: record.offered.into(),
        dispatched: record.dispatched.into(),
        ended_otherwise: record.ended.into(),
        waiting: record.waiting.into(),
        shed: ending.sheds.into(),
        dispatched_by_worker: &record.by_worker,
        transactional_latency_ms: record.latency.map(Latency::from),
        rules: rules.iter().map(RuleLine::from).collect(),
        file,
    })
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("numbers and texts with fixed names are JSON")
}
