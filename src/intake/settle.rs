//! The task that acknowledges what is settled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use lapin::Channel;
use lapin::options::{BasicAckOptions, BasicNackOptions};
use lapin::types::ShortString;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use crate::dispatch::ports::Receipt;

use super::acks::TagTracker;
use super::connection::explain;

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
    Closed { epoch: u64 },
    /// Deliveries are settled.
    Finished(Vec<Receipt>),
    /// Deliveries are to go back to their queues.
    Returned(Vec<Receipt>),
    /// Answer when everything up to this delivery is settled.
    Leaving {
        last: Receipt,
        answer: oneshot::Sender<()>,
    },
    /// Acknowledge all that can be now, then answer.
    Flush(oneshot::Sender<()>),
}

/// A channel with deliveries to acknowledge.
pub(super) struct Opened {
    pub(super) epoch: u64,
    pub(super) queue: ShortString,
    pub(super) channel: Channel,
    /// To be told when acknowledging fails.
    pub(super) lost: Arc<Notify>,
}

struct Open {
    opened: Opened,
    tags: TagTracker,
    /// Who waits for everything up to which delivery.
    leaving: Option<(u64, oneshot::Sender<()>)>,
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
    /// By epoch.
    open: HashMap<u64, Open>,
    /// When finished deliveries above open ones have waited long enough.
    singles_due: Option<Instant>,
}

impl Settler {
    async fn take(&mut self, messages: impl Iterator<Item = Settle>) {
        let mut flushed = Vec::new();
        for message in messages {
            match message {
                Settle::Opened(opened) => {
                    let open = Open {
                        tags: TagTracker::default(),
                        leaving: None,
                        opened,
                    };
                    self.open.insert(open.opened.epoch, open);
                }
                Settle::Closed { epoch } => {
                    self.open.remove(&epoch);
                }
                Settle::Finished(receipts) => self.finish(&receipts),
                Settle::Returned(receipts) => self.give_back(&receipts).await,
                Settle::Leaving { last, answer } => {
                    if let Some(open) = self.open.get_mut(&last.epoch) {
                        open.leaving = Some((last.tag, answer));
                    }
                }
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
            match self.open.get_mut(&receipt.epoch) {
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
            let Some(open) = self.open.get_mut(&receipt.epoch) else {
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

    async fn acknowledge(&mut self, singles_too: bool) {
        let mut lost = Vec::new();
        for (epoch, open) in &mut self.open {
            if let Err(reason) = open.acknowledge(singles_too).await {
                tracing::warn!(queue = %open.opened.queue, reason,
                    "acknowledging failed: the broker will deliver again");
                open.opened.lost.notify_one();
                lost.push(*epoch);
            }
        }
        for epoch in lost {
            self.open.remove(&epoch);
        }
        let waiting = self.open.values().any(|open| open.tags.has_waiting());
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
        self.send(run.map(|ack| (ack.tag, ack.multiple)), singles)
            .await?;
        let has_left = |(last, _): &mut (u64, _)| self.tags.is_settled_to(*last);
        if let Some((_, answer)) = self.leaving.take_if(has_left) {
            // Whoever asked may have stopped waiting.
            let _ = answer.send(());
        }
        Ok(())
    }

    async fn send(&self, run: Option<(u64, bool)>, singles: Vec<u64>) -> Result<(), String> {
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
