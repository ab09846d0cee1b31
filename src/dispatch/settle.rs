//! Last stage of a job: its outcome is written down and announced, and only then is its delivery
//! acknowledged.

use std::borrow::Cow;
use std::collections::HashMap;
use std::iter::zip;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::books::{Books, count};
use super::in_hand::InHand;
use super::ports::{Broker, Ended, EventBatch, Receipt, Records};
use crate::domain::{AccountId, Capped, JobHead, JobHeaders, Outcome, OutcomeEvent, Refusal};
use crate::telemetry::Telemetry;

/// The most jobs that are settled in one go.
const BATCH: usize = 1024;
/// The most events in one message, by contract.
const EVENTS_PER_MESSAGE: usize = 256;
/// How long after a failed announcement the next is tried.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);

/// Word to the dispatcher: whether the ledger keeps up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LedgerKeepsUp(pub bool);

/// How a job ends that no carrier has taken.
#[derive(Debug)]
pub(super) struct Unsent {
    pub outcome: Outcome,
    pub detail: Option<Cow<'static, str>>,
    pub next_allowed_at: Option<Timestamp>,
}

impl Unsent {
    /// An outcome that says it all.
    pub fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            detail: None,
            next_allowed_at: None,
        }
    }

    /// A refusal by a frequency cap.
    pub fn capped(capped: &Capped) -> Self {
        let until = i64::try_from(capped.until_ms).ok();
        Self {
            outcome: Outcome::Refused(Refusal::FrequencyCap),
            detail: Some(Cow::Owned(format!("cap {}", capped.cap))),
            next_allowed_at: until.and_then(|ms| Timestamp::from_millisecond(ms).ok()),
        }
    }
}

/// A job that has ended, before anybody was told.
#[derive(Debug)]
pub(super) struct Settlement {
    pub receipt: Receipt,
    pub ended: Ended,
}

impl Settlement {
    /// The end of a job in hand.
    pub fn of(in_hand: InHand, outcome: Outcome, settled_at: Timestamp) -> Self {
        Self::unsent(in_hand, Unsent::of(outcome), settled_at)
    }

    /// The end of a job in hand, with what is to be said of it.
    pub fn unsent(in_hand: InHand, end: Unsent, settled_at: Timestamp) -> Self {
        let headers = JobHeaders {
            attempts: in_hand.attempts,
            ..in_hand.headers
        };
        let (job, admission) = (*in_hand.job, in_hand.admission);
        let mut settlement = Self::of_head(in_hand.receipt, job.head, headers, end, settled_at);
        settlement.ended.recipient = Some(job.to);
        settlement.ended.admission = admission;
        settlement
    }

    /// The end of a job of which no more could be read than what identifies it.
    pub fn of_head(
        receipt: Receipt,
        head: JobHead,
        headers: JobHeaders,
        end: Unsent,
        settled_at: Timestamp,
    ) -> Self {
        let ended = Ended {
            head,
            recipient: None,
            outcome: end.outcome,
            detail: end.detail,
            carrier: None,
            carrier_ref: None,
            attempts: headers.attempts,
            sheds: headers.sheds,
            admission: None,
            settled_at,
            next_allowed_at: end.next_allowed_at,
            repeated: false,
        };
        Self { receipt, ended }
    }
}

/// The stage's own means.
pub(super) struct Settler<B, R> {
    pub broker: Arc<B>,
    pub books: Books<R>,
    pub telemetry: Telemetry,
    /// Whether outcome events are published at all.
    pub announce: bool,
}

impl<B: Broker, R: Records> Settler<B, R> {
    /// Runs until the sending side is closed and everything is settled that can be.
    pub async fn run<E: From<LedgerKeepsUp>>(
        mut self,
        mut ended: mpsc::UnboundedReceiver<Settlement>,
        report: mpsc::UnboundedSender<E>,
    ) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut kept_up = true;
        let mut has_tried = false;
        loop {
            // In turns: what has ended now does not wait for all that the ledger has missed, nor the
            // other way round.
            let its_turn = !has_tried || ended.is_empty();
            let due = self.books.next_try().filter(|_| its_turn);
            tokio::select! {
                biased;
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    has_tried = true;
                    self.catch_up().await;
                }
                count = ended.recv_many(&mut batch, BATCH) => {
                    if count == 0 {
                        break;
                    }
                    has_tried = false;
                    self.settle(std::mem::take(&mut batch)).await;
                }
            }
            if self.books.keep_up() != kept_up {
                kept_up = self.books.keep_up();
                // Nobody listens any more when the worker is stopping.
                let _ = report.send(E::from(LedgerKeepsUp(kept_up)));
            }
        }
        self.write_the_rest().await;
        self.books.close().await;
    }

    /// A last try, of as much as the ledger takes.
    async fn write_the_rest(&mut self) {
        let mut left = usize::MAX;
        while self.books.left() > 0 && self.books.left() < left {
            left = self.books.left();
            self.catch_up().await;
        }
    }

    async fn settle(&mut self, settlements: Vec<Settlement>) {
        let mut receipts = Vec::with_capacity(settlements.len());
        let mut ended = Vec::with_capacity(settlements.len());
        for settlement in settlements {
            receipts.push(settlement.receipt);
            ended.push(settlement.ended);
        }
        let announcing = announce_all(&*self.broker, self.announce, &receipts, &ended);
        let (written, ()) = tokio::join!(self.books.write(&ended), announcing);
        let done = if written {
            for one in &ended {
                count(&self.telemetry, one);
            }
            receipts
        } else {
            self.books.put_off(receipts, ended)
        };
        self.broker.acknowledge(done);
    }

    /// Writes down some of what could not be written before.
    async fn catch_up(&mut self) {
        let done = self.books.catch_up().await;
        if !done.is_empty() {
            self.broker.acknowledge(done);
        }
    }
}

/// Announces every outcome, however often it takes. Jobs whose deliveries are gone come again; their
/// events are published then.
async fn announce_all<B: Broker>(
    broker: &B,
    announce: bool,
    receipts: &[Receipt],
    ended: &[Ended],
) {
    let mut groups = if announce { grouped(ended) } else { Vec::new() };
    while !groups.is_empty() {
        let messages = groups.iter().map(|group| message(ended, group)).collect();
        let results = broker.announce(messages).await;
        let failed = zip(groups, results).filter(|(_, result)| result.is_err());
        groups = failed
            .map(|(mut group, _)| {
                group.retain(|place| broker.is_live(&receipts[*place]));
                group
            })
            .filter(|group| !group.is_empty())
            .collect();
        if !groups.is_empty() {
            sleep(PAUSE_AFTER_FAILURE).await;
        }
    }
}

/// Places of jobs of one account and outcome, at most as many as one message may tell of.
fn grouped(ended: &[Ended]) -> Vec<Vec<usize>> {
    let mut open: HashMap<(&AccountId, &'static str), Vec<usize>> = HashMap::new();
    let mut full = Vec::new();
    for (place, one) in ended.iter().enumerate() {
        let key = (&one.head.account, one.outcome.as_str());
        let group = open.entry(key).or_default();
        group.push(place);
        if group.len() == EVENTS_PER_MESSAGE {
            full.push(std::mem::take(group));
        }
    }
    full.extend(open.into_values().filter(|group| !group.is_empty()));
    full
}

fn message(ended: &[Ended], group: &[usize]) -> EventBatch {
    let events: Vec<_> = group.iter().map(|place| event(&ended[*place])).collect();
    let first = &ended[group[0]];
    EventBatch {
        account: first.head.account.clone(),
        outcome: first.outcome.as_str(),
        body: serde_json::to_vec(&events).expect("texts and numbers always have a JSON form"),
    }
}

fn event(ended: &Ended) -> OutcomeEvent<'_> {
    OutcomeEvent {
        head: &ended.head,
        outcome: ended.outcome,
        detail: ended.detail.as_deref(),
        carrier: ended.carrier.as_deref(),
        carrier_ref: ended.carrier_ref.as_deref(),
        attempts: ended.attempts,
        sheds: ended.sheds,
        settled_at: ended.settled_at,
        next_allowed_at: ended.next_allowed_at,
    }
}
