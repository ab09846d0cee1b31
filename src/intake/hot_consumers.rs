//! The consumers of accounts' own queues: there are more or fewer of them from one second to the
//! next.

use std::collections::HashMap;
use std::num::NonZeroU16;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use lapin::Connection;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::domain::HotQueue;

use super::hot::HotConsumption;
use super::source::Source;
use super::supervisor::Supervisor;

/// How soon again a queue is tried that could not be consumed from: most often it is gone, or not
/// there yet, and the next list of queues says so.
const AGAIN: Duration = Duration::from_secs(1);

/// One that is consumed from, or about to be left.
struct Consumed {
    prefetch: NonZeroU16,
    leave: CancellationToken,
}

type Consuming<'a> = Pin<Box<dyn Future<Output = HotQueue> + Send + 'a>>;

/// The consumers of one connection.
pub(super) struct HotConsumers<'a> {
    supervisor: &'a Supervisor,
    connection: &'a Connection,
    consumed: HashMap<HotQueue, Consumed>,
    running: FuturesUnordered<Consuming<'a>>,
}

impl<'a> HotConsumers<'a> {
    pub(super) fn new(supervisor: &'a Supervisor, connection: &'a Connection) -> Self {
        Self {
            supervisor,
            connection,
            consumed: HashMap::new(),
            running: FuturesUnordered::new(),
        }
    }

    /// Waits until one of them has come to its end; for ever when there is none.
    pub(super) async fn next(&mut self) {
        match self.running.next().await {
            Some(queue) => {
                self.consumed.remove(&queue);
            }
            None => std::future::pending().await,
        }
    }

    /// Waits until all of them have.
    pub(super) async fn finish(&mut self) {
        while self.running.next().await.is_some() {}
    }

    /// Consumes from what is wanted, in the lanes of which deliveries are taken, and leaves the
    /// others. One that is being left is begun with again when it has been left.
    pub(super) fn follow(&mut self, wanted: &[HotConsumption], taking: [bool; 2]) {
        let wanted: HashMap<_, _> = wanted
            .iter()
            .filter(|one| taking[one.queue.lane.index()])
            .map(|one| (&one.queue, one.prefetch))
            .collect();
        for (queue, consumed) in &self.consumed {
            if wanted.get(queue) != Some(&consumed.prefetch) {
                consumed.leave.cancel();
            }
        }
        for (queue, prefetch) in wanted {
            if !self.consumed.contains_key(queue) {
                self.begin(queue.clone(), prefetch);
            }
        }
    }

    fn begin(&mut self, queue: HotQueue, prefetch: NonZeroU16) {
        let leave = CancellationToken::new();
        let consumed = Consumed {
            prefetch,
            leave: leave.clone(),
        };
        self.consumed.insert(queue.clone(), consumed);
        let (supervisor, connection) = (self.supervisor, self.connection);
        self.running.push(Box::pin(async move {
            let source = Source::Hot(queue.clone());
            keep_consuming(supervisor, connection, &source, prefetch, &leave).await;
            queue
        }));
    }
}

/// Consumes from one of them, with new channels as they are needed, until it is to be left or the
/// connection is lost. What is missing is not declared here: only who holds the account's lock knows
/// whether it should exist.
async fn keep_consuming(
    supervisor: &Supervisor,
    connection: &Connection,
    source: &Source,
    prefetch: NonZeroU16,
    leave: &CancellationToken,
) {
    loop {
        let consuming = supervisor
            .consumers
            .consume_hot(connection, source, prefetch.get(), leave);
        let Err(error) = consuming.await else {
            return;
        };
        if leave.is_cancelled() || supervisor.is_stopping() || !connection.status().connected() {
            return;
        }
        tracing::debug!(%error, "an account's own queue cannot be consumed from; trying again");
        tokio::select! {
            () = sleep(AGAIN) => {}
            () = leave.cancelled() => return,
            () = supervisor.consumers.stop.cancelled() => return,
        }
    }
}
