//! The messages of the dead queue as the broker sends them, so many at a time.
//!
//! A consumer holds what it was sent until its channel closes, and then the broker returns it in its
//! order. How much one may hold must be limited: what is not limited is limited by a quorum queue to
//! 2,000, and a client has no other means to slow the broker down, so that everything it may send can
//! come to stand in this process's memory. So when a consumer holds all it may, it is cancelled,
//! which lets it keep what it holds, and another one goes on. The broker returns what up to 32 of
//! them held in the order of their names; beyond that, the order of the windows is left to chance.

use futures_util::StreamExt as _;
use lapin::message::Delivery;
use lapin::options::{BasicCancelOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Consumer};

use crate::intake::connection::explain;

use super::answers::Answers;
use super::error::DeadError;

/// The first window, when nothing is known yet of the messages' sizes.
const FIRST: u16 = 256;

/// What a later window may come to by the sizes so far, in bytes, and the fewest messages in it.
const WINDOW_BYTES: u64 = 32 * 1024 * 1024;
const FEWEST: u64 = 64;

/// One consumer after another.
pub(super) struct Windows<'a> {
    channel: &'a Channel,
    answers: &'a Answers,
    consumer: Option<Consumer>,
    /// How many consumers there have been.
    opened: u32,
    /// How many messages the present one may hold, and how many it holds.
    size: u64,
    held: u64,
    /// What came in all.
    seen: u64,
    bytes: u64,
}

impl<'a> Windows<'a> {
    pub(super) const fn over(channel: &'a Channel, answers: &'a Answers) -> Self {
        Self {
            channel,
            answers,
            consumer: None,
            opened: 0,
            size: 0,
            held: 0,
            seen: 0,
            bytes: 0,
        }
    }

    /// How many messages have come.
    pub(super) const fn seen(&self) -> u64 {
        self.seen
    }

    /// How many messages the present window holds.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Whether nothing more comes before something was acknowledged or the next window opened.
    pub(super) const fn is_full(&self) -> bool {
        self.held >= self.size
    }

    /// So many messages of this window have been acknowledged.
    pub(super) const fn acknowledged(&mut self, count: u64) {
        self.held -= count;
    }

    /// Lets another consumer go on where this one is full.
    pub(super) async fn open_next(&mut self) -> Result<(), DeadError> {
        self.cease().await?;
        let size = match self.bytes.checked_div(self.seen) {
            None => FIRST,
            Some(average) => {
                let fitting = WINDOW_BYTES / average.max(1);
                u16::try_from(fitting.max(FEWEST)).unwrap_or(u16::MAX)
            }
        };
        let each = BasicQosOptions { global: false };
        let limited = self.channel.basic_qos(size, each);
        self.answers.within(limited).await?;
        let name = format!("lanekeeper-dead-{:06}", self.opened);
        let consuming = self.channel.basic_consume(
            self.answers.queue.clone(),
            name.into(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        );
        self.consumer = Some(self.answers.within(consuming).await?);
        self.opened += 1;
        self.size = size.into();
        self.held = 0;
        Ok(())
    }

    /// The next message, whenever it comes.
    pub(super) async fn next(&mut self) -> Result<Delivery, DeadError> {
        let consumer = self.consumer.as_mut().expect("a window was opened");
        let delivery = match consumer.next().await {
            Some(Ok(delivery)) => delivery,
            Some(Err(error)) => return Err(self.answers.broken(explain(&error))),
            None => {
                let ended = "the broker ended the consumer".to_owned();
                return Err(self.answers.broken(ended));
            }
        };
        self.held += 1;
        self.seen += 1;
        self.bytes += delivery.data.len() as u64;
        Ok(delivery)
    }

    /// Takes no more. What was taken stays taken. The broker has carried out what was acknowledged
    /// before when it answers this.
    pub(super) async fn cease(&mut self) -> Result<(), DeadError> {
        let Some(consumer) = self.consumer.take() else {
            return Ok(());
        };
        let options = BasicCancelOptions::default();
        let cancelled = self.channel.basic_cancel(consumer.tag(), options);
        self.answers.within(cancelled).await
    }
}
