//! How many messages lie in the broker's queues.

use std::time::Duration;

use lapin::options::QueueDeclareOptions;
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Connection, ErrorKind};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::dispatch::ports::Route;
use crate::domain::Lane;
use crate::embedded::EmbeddedQueues;
use crate::intake::{AmqpOptions, Endpoint, IntakeError, Names, Purpose, connection};

/// Messages of both lanes, in drain order: of all accounts.
pub type Lengths = [u64; 2];

/// How long an answer is good enough: so many are asked for, whoever watches.
const GOOD_FOR: Duration = Duration::from_millis(900);

/// The broker's code for a queue that does not exist.
const NOT_FOUND: u16 = 404;

/// Who knows the lengths of the queues.
#[derive(Debug)]
pub enum Depths {
    /// A broker.
    Amqp(Box<AmqpDepths>),
    /// The queues in this process.
    Embedded(EmbeddedQueues),
}

impl Depths {
    /// Ready messages in the queues of each lane; `None` when the broker does not say.
    pub async fn now(&self) -> Option<Lengths> {
        match self {
            Self::Amqp(broker) => broker.now().await,
            Self::Embedded(queues) => Some(Lane::ALL.map(|lane| queues.unheld(lane) as u64)),
        }
    }
}

/// Asks a broker, over a connection of its own that is opened when somebody wants to know: one that
/// publishes would not be answered under an alarm.
pub struct AmqpDepths {
    endpoint: Endpoint,
    options: AmqpOptions,
    names: Names,
    limit: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<(Connection, Channel)>,
    last: Option<(Instant, Option<Lengths>)>,
}

impl AmqpDepths {
    /// Asks the broker of these options, each time for at most `limit`.
    ///
    /// # Errors
    /// When URL or prefix cannot be used.
    pub fn new(options: AmqpOptions, limit: Duration) -> Result<Self, IntakeError> {
        Ok(Self {
            endpoint: Endpoint::parse(&options.url)?,
            names: Names::new(&options.prefix)?,
            options,
            limit,
            state: Mutex::default(),
        })
    }

    async fn now(&self) -> Option<Lengths> {
        let mut state = self.state.lock().await;
        if let Some((at, lengths)) = state.last
            && at.elapsed() < GOOD_FOR
        {
            return lengths;
        }
        let asked = timeout(self.limit, self.ask(&mut state.open)).await;
        let lengths = asked.ok().flatten();
        if lengths.is_none() {
            state.open = None;
        }
        state.last = Some((Instant::now(), lengths));
        lengths
    }

    async fn ask(&self, open: &mut Option<(Connection, Channel)>) -> Option<Lengths> {
        if !open
            .as_ref()
            .is_some_and(|(connection, _)| connection.status().connected())
        {
            let connecting = connection::connect(&self.endpoint, &self.options, Purpose::Watch);
            let connection = connecting.await.ok()?;
            let channel = connection.create_channel().await.ok()?;
            *open = Some((connection, channel));
        }
        let (connection, channel) = open.as_mut()?;
        let mut lengths = Lengths::default();
        for lane in Lane::ALL {
            for queue in self.queues(lane) {
                lengths[lane.index()] += length(connection, channel, queue).await?;
            }
        }
        Some(lengths)
    }

    fn queues(&self, lane: Lane) -> [ShortString; 4] {
        let names = &self.names;
        [
            names.lane(lane),
            names.lane_admitted(lane),
            names.waiting(lane, Route::Shed),
            names.waiting(lane, Route::Park),
        ]
    }
}

impl std::fmt::Debug for AmqpDepths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AmqpDepths").finish_non_exhaustive()
    }
}

/// The ready messages of a queue. One that does not exist has none; to ask for it costs the channel.
async fn length(connection: &Connection, channel: &mut Channel, queue: ShortString) -> Option<u64> {
    let how = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    let declared = channel
        .queue_declare(queue, how, FieldTable::default())
        .await;
    let error = match declared {
        Ok(queue) => return Some(queue.message_count().into()),
        Err(error) => error,
    };
    let is_missing =
        matches!(error.kind(), ErrorKind::ProtocolError(error) if error.get_id() == NOT_FOUND);
    if !is_missing {
        return None;
    }
    *channel = connection.create_channel().await.ok()?;
    Some(0)
}
