//! The task that acknowledges what is settled.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use lapin::Channel;
use lapin::options::{BasicAckOptions, BasicNackOptions};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use crate::dispatch::ports::Receipt;

use super::acks::TagTracker;
use super::connection::explain;
use super::status::Source;

/// How long finished deliveries above an open one wait for it, in the hope of one run. The design
/// allows 50 ms; the rest of that is for the way to the broker.
const PATIENCE: Duration = Duration::from_millis(25);

/// How long writing acknowledgements may take before their channel counts as lost.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// How many messages are taken from the inbox at a time.
const INBOX_BATCH: usize = 512;

/// What the task is told.
pub(super) enum Settle {
    /// A channel was opened.
    Opened(Opened),
    /// A channel is gone; the broker will deliver again what is not acknowledged.
    Closed { source: usize, epoch: u64 },
    /// Deliveries are settled.
    Finished(Vec<Receipt>),
    /// Deliveries are to go back to their queues.
    Returned(Vec<Receipt>),
    /// Acknowledge all that can be now, then answer.
    Flush(oneshot::Sender<()>),
}

/// A channel with deliveries to acknowledge.
pub(super) struct Opened {
    pub(super) source: usize,
    pub(super) epoch: u64,
    pub(super) channel: Channel,
    /// To be told when acknowledging fails.
    pub(super) lost: Arc<Notify>,
}

struct Open {
    opened: Opened,
    tags: TagTracker,
}

/// Runs until every sender of the inbox is gone.
pub(super) async fn run(mut inbox: mpsc::UnboundedReceiver<Settle>) {
    let mut settler = Settler::default();
    let mut batch = Vec::with_capacity(INBOX_BATCH);
    loop {
        let due = settler.singles_due;
        tokio::select! {
            count = inbox.recv_many(&mut batch, INBOX_BATCH) => if count == 0 { return },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
        settler.take(batch.drain(..)).await;
    }
}

#[derive(Default)]
struct Settler {
    open: [Option<Open>; Source::ALL.len()],
    /// When finished deliveries above open ones have waited long enough.
    singles_due: Option<Instant>,
}

impl Settler {
    async fn take(&mut self, messages: impl Iterator<Item = Settle>) {
        let mut flushed = Vec::new();
        for message in messages {
            match message {
                Settle::Opened(opened) => {
                    let source = opened.source;
                    let tags = TagTracker::default();
                    self.open[source] = Some(Open { opened, tags });
                }
                Settle::Closed { source, epoch } => {
                    self.open[source].take_if(|open| open.opened.epoch == epoch);
                }
                Settle::Finished(receipts) => self.finish(&receipts),
                Settle::Returned(receipts) => self.give_back(&receipts).await,
                Settle::Flush(answer) => flushed.push(answer),
            }
        }
        let due = self.singles_due.is_some_and(|due| due <= Instant::now());
        self.acknowledge(due || !flushed.is_empty()).await;
        for answer in flushed {
            // Whoever asked may have stopped waiting.
            let _ = answer.send(());
        }
    }

    fn finish(&mut self, receipts: &[Receipt]) {
        let mut stale = 0_usize;
        for receipt in receipts {
            match self.open_for(receipt) {
                Some(open) => open.tags.finish(receipt.tag),
                None => stale += 1,
            }
        }
        if stale > 0 {
            tracing::debug!(stale, "dropped receipts of channels that are gone");
        }
    }

    /// The lowest tag last, so that they stand in their old order at the head of the queue.
    async fn give_back(&mut self, receipts: &[Receipt]) {
        let mut receipts = receipts.to_vec();
        receipts.sort_unstable();
        for receipt in receipts.into_iter().rev() {
            let Some(open) = self.open_for(&receipt) else {
                continue;
            };
            open.tags.returned(receipt.tag);
            let options = BasicNackOptions {
                multiple: false,
                requeue: true,
            };
            let nack = open.opened.channel.basic_nack(receipt.tag, options);
            if !matches!(timeout(WRITE_LIMIT, nack).await, Ok(Ok(()))) {
                open.opened.lost.notify_one();
            }
        }
    }

    fn open_for(&mut self, receipt: &Receipt) -> Option<&mut Open> {
        let source = usize::try_from(receipt.source).ok()?;
        let open = self.open.get_mut(source)?.as_mut()?;
        (open.opened.epoch == receipt.epoch).then_some(open)
    }

    async fn acknowledge(&mut self, singles_too: bool) {
        for slot in &mut self.open {
            let Some(open) = slot else { continue };
            if let Err(reason) = open.acknowledge(singles_too).await {
                let queue = Source::ALL[open.opened.source];
                tracing::warn!(lane = %queue.lane, admitted = queue.admitted, reason,
                    "acknowledging failed: the broker will deliver again");
                open.opened.lost.notify_one();
                *slot = None;
            }
        }
        let waiting = self
            .open
            .iter()
            .flatten()
            .any(|open| open.tags.has_waiting());
        self.singles_due = match self.singles_due {
            _ if !waiting => None,
            Some(due) if !singles_too => Some(due),
            _ => Some(Instant::now() + PATIENCE),
        };
    }
}

impl Open {
    async fn acknowledge(&mut self, singles_too: bool) -> Result<(), String> {
        let run = self.tags.take_run();
        let singles = if singles_too && self.tags.has_waiting() {
            self.tags.take_singles()
        } else {
            Vec::new()
        };
        let run = run.map(|ack| (ack.tag, ack.multiple));
        let acks: Vec<_> = run
            .into_iter()
            .chain(singles.into_iter().map(|tag| (tag, false)))
            .map(|(tag, multiple)| {
                let options = BasicAckOptions { multiple };
                self.opened.channel.basic_ack(tag, options)
            })
            .collect();
        if acks.is_empty() {
            return Ok(());
        }
        let written = timeout(WRITE_LIMIT, join_all(acks)).await;
        let results = written.map_err(|_| "the broker reads nothing".to_owned())?;
        match results.into_iter().find_map(Result::err) {
            Some(error) => Err(explain(&error)),
            None => Ok(()),
        }
    }
}
