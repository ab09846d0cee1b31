//! How many messages lie in the broker's queues.

mod passive;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use lapin::types::ShortString;
use lapin::{Channel, Connection};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::dispatch::ports::Route;
use crate::domain::Lane;
use crate::embedded::EmbeddedQueues;
use crate::hot::Listed;
use crate::intake::{AmqpOptions, Endpoint, IntakeError, Names, Purpose, connection};

/// How long an answer is good enough: so many are asked for, whoever watches.
const GOOD_FOR: Duration = Duration::from_millis(900);

/// An answer is also good for so many times as long as the broker took to give it: however many queues
/// there are, watching them is a small part of what it does.
const TIMES_TAKEN: u32 = 10;

/// Ready messages at the broker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lengths {
    /// Of both lanes, in drain order: of all accounts, in shared queues and in accounts' own.
    pub lanes: [u64; 2],
    /// In each account's own queue, by its number.
    pub own: HashMap<i64, u64>,
    /// The numbers of those in which messages lie and from which nobody consumes.
    pub deserted: HashSet<i64>,
}

impl Lengths {
    /// Ready messages in an account's own queue: none in one that is newer than this.
    #[must_use]
    pub fn of(&self, own: &Listed) -> u64 {
        self.own.get(&own.queue.number).copied().unwrap_or(0)
    }

    /// Whether messages lie in an account's own queue and nobody consumes from it.
    #[must_use]
    pub fn is_deserted(&self, own: &Listed) -> bool {
        self.deserted.contains(&own.queue.number)
    }
}

/// Who knows the lengths of the queues.
#[derive(Debug)]
pub enum Depths {
    /// A broker.
    Amqp(Box<AmqpDepths>),
    /// The queues in this process.
    Embedded(EmbeddedQueues),
}

impl Depths {
    /// Ready messages in the queues of each lane, and in these of accounts' own; `None` when the
    /// broker does not say. It may be a moment old, and lack a queue that is newer.
    pub async fn now(&self, own: &[Listed]) -> Option<Arc<Lengths>> {
        match self {
            Self::Amqp(broker) => broker.now(own).await,
            Self::Embedded(queues) => Some(Arc::new(Lengths {
                lanes: Lane::ALL.map(|lane| queues.unheld(lane) as u64),
                ..Lengths::default()
            })),
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
    last: Option<Last>,
}

struct Last {
    good_until: Instant,
    lengths: Option<Arc<Lengths>>,
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

    async fn now(&self, own: &[Listed]) -> Option<Arc<Lengths>> {
        let mut state = self.state.lock().await;
        if let Some(last) = &state.last
            && Instant::now() < last.good_until
        {
            return last.lengths.clone();
        }
        let asked_at = Instant::now();
        let asked = timeout(self.limit, self.ask(&mut state.open, own)).await;
        let lengths = asked.ok().flatten().map(Arc::new);
        if lengths.is_none() {
            state.open = None;
        }
        let good_for = GOOD_FOR.max(asked_at.elapsed() * TIMES_TAKEN);
        // One that did not answer is asked again as soon as any other.
        let good_for = lengths.as_ref().map_or(GOOD_FOR, |_| good_for);
        state.last = Some(Last {
            good_until: Instant::now() + good_for,
            lengths: lengths.clone(),
        });
        lengths
    }

    async fn ask(
        &self,
        open: &mut Option<(Connection, Channel)>,
        own: &[Listed],
    ) -> Option<Lengths> {
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
        let shared = Lane::ALL.map(|lane| self.queues(lane));
        let names = shared.iter().flatten().cloned();
        let names: Vec<_> = names
            .chain(
                own.iter()
                    .map(|own| self.names.hot(own.queue.lane, own.queue.number)),
            )
            .collect();
        let found = passive::find_all(connection, channel, &names).await?;
        let (of_lanes, of_own) = found.split_at(shared.iter().flatten().count());
        let mut lengths = Lengths::default();
        let per_lane = of_lanes.chunks(of_lanes.len() / Lane::ALL.len());
        for (lane, queues) in Lane::ALL.into_iter().zip(per_lane) {
            lengths.lanes[lane.index()] = queues.iter().map(|queue| queue.ready).sum();
        }
        for (own, found) in own.iter().zip(of_own) {
            lengths.lanes[own.queue.lane.index()] += found.ready;
            lengths.own.insert(own.queue.number, found.ready);
            if found.ready > 0 && found.consumers == 0 {
                lengths.deserted.insert(own.queue.number);
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
