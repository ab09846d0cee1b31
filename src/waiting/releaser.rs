//! The releaser of one worker: round after round, every line that has something to release gets its
//! turn.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures_util::stream::{self, StreamExt as _};
use sqlx::PgPool;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::cancelled;
use super::census;
use super::line::{self, Calling, Line, in_time};
use super::serve::{CeilingOf, Served, Service};
use crate::backoff::Retry;
use crate::dispatch::ports::Broker;
use crate::domain::Lane;
use crate::postgres::explain;
use crate::telemetry::{ReleaseTrouble, Telemetry};

/// The pause between rounds when there is nothing more to do.
const ROUND: Duration = Duration::from_millis(250);

/// A pause is so many times as long as it took to find nothing to release: however much waits, looking
/// takes no more than a fifth of one connection's time, unless one look takes a quarter of a second.
const REST: u32 = 4;

/// The longest pause for any reason: what is resumed goes on within a second or so, also when the
/// first look after an outage, which has to connect, took long.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Lines that have their turn at once, at most: one whose publish takes long does not keep the others
/// waiting. Each needs a connection meanwhile, and one is left to others.
const TURNS_AT_ONCE: u32 = 4;

/// How often the waiting jobs are counted, and what is done is forgotten.
const CENSUS: Duration = Duration::from_secs(15);

/// What a publish may take beyond the time that its confirms are waited for.
const GRACE: Duration = Duration::from_secs(1);

/// What was begun may take so long when the worker stops.
const LEAVE_WITHIN: Duration = Duration::from_millis(500);

/// Publishes waiting jobs when they are due.
pub struct Releaser<B> {
    service: Service<B>,
    rng: Rng,
    /// After which group the next look at a line's paused jobs begins.
    places: HashMap<Line, String>,
    trouble: Option<ReleaseTrouble>,
    retry: Retry,
    counted: Option<Instant>,
}

/// What a round came to.
enum Round {
    /// There is more to be done at once.
    MoreAtOnce,
    /// Something has gone.
    Released,
    /// Nothing was to be done.
    Nothing,
}

impl Round {
    fn of(served: &[Served]) -> Self {
        if served.iter().any(|served| served.more) {
            Self::MoreAtOnce
        } else if served.iter().any(|served| served.released > 0) {
            Self::Released
        } else {
            Self::Nothing
        }
    }
}

impl<B: Broker> Releaser<B> {
    /// A releaser whose broker waits for confirms for at most `confirm_timeout`. It uses up to four of
    /// the pool's connections at once, for as long as a publish takes, and leaves one to others: best
    /// give it a pool of its own.
    #[must_use]
    pub fn new(
        pool: PgPool,
        broker: Arc<B>,
        ceiling: CeilingOf,
        confirm_timeout: Duration,
        telemetry: Telemetry,
        rng: Rng,
    ) -> Self {
        Self {
            service: Service {
                pool,
                broker,
                ceiling,
                publish_limit: confirm_timeout + GRACE,
                telemetry,
            },
            rng,
            places: HashMap::new(),
            trouble: None,
            retry: Retry::capped(LONGEST_PAUSE),
            counted: None,
        }
    }

    /// Runs until it is told to stop; then it ends within a second. What it has not finished by then
    /// another worker does again.
    pub async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let pause = tokio::select! {
                biased;
                () = patience(&stop) => return,
                pause = self.once(&stop) => pause,
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// One round. Gives the pause before the next.
    async fn once(&mut self, stop: &CancellationToken) -> Duration {
        let began = Instant::now();
        let Ok(lines) = in_time(self.look()).await else {
            return self.failed(ReleaseTrouble::Database);
        };
        let looked = began.elapsed();
        let round = match self.serve(lines, stop).await {
            Ok(round) => round,
            Err(trouble) => return self.failed(trouble),
        };
        self.went_well();
        match round {
            Round::MoreAtOnce => Duration::ZERO,
            Round::Released => rest_after(looked),
            Round::Nothing => rest_after(began.elapsed()),
        }
    }

    /// Looks for work, and now and then counts what waits and tidies up.
    async fn look(&mut self) -> Result<BTreeMap<Line, Calling>, sqlx::Error> {
        let Service {
            pool, telemetry, ..
        } = &self.service;
        if self.counted.is_none_or(|at| at.elapsed() >= CENSUS) {
            self.counted = Some(Instant::now());
            count(pool, telemetry).await;
            forget_ended(pool).await;
        }
        line::calling(pool).await
    }

    /// Gives every line its turn.
    async fn serve(
        &mut self,
        lines: BTreeMap<Line, Calling>,
        stop: &CancellationToken,
    ) -> Result<Round, ReleaseTrouble> {
        // After a failure no further turn begins; those that have begun come to their end.
        let over = stop.child_token();
        let turns: Vec<_> = self
            .in_turn(lines)
            .into_iter()
            .map(|(line, calling)| {
                let place = self.places.remove(&line);
                let rng = self.rng.fork();
                self.service.serve(line, calling, place, rng, &over)
            })
            .collect();
        let turns = stream::iter(turns).buffer_unordered(self.turns_at_once());
        let served: Vec<Served> = turns.collect().await;
        let trouble = served.iter().find_map(|served| served.trouble);
        let round = Round::of(&served);
        let places = served.into_iter();
        let places = places.filter_map(|served| Some((served.line, served.place?)));
        // Lines that have left no place have nothing paused any more, or begin anew.
        self.places = places.collect();
        trouble.map_or(Ok(round), Err)
    }

    fn turns_at_once(&self) -> usize {
        let connections = self.service.pool.options().get_max_connections();
        let turns = connections.saturating_sub(1).clamp(1, TURNS_AT_ONCE);
        usize::try_from(turns).unwrap_or(1)
    }

    /// Transactional lines first, and otherwise in any order, so that replicas do not follow on each
    /// other's heels.
    fn in_turn(&mut self, lines: BTreeMap<Line, Calling>) -> Vec<(Line, Calling)> {
        let mut lines: Vec<_> = lines.into_iter().collect();
        self.rng.shuffle(&mut lines);
        lines.sort_by_key(|(line, _)| line.lane);
        lines
    }

    fn failed(&mut self, trouble: ReleaseTrouble) -> Duration {
        let news = self.trouble.is_none();
        self.trouble = Some(trouble);
        self.service.telemetry.release_failed(trouble, news);
        self.retry.next_pause()
    }

    fn went_well(&mut self) {
        self.retry.reset();
        if self.trouble.take().is_some() {
            self.service.telemetry.release_goes_on();
        }
    }
}

/// Counts what waits, for a metric. Nothing depends on it, so that a count which fails must hold up
/// no release: the metric keeps its old figure until the next.
async fn count(pool: &PgPool, telemetry: &Telemetry) {
    match census::count(pool).await {
        Ok(counted) => {
            for lane in Lane::ALL {
                telemetry.waiting(lane, counted[lane.index()]);
            }
        }
        Err(error) => {
            let why = explain(&error);
            tracing::debug!(why, "the waiting jobs could not be counted");
        }
    }
}

/// Nothing depends on this either: holds that are not forgotten are looked after a little longer.
async fn forget_ended(pool: &PgPool) {
    if let Err(error) = cancelled::forget_ended(pool).await {
        let why = explain(&error);
        tracing::debug!(why, "cancellations that are done could not be noted");
    }
}

fn rest_after(look: Duration) -> Duration {
    (REST * look).clamp(ROUND, LONGEST_PAUSE)
}

async fn patience(stop: &CancellationToken) {
    stop.cancelled().await;
    sleep(LEAVE_WITHIN).await;
}
