//! The dead queue, opened by one reader at a time.
//!
//! What one reader has taken is hidden from every other, who would find the queue empty. So a reader
//! holds a lock: an exclusive queue beside the dead one, which ends with the connection, however that
//! ends. It only orders readers; nothing is lost if it fails.

use std::time::Duration;

use lapin::options::{BasicNackOptions, QueueDeclareOptions};
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Connection, ErrorKind};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::intake::connection::{self, explain};
use crate::intake::endpoint::Endpoint;
use crate::intake::error::IntakeError;
use crate::intake::names::Names;
use crate::intake::options::AmqpOptions;
use crate::intake::{Purpose, supervisor::CLOSE_LIMIT};

use super::error::DeadError;
use super::letter::Letter;
use super::pass::{End, Fate, Pass};

/// The broker's codes for a queue that is not there, and one that is another connection's.
const NOT_FOUND: u16 = 404;
const LOCKED: u16 = 405;

/// How many messages are returned at once: the broker puts 32 commands in their order.
const AT_ONCE: usize = 24;

/// How long another reader is waited for, and how often is looked.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);

/// How often is looked whether a few messages are back.
const GLANCE: Duration = Duration::from_millis(2);

/// How long is waited in all for what was taken to be back; after that it returns in any order.
const RETURNED_WITHIN: Duration = Duration::from_secs(30);

/// The dead queue.
pub struct DeadQueue {
    connection: Connection,
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
    /// Connects and waits for its turn. A pass ends early when `stop` is cancelled.
    ///
    /// # Errors
    /// When there is no broker or no such queue, or another reader for longer than 30 s.
    pub async fn open(options: AmqpOptions, stop: CancellationToken) -> Result<Self, DeadError> {
        let endpoint = Endpoint::parse(&options.url).map_err(IntakeError::from)?;
        let names = Names::new(&options.prefix).map_err(IntakeError::from)?;
        let connection = connection::connect(&endpoint, &options, Purpose::Dead).await?;
        let opened = Self {
            connection,
            names,
            options,
            stop,
        };
        opened.ready().await?;
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
        let mut pass = Pass::over(&channel, &self.names, &self.options, &self.stop);
        let end = pass.run(&mut decide).await;
        pass.close_feed().await;
        let (gone, mut staying) = pass.into_parts();
        staying.sort_unstable();
        let closed = self.give_back(&channel, &staying).await;
        Passed {
            gone,
            end: end.and_then(|end| closed.map(|()| end)),
        }
    }

    /// Takes leave of the broker.
    pub async fn close(self) {
        connection::close(&self.connection, CLOSE_LIMIT).await;
    }

    /// Returns what stays, in its order, and waits until it is back. The end of the channel would
    /// return it too, but in any order: to the broker, each single `get` is a consumer of its own,
    /// and of more than some it handles at once it keeps no order either.
    async fn give_back(&self, channel: &Channel, staying: &[u64]) -> Result<(), DeadError> {
        let multiple = BasicNackOptions {
            multiple: true,
            requeue: true,
        };
        let deadline = Instant::now() + RETURNED_WITHIN;
        // The last acknowledgements are written, but the broker may still be at them.
        sleep(LOOK).await;
        let mut back = self.ready_by(channel).await?;
        for chunk in staying.chunks(AT_ONCE) {
            let last = *chunk.last().expect("no chunk is empty");
            self.within(channel.basic_nack(last, multiple)).await?;
            back += chunk.len() as u64;
            while self.ready_by(channel).await? < back && Instant::now() < deadline {
                sleep(GLANCE).await;
            }
        }
        self.within(channel.close(200, "looked".into())).await
    }

    /// How many messages nobody has taken, asked on a channel of its own.
    async fn ready(&self) -> Result<u64, DeadError> {
        let channel = self.channel().await?;
        let ready = self.ready_by(&channel).await;
        // Its work is done; a refusal has closed it already.
        drop(timeout(CLOSE_LIMIT, channel.close(200, "looked".into())).await);
        ready
    }

    /// The same, asked on a channel that is open anyway.
    async fn ready_by(&self, channel: &Channel) -> Result<u64, DeadError> {
        let queue = self.names.dead();
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let declared = channel.queue_declare(queue.clone(), options, FieldTable::default());
        match timeout(self.options.connect_timeout, declared).await {
            Ok(Err(error)) if has_code(&error, NOT_FOUND) => Err(DeadError::NoQueue {
                queue: queue.to_string(),
            }),
            Ok(Err(error)) => Err(self.broken(explain(&error))),
            Err(_) => Err(self.silent()),
            Ok(Ok(declared)) => Ok(declared.message_count().into()),
        }
    }

    async fn lock(&self) -> Result<(), DeadError> {
        let deadline = Instant::now() + PATIENCE;
        let mut has_waited = false;
        while !self.try_lock().await? {
            if self.stop.is_cancelled() || Instant::now() > deadline {
                return Err(DeadError::Busy {
                    queue: self.names.dead().to_string(),
                    limit: PATIENCE,
                });
            }
            has_waited = true;
            sleep(LOOK).await;
        }
        if has_waited {
            // What a killed reader held needs a moment longer to return than its lock to end.
            sleep(LOOK * 2).await;
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
        match timeout(self.options.connect_timeout, declared).await {
            Ok(Err(error)) if has_code(&error, LOCKED) => Ok(false),
            Ok(Err(error)) => {
                tracing::debug!(error = %explain(&error), "no lock on the dead queue; reading all the same");
                Ok(true)
            }
            Err(_) => Err(self.silent()),
            Ok(Ok(_)) => {
                drop(timeout(CLOSE_LIMIT, channel.close(200, "locked".into())).await);
                Ok(true)
            }
        }
    }

    async fn channel(&self) -> Result<Channel, DeadError> {
        self.within(self.connection.create_channel()).await
    }

    async fn within<T>(
        &self,
        answer: impl Future<Output = lapin::Result<T>>,
    ) -> Result<T, DeadError> {
        match timeout(self.options.connect_timeout, answer).await {
            Ok(answer) => answer.map_err(|error| self.broken(explain(&error))),
            Err(_) => Err(self.silent()),
        }
    }

    fn broken(&self, reason: String) -> DeadError {
        DeadError::Broken {
            queue: self.names.dead().to_string(),
            reason,
        }
    }

    fn silent(&self) -> DeadError {
        let limit = self.options.connect_timeout;
        self.broken(format!("the broker did not answer in {limit:?}"))
    }
}

fn has_code(error: &lapin::Error, code: u16) -> bool {
    matches!(error.kind(), ErrorKind::ProtocolError(error) if error.get_id() == code)
}
