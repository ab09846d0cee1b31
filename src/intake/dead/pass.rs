//! One pass through the dead queue: what comes, what becomes of it, and how the pass ended.

use std::time::Duration;

use lapin::Channel;
use lapin::message::BasicGetMessage;
use lapin::options::{BasicAckOptions, BasicGetOptions};
use lapin::types::ShortString;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::dispatch::ports::PublishError;
use crate::intake::connection::explain;
use crate::intake::error::IntakeError;
use crate::intake::feed::Feed;
use crate::intake::names::Names;
use crate::intake::options::AmqpOptions;
use crate::intake::outgoing::Outgoing;
use crate::intake::{Purpose, supervisor::CLOSE_LIMIT};

use super::error::DeadError;
use super::letter::Letter;

/// A message that has returned so often is moved. Brokers drop one after 20 returns.
const MOVE_AFTER: u32 = 10;

/// The most messages that are published in one go, and the bytes after which it is time. Each is
/// acknowledged by itself, and of more than 32 at once a broker may forget some when the channel
/// closes: they would come back.
const BATCH: usize = 24;
const BATCH_BYTES: usize = 1024 * 1024;

/// A broker closes a channel whose delivery stays unacknowledged for 30 minutes.
const LONGEST: Duration = Duration::from_secs(20 * 60);

/// What is to become of a message.
pub enum Fate {
    /// It stays.
    Stay,
    /// It goes, when this is stored.
    Publish(Box<Outgoing>),
    /// It goes for good.
    Drop,
}

/// How a pass ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Everything was looked at that was there at its beginning.
    Complete,
    /// It was told to stop.
    Stopped,
    /// It had to end, before the broker takes its channel away: the next one goes on.
    OutOfTime,
    /// Something could not be published, and stays.
    Unpublished(PublishError),
}

/// One pass over an open channel.
pub(super) struct Pass<'a> {
    channel: &'a Channel,
    names: &'a Names,
    options: &'a AmqpOptions,
    stop: &'a CancellationToken,
    /// Opened when it is first needed: looking mostly needs none.
    feed: Option<Feed>,
    pending: Vec<Pending>,
    pending_bytes: usize,
    /// The tags of what was taken and stays, in order.
    staying: Vec<u64>,
    gone: u64,
}

/// A message that goes when its copy is stored.
struct Pending {
    tag: u64,
    copy: Outgoing,
    /// Whether the copy goes to the end of this same queue.
    moves: bool,
}

impl<'a> Pass<'a> {
    pub(super) fn over(
        channel: &'a Channel,
        names: &'a Names,
        options: &'a AmqpOptions,
        stop: &'a CancellationToken,
    ) -> Self {
        Self {
            channel,
            names,
            options,
            stop,
            feed: None,
            pending: Vec::new(),
            pending_bytes: 0,
            staying: Vec::new(),
            gone: 0,
        }
    }

    /// How many messages have left, published or dropped, and the tags of those that have not.
    pub(super) fn into_parts(self) -> (u64, Vec<u64>) {
        (self.gone, self.staying)
    }

    /// Takes each message that is there at the beginning and does with it as `decide` says. What
    /// joins meanwhile is left for another time.
    pub(super) async fn run(
        &mut self,
        decide: &mut (impl FnMut(&Letter) -> Fate + Send),
    ) -> Result<End, DeadError> {
        let began = Instant::now();
        let mut left = None;
        let end = loop {
            if left == Some(0) {
                break End::Complete;
            }
            if self.stop.is_cancelled() {
                break End::Stopped;
            }
            if began.elapsed() >= LONGEST {
                break End::OutOfTime;
            }
            let Some(message) = self.get().await? else {
                break End::Complete;
            };
            let there = left.unwrap_or_else(|| u64::from(message.message_count) + 1);
            left = Some(there - 1);
            if let Some(error) = self.take(message, decide).await? {
                return Ok(End::Unpublished(error));
            }
        };
        match self.flush().await? {
            Some(error) => Ok(End::Unpublished(error)),
            None => Ok(end),
        }
    }

    async fn take(
        &mut self,
        message: BasicGetMessage,
        decide: &mut (impl FnMut(&Letter) -> Fate + Send),
    ) -> Result<Option<PublishError>, DeadError> {
        let delivery = message.delivery;
        let tag = delivery.delivery_tag;
        let letter = Letter::of(delivery);
        let (copy, moves) = match decide(&letter) {
            Fate::Publish(copy) => (*copy, false),
            Fate::Drop => {
                self.acknowledge(tag).await?;
                self.gone += 1;
                return Ok(None);
            }
            Fate::Stay if letter.facts.returns >= MOVE_AFTER => {
                let copy = Outgoing::dead_again(self.names, &letter.properties, letter.payload);
                (copy, true)
            }
            Fate::Stay => {
                self.staying.push(tag);
                return Ok(None);
            }
        };
        self.pending_bytes += copy.body.as_bytes().len();
        self.pending.push(Pending { tag, copy, moves });
        if self.pending.len() >= BATCH || self.pending_bytes >= BATCH_BYTES {
            return self.flush().await;
        }
        Ok(None)
    }

    /// Publishes what is pending and acknowledges what was stored. Gives the first error of what
    /// does not just move: that a message could not be moved changes nothing yet.
    async fn flush(&mut self) -> Result<Option<PublishError>, DeadError> {
        let pending = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        if pending.is_empty() {
            return Ok(None);
        }
        let marks: Vec<_> = pending.iter().map(|one| (one.tag, one.moves)).collect();
        let copies = pending.into_iter().map(|one| one.copy).collect();
        let results = self.feed().await?.send(copies).await;
        let mut failed = None;
        for ((tag, moves), result) in marks.into_iter().zip(results) {
            match result {
                Ok(()) => {
                    self.acknowledge(tag).await?;
                    self.gone += u64::from(!moves);
                }
                Err(error) if moves => {
                    self.staying.push(tag);
                    tracing::warn!(%error, "a dead message could not be moved to the end of its queue and keeps its place");
                }
                Err(error) => {
                    self.staying.push(tag);
                    failed = failed.or(Some(error));
                }
            }
        }
        Ok(failed)
    }

    async fn feed(&mut self) -> Result<&Feed, IntakeError> {
        if self.feed.is_none() {
            self.feed = Some(Feed::open(self.options.clone(), Purpose::Dead).await?);
        }
        Ok(self.feed.as_ref().expect("it was opened just now"))
    }

    pub(super) async fn close_feed(&mut self) {
        if let Some(feed) = self.feed.take() {
            feed.close(Instant::now() + CLOSE_LIMIT).await;
        }
    }

    async fn get(&self) -> Result<Option<BasicGetMessage>, DeadError> {
        let queue = self.names.dead();
        let options = BasicGetOptions { no_ack: false };
        let got = self.channel.basic_get(queue.clone(), options);
        self.answer(got, &queue).await
    }

    async fn acknowledge(&self, tag: u64) -> Result<(), DeadError> {
        let queue = self.names.dead();
        let acknowledged = self.channel.basic_ack(tag, BasicAckOptions::default());
        self.answer(acknowledged, &queue).await.map(drop)
    }

    async fn answer<T>(
        &self,
        answer: impl Future<Output = lapin::Result<T>>,
        queue: &ShortString,
    ) -> Result<T, DeadError> {
        let limit = self.options.connect_timeout;
        let broken = |reason| DeadError::Broken {
            queue: queue.to_string(),
            reason,
        };
        match timeout(limit, answer).await {
            Ok(answer) => answer.map_err(|error| broken(explain(&error))),
            Err(_) => Err(broken(format!("the broker did not answer in {limit:?}"))),
        }
    }
}
