//! The dead queue, opened by one reader at a time.
//!
//! What one reader has taken is hidden from every other, who would find the queue empty. So a reader
//! holds a lock: an exclusive queue beside the dead one, which ends with the connection, however that
//! ends. It only orders readers; nothing is lost if it fails.

use std::time::Duration;

use lapin::options::QueueDeclareOptions;
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Connection};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::intake::connection::{self, explain};
use crate::intake::endpoint::Endpoint;
use crate::intake::error::IntakeError;
use crate::intake::names::Names;
use crate::intake::options::AmqpOptions;
use crate::intake::passive::has_code;
use crate::intake::{Purpose, supervisor::CLOSE_LIMIT};

use super::answers::{Answers, REFUSED};
use super::error::DeadError;
use super::letter::Letter;
use super::pass::{End, Fate, Pass};

/// The broker's code for a queue that is another connection's.
const LOCKED: u16 = 405;

/// How long another reader is waited for, and how often is looked.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);

/// How often is looked whether what was taken is back, and for how long at most.
const GLANCE: Duration = Duration::from_millis(5);
const RETURNED_WITHIN: Duration = Duration::from_secs(10);

/// The dead queue.
pub struct DeadQueue {
    connection: Connection,
    answers: Answers,
    names: Names,
    options: AmqpOptions,
    stop: CancellationToken,
}

/// What a pass came to.
pub struct Passed {
    /// How many messages have left the queue for good.
    pub gone: u64,
    /// How it ended.
    pub end: Result<End, DeadError>,
}

impl DeadQueue {
    /// Connects and waits for its turn; whoever wants no more of it drops the future. A pass ends
    /// early when `stop` is cancelled.
    ///
    /// # Errors
    /// When there is no broker or no such queue, or another reader for longer than 30 s.
    pub async fn open(options: AmqpOptions, stop: CancellationToken) -> Result<Self, DeadError> {
        let endpoint = Endpoint::parse(&options.url).map_err(IntakeError::from)?;
        let names = Names::new(&options.prefix).map_err(IntakeError::from)?;
        let connection = connection::connect(&endpoint, &options, Purpose::Dead).await?;
        let answers = Answers {
            queue: names.dead(),
            limit: options.connect_timeout,
        };
        let opened = Self {
            connection,
            answers,
            names,
            options,
            stop,
        };
        let channel = opened.channel().await?;
        opened.answers.ready(&channel).await?;
        opened.leave(&channel).await;
        opened.lock().await?;
        Ok(opened)
    }

    /// The names of exchanges and queues, for what is published out of it.
    #[must_use]
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// Shows every message that is there to `decide`, in order, and does with each as it says.
    /// Those that stay are back in their order when this returns.
    pub async fn pass(&self, mut decide: impl FnMut(&Letter) -> Fate + Send) -> Passed {
        let channel = match self.channel().await {
            Ok(channel) => channel,
            Err(error) => {
                return Passed {
                    gone: 0,
                    end: Err(error),
                };
            }
        };
        let mut pass = Pass::over(
            &channel,
            &self.answers,
            &self.names,
            &self.options,
            &self.stop,
        );
        let end = pass.run(&mut decide).await;
        let (gone, held) = (pass.gone(), pass.held());
        let ended = pass.end().await;
        let given_back = self.give_back(&channel, held).await;
        Passed {
            gone,
            end: end.and_then(|end| ended.and(given_back).map(|()| end)),
        }
    }

    /// Takes leave of the broker.
    pub async fn close(self) {
        connection::close(&self.connection, CLOSE_LIMIT).await;
    }

    /// Ends the channel, upon which the broker returns all it held, in its order, and waits until
    /// that is done: the next pass begins with a count.
    async fn give_back(&self, channel: &Channel, held: u64) -> Result<(), DeadError> {
        self.leave(channel).await;
        let deadline = Instant::now() + RETURNED_WITHIN;
        let channel = self.channel().await?;
        while self.answers.ready(&channel).await? < held && Instant::now() < deadline {
            sleep(GLANCE).await;
        }
        self.leave(&channel).await;
        Ok(())
    }

    /// Closes a channel. One that the broker has closed is as good.
    async fn leave(&self, channel: &Channel) {
        drop(timeout(CLOSE_LIMIT, channel.close(200, "looked".into())).await);
    }

    async fn lock(&self) -> Result<(), DeadError> {
        let deadline = Instant::now() + PATIENCE;
        while !self.try_lock().await? {
            if Instant::now() > deadline {
                return Err(DeadError::Busy {
                    queue: self.names.dead().to_string(),
                    limit: PATIENCE,
                });
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Whether it is this reader's turn. A user who may not declare the lock goes without.
    async fn try_lock(&self) -> Result<bool, DeadError> {
        let options = QueueDeclareOptions {
            exclusive: true,
            ..QueueDeclareOptions::default()
        };
        let name: ShortString = format!("{}.reader", self.names.dead()).into();
        let channel = self.channel().await?;
        let declared = channel.queue_declare(name, options, FieldTable::default());
        match self.answers.raw(declared).await? {
            Err(error) if has_code(&error, LOCKED) => Ok(false),
            Err(error) if has_code(&error, REFUSED) => {
                tracing::debug!(error = %explain(&error), "no right to wait for a turn at the dead queue; reading all the same");
                Ok(true)
            }
            Err(error) => {
                tracing::warn!(error = %explain(&error), "cannot wait for a turn at the dead queue; reading all the same, and what another reader holds meanwhile does not show");
                Ok(true)
            }
            Ok(_) => {
                self.leave(&channel).await;
                Ok(true)
            }
        }
    }

    async fn channel(&self) -> Result<Channel, DeadError> {
        let created = self.connection.create_channel();
        self.answers.within(created).await
    }
}
