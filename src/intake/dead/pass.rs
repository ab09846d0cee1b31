//! One pass through the dead queue: what comes, what becomes of it, and how the pass ended.

use std::time::Duration;

use lapin::Channel;
use lapin::message::Delivery;
use lapin::options::BasicAckOptions;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::dispatch::ports::PublishError;
use crate::intake::acks::{Ack, TagTracker};
use crate::intake::error::IntakeError;
use crate::intake::feed::Feed;
use crate::intake::names::Names;
use crate::intake::options::AmqpOptions;
use crate::intake::outgoing::Outgoing;
use crate::intake::{Purpose, supervisor::CLOSE_LIMIT};

use super::answers::Answers;
use super::error::DeadError;
use super::letter::Letter;
use super::windows::Windows;

/// A message that has returned so often is moved. Brokers drop one after 20 returns.
const MOVE_AFTER: u32 = 10;

/// The most messages that are settled in one go, and the bytes after which it is time.
const BATCH: usize = 500;
const BATCH_BYTES: usize = 1024 * 1024;

/// A broker closes a channel whose delivery stays unacknowledged for 30 minutes.
const LONGEST: Duration = Duration::from_secs(20 * 60);

/// After how long without a message there are no more, and after how long when the broker had
/// counted more. After a restart it may count none, wrongly, for a while.
const IDLE: Duration = Duration::from_secs(1);
const IDLE_WHEN_MISSING: Duration = Duration::from_secs(3);

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
    answers: &'a Answers,
    names: &'a Names,
    options: &'a AmqpOptions,
    stop: &'a CancellationToken,
    windows: Windows<'a>,
    /// Opened when it is first needed: looking mostly needs none.
    feed: Option<Feed>,
    pending: Vec<Pending>,
    pending_bytes: usize,
    /// What may be acknowledged.
    tags: TagTracker,
    /// How much of it is not acknowledged yet.
    finished: u64,
    /// How much of that is to be dropped.
    dropping: u64,
    acknowledged: u64,
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
        answers: &'a Answers,
        names: &'a Names,
        options: &'a AmqpOptions,
        stop: &'a CancellationToken,
    ) -> Self {
        Self {
            channel,
            answers,
            names,
            options,
            stop,
            windows: Windows::over(channel, answers),
            feed: None,
            pending: Vec::new(),
            pending_bytes: 0,
            tags: TagTracker::default(),
            finished: 0,
            dropping: 0,
            acknowledged: 0,
            gone: 0,
        }
    }

    /// How many messages have left, published or dropped.
    pub(super) const fn gone(&self) -> u64 {
        self.gone
    }

    /// How many messages were taken and stay.
    pub(super) const fn held(&self) -> u64 {
        self.windows.seen() - self.acknowledged
    }

    /// Takes each message that is there at the beginning and does with it as `decide` says. What
    /// joins meanwhile is left for another time.
    pub(super) async fn run(
        &mut self,
        decide: &mut (impl FnMut(&Letter) -> Fate + Send),
    ) -> Result<End, DeadError> {
        let end = self.look(decide).await?;
        match self.settle().await? {
            Some(error) => Ok(End::Unpublished(error)),
            None => Ok(end),
        }
    }

    async fn look(
        &mut self,
        decide: &mut (impl FnMut(&Letter) -> Fate + Send),
    ) -> Result<End, DeadError> {
        let deadline = Instant::now() + LONGEST;
        let counted = self.answers.ready(self.channel).await?;
        let mut most = counted;
        loop {
            if self.windows.seen() == 1 {
                most = self.most(counted).await?;
            }
            if most > 0 && self.windows.seen() >= most {
                return Ok(End::Complete);
            }
            if self.stop.is_cancelled() {
                return Ok(End::Stopped);
            }
            if Instant::now() >= deadline {
                return Ok(End::OutOfTime);
            }
            if let Some(error) = self.make_room().await? {
                return Ok(End::Unpublished(error));
            }
            let idle = if counted > 0 { IDLE_WHEN_MISSING } else { IDLE };
            let next = timeout_at(deadline.min(Instant::now() + idle), self.windows.next());
            let message = tokio::select! {
                () = self.stop.cancelled() => return Ok(End::Stopped),
                next = next => match next {
                    Ok(message) => message?,
                    Err(_) if Instant::now() >= deadline => return Ok(End::OutOfTime),
                    Err(_) => return Ok(End::Complete),
                },
            };
            self.take(message, decide);
        }
    }

    /// How many messages there are to see, asked when the first has come. What a broker counted
    /// before is too little where it has just started, or where a killed reader's messages were not
    /// back. Once it sends, it has sent all that a window holds before it counts any as ready.
    async fn most(&self, counted: u64) -> Result<u64, DeadError> {
        let window = self.windows.size();
        Ok(match (self.answers.ready(self.channel).await?, counted) {
            (0, 0) => window,
            (0, counted) => counted,
            (ready, _) => window + ready,
        })
    }

    /// Settles what is due, and sees to it that the broker may send more.
    async fn make_room(&mut self) -> Result<Option<PublishError>, DeadError> {
        let many = self.pending.len() >= BATCH || self.finished >= BATCH as u64;
        if many || self.pending_bytes >= BATCH_BYTES || self.windows.is_full() {
            let failed = self.settle().await?;
            if failed.is_some() {
                return Ok(failed);
            }
        }
        if self.windows.is_full() {
            self.windows.open_next().await?;
        }
        Ok(None)
    }

    fn take(&mut self, message: Delivery, decide: &mut (impl FnMut(&Letter) -> Fate + Send)) {
        let tag = message.delivery_tag;
        let letter = Letter::of(message);
        let (copy, moves) = match decide(&letter) {
            Fate::Publish(copy) => (*copy, false),
            Fate::Drop => {
                self.dropping += 1;
                return self.finish(tag);
            }
            Fate::Stay if letter.facts.returns >= MOVE_AFTER => {
                let copy = Outgoing::dead_again(self.names, &letter.properties, letter.payload);
                (copy, true)
            }
            Fate::Stay => return,
        };
        self.pending_bytes += copy.body.as_bytes().len();
        self.pending.push(Pending { tag, copy, moves });
    }

    /// Publishes what is pending and acknowledges what was stored or dropped. Gives the first error
    /// of what does not just move: that a message could not be moved changes nothing yet.
    async fn settle(&mut self) -> Result<Option<PublishError>, DeadError> {
        let failed = self.publish().await?;
        self.acknowledge().await?;
        Ok(failed)
    }

    async fn publish(&mut self) -> Result<Option<PublishError>, DeadError> {
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
                    self.finish(tag);
                    self.gone += u64::from(!moves);
                }
                Err(error) if moves => {
                    tracing::warn!(%error, "a dead message could not be moved to the end of its queue and keeps its place");
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Ok(failed)
    }

    fn finish(&mut self, tag: u64) {
        self.tags.finish(tag);
        self.finished += 1;
    }

    async fn acknowledge(&mut self) -> Result<(), DeadError> {
        let run = self.tags.take_run();
        let singles = self.tags.take_singles().into_iter();
        let singles = singles.map(|tag| Ack {
            tag,
            multiple: false,
        });
        for Ack { tag, multiple } in run.into_iter().chain(singles) {
            let written = self.channel.basic_ack(tag, BasicAckOptions { multiple });
            self.answers.within(written).await?;
        }
        self.windows.acknowledged(self.finished);
        self.acknowledged += std::mem::take(&mut self.finished);
        self.gone += std::mem::take(&mut self.dropping);
        Ok(())
    }

    async fn feed(&mut self) -> Result<&Feed, IntakeError> {
        if self.feed.is_none() {
            self.feed = Some(Feed::open(self.options.clone(), Purpose::Dead).await?);
        }
        Ok(self.feed.as_ref().expect("it was opened just now"))
    }

    /// Takes no more, and waits until the broker has carried out every acknowledgement. It may put
    /// some of many aside until the first ones are carried out, and forget them with the channel:
    /// when it answers the cancellation those first ones are, and when it answers the next question
    /// the others are on their way too.
    pub(super) async fn end(mut self) -> Result<(), DeadError> {
        if let Some(feed) = self.feed.take() {
            feed.close(Instant::now() + CLOSE_LIMIT).await;
        }
        self.windows.cease().await?;
        self.answers.ready(self.channel).await.map(drop)
    }
}
