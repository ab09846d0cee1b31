//! What is shown of an account's lanes.

use serde::Serialize;
use utoipa::ToSchema;

/// How an account's lanes stand.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LanesView {
    /// The account.
    pub account_id: String,
    /// When this was so.
    #[schema(format = DateTime)]
    pub at: String,
    /// Messages that the account may send per second, in both lanes together.
    pub budget_per_second: u32,
    /// The part of them that only the transactional lane can reach.
    pub reserve_per_second: u32,
    /// The account's counter.
    pub meter: MeterView,
    /// Both lanes, in the order in which they are drained: transactional, marketing.
    pub lanes: Vec<LaneView>,
    /// What is paused or cancelled, the newest first, at most 50 of them.
    pub paused: Vec<PausedView>,
    /// Whether there are more.
    pub paused_is_more: bool,
    /// What could not be asked, so that figures are null.
    pub missing: Vec<Missing>,
}

/// An account's counter.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct MeterView {
    /// `shared`: all processes count together in Redis. `local`: Redis does not answer or takes no
    /// writes, and each process counts for itself, so that all together may send more.
    #[schema(pattern = "^(shared|local)$")]
    pub mode: &'static str,
    /// Messages admitted in the current window, both lanes together; null while Redis does not say.
    pub used: Option<u32>,
    /// How long the window still lasts, in milliseconds; 0 when there is none.
    pub window_left_ms: Option<u64>,
}

/// How one lane stands. Figures of the last minute are those of all processes together; null where
/// they could not be asked.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LaneView {
    /// `transactional` or `marketing`.
    #[schema(pattern = "^(transactional|marketing)$")]
    pub lane: &'static str,
    /// Up to where the lane may push the account's one counter, in messages per window of a second.
    pub limit: u32,
    /// What that counter stands at: messages of both lanes.
    pub used: Option<u32>,
    /// How many more the lane may send in this window.
    pub remaining: Option<u32>,
    /// Messages that carriers took.
    pub dispatched_last_minute: Option<u64>,
    /// Messages that a limit sent back; the same one counts each time.
    pub shed_last_minute: Option<u64>,
    /// The same by limit.
    pub shed_by_limit: Option<ShedView>,
    /// Messages refused for good.
    pub refused_last_minute: Option<u64>,
    /// Messages that no carrier would take.
    pub failed_last_minute: Option<u64>,
    /// Messages that became worthless before they were sent.
    pub expired_last_minute: Option<u64>,
    /// Messages that were cancelled.
    pub cancelled_last_minute: Option<u64>,
    /// Messages that went to wait in the database.
    pub deferred_last_minute: Option<u64>,
    /// Messages of this account that are known to be on their way: `in_workers`, `waiting`, and
    /// `in_own_queue` where it has such a queue. Those that lie in the lane's shared queues are among
    /// `queued_all_accounts` only.
    pub queued: Option<u64>,
    /// Messages of this account that workers hold and have not sent.
    pub in_workers: Option<u64>,
    /// Messages of this account that wait in the database, counted up to 20,000.
    pub waiting: Option<u64>,
    /// Messages of this account that lie in the queue that it has to itself in this lane; null where it
    /// has none and shares the lane's queue with others.
    pub in_own_queue: Option<u64>,
    /// How far that queue has come: `open` (the account's messages are sent there), `draining`
    /// (no more are sent there, and what is in it is still taken) or `closing` (about to be deleted);
    /// null where it has none.
    #[schema(pattern = "^(open|draining|closing)$")]
    pub own_queue_state: Option<&'static str>,
    /// Messages in the lane's queues at the broker, of all accounts: in those that accounts share, the
    /// delay and parking queues included, and in those that single accounts have to themselves.
    pub queued_all_accounts: Option<u64>,
    /// How long ago the oldest of the `queued` messages was queued first, in seconds; null when there
    /// is none.
    pub oldest_seconds: Option<f64>,
    /// How long messages of the last minute took; null when there was none.
    pub latency: Option<LatencyView>,
}

/// Messages that were sent back in the last minute, by the limit that did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct ShedView {
    /// The account's ceiling for the lane.
    pub lane: u64,
    /// The ceiling of a sender number.
    pub number: u64,
    /// The ceiling of a messaging service.
    pub service: u64,
    /// Another try of the same message was under way.
    pub claim: u64,
}

/// From being queued until a carrier had taken the message.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct LatencyView {
    /// Of how many messages.
    pub samples: u64,
    /// Half of them took no longer, in milliseconds.
    pub p50_ms: f64,
    /// 99 of 100 took no longer.
    pub p99_ms: f64,
}

/// Something that is paused or cancelled.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PausedView {
    /// `account`, `campaign`, `journey` or `batch`.
    #[schema(pattern = "^(account|campaign|journey|batch)$")]
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// `paused` or `cancelled`.
    #[schema(pattern = "^(paused|cancelled)$")]
    pub state: &'static str,
    /// Why, where somebody said so.
    pub reason: Option<String>,
    /// Since when, where that is known.
    #[schema(format = DateTime)]
    pub since: Option<String>,
}

/// What could not be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// Redis: the counter and the last minute.
    Redis,
    /// PostgreSQL: what waits and what is paused.
    Database,
    /// The broker: the lengths of its queues.
    Broker,
}

/// What an account did within one second.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SecondView {
    /// Which, in seconds since the Unix epoch, by Redis's clock.
    pub second: u64,
    /// In the transactional lane.
    pub transactional: LaneSecondView,
    /// In the marketing lane.
    pub marketing: LaneSecondView,
}

/// What happened in one lane within one second.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LaneSecondView {
    /// Messages that carriers took.
    pub dispatched: u32,
    /// Messages that a limit sent back.
    pub shed: u32,
    /// Messages refused for good.
    pub refused: u32,
    /// Messages that workers held and had not sent, at the second's end.
    pub in_workers: u32,
    /// Half of the dispatched messages took no longer from being queued, in milliseconds.
    pub p50_ms: Option<f64>,
    /// 99 of 100 took no longer.
    pub p99_ms: Option<f64>,
}
