//! Last stage of a job: its outcome is announced, and only then is its delivery acknowledged.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::in_hand::InHand;
use super::ports::{Broker, EventBatch, Receipt};
use crate::domain::{AccountId, JobHead, Outcome, OutcomeEvent};
use crate::telemetry::Telemetry;

/// The most jobs that are settled in one go.
const BATCH: usize = 1024;
/// The most events in one message, by contract.
const EVENTS_PER_MESSAGE: usize = 256;
/// How long after a failed announcement the next is tried.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);

/// A job that has ended, before anybody was told.
#[derive(Debug)]
pub(super) struct Settlement {
    pub receipt: Receipt,
    pub head: JobHead,
    pub outcome: Outcome,
    pub detail: Option<Cow<'static, str>>,
    pub carrier: Option<Arc<str>>,
    pub carrier_ref: Option<Arc<str>>,
    pub attempts: u32,
    pub sheds: u32,
    pub settled_at: Timestamp,
    /// The outcome of a job that had ended before: told again, not counted again.
    pub repeated: bool,
}

impl Settlement {
    /// The end of a job in hand.
    pub fn of(in_hand: InHand, outcome: Outcome, settled_at: Timestamp) -> Self {
        Self {
            receipt: in_hand.receipt,
            head: in_hand.job.head,
            outcome,
            detail: None,
            carrier: None,
            carrier_ref: None,
            attempts: in_hand.attempts,
            sheds: in_hand.headers.sheds,
            settled_at,
            repeated: false,
        }
    }

    fn event(&self) -> OutcomeEvent<'_> {
        OutcomeEvent {
            head: &self.head,
            outcome: self.outcome,
            detail: self.detail.as_deref(),
            carrier: self.carrier.as_deref(),
            carrier_ref: self.carrier_ref.as_deref(),
            attempts: self.attempts,
            sheds: self.sheds,
            settled_at: self.settled_at,
            next_allowed_at: None,
        }
    }
}

/// The stage's own means.
pub(super) struct Settler<B> {
    pub broker: Arc<B>,
    pub telemetry: Telemetry,
    /// Whether outcome events are published at all.
    pub announce: bool,
}

impl<B: Broker> Settler<B> {
    /// Runs until the sending side is closed and everything is settled.
    pub async fn run(self, mut ended: mpsc::UnboundedReceiver<Settlement>) {
        let mut batch = Vec::with_capacity(BATCH);
        while ended.recv_many(&mut batch, BATCH).await > 0 {
            self.settle(std::mem::take(&mut batch)).await;
        }
    }

    async fn settle(&self, settlements: Vec<Settlement>) {
        if !self.announce {
            return self.acknowledge(settlements);
        }
        let mut groups = grouped(settlements);
        loop {
            let results = self
                .broker
                .announce(groups.iter().map(|group| message(group)).collect())
                .await;
            let mut failed = Vec::new();
            for (group, result) in groups.into_iter().zip(results) {
                match result {
                    Ok(()) => self.acknowledge(group),
                    Err(_) => failed.push(group),
                }
            }
            groups = self.still_ours(failed);
            if groups.is_empty() {
                return;
            }
            sleep(PAUSE_AFTER_FAILURE).await;
        }
    }

    /// Jobs whose deliveries are gone come again; their events are published then.
    fn still_ours(&self, groups: Vec<Vec<Settlement>>) -> Vec<Vec<Settlement>> {
        let live = |mut group: Vec<Settlement>| {
            group.retain(|settlement| self.broker.is_live(&settlement.receipt));
            (!group.is_empty()).then_some(group)
        };
        groups.into_iter().filter_map(live).collect()
    }

    fn acknowledge(&self, settlements: Vec<Settlement>) {
        for settlement in settlements.iter().filter(|settlement| !settlement.repeated) {
            self.telemetry
                .settled(settlement.head.lane, settlement.outcome);
        }
        self.broker.acknowledge(
            settlements
                .into_iter()
                .map(|settlement| settlement.receipt)
                .collect(),
        );
    }
}

/// Settlements of one account and outcome, at most as many as one message may tell of.
fn grouped(settlements: Vec<Settlement>) -> Vec<Vec<Settlement>> {
    let mut open: HashMap<(AccountId, &'static str), Vec<Settlement>> = HashMap::new();
    let mut full = Vec::new();
    for settlement in settlements {
        let key = (settlement.head.account.clone(), settlement.outcome.as_str());
        let group = open.entry(key).or_default();
        group.push(settlement);
        if group.len() == EVENTS_PER_MESSAGE {
            full.push(std::mem::take(group));
        }
    }
    full.extend(open.into_values().filter(|group| !group.is_empty()));
    full
}

fn message(group: &[Settlement]) -> EventBatch {
    let events: Vec<_> = group.iter().map(Settlement::event).collect();
    EventBatch {
        account: group[0].head.account.clone(),
        outcome: group[0].outcome.as_str(),
        body: serde_json::to_vec(&events).expect("texts and numbers always have a JSON form"),
    }
}
