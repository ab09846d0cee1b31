//! Looking after the ledger's partitions, at start-up and once an hour, on every worker.

use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use sqlx::PgPool;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::partitions::{self, Maintained, Obstacle};
use crate::dispatch::ports::Clock;
use crate::telemetry::Telemetry;

/// How often all is looked at.
const EVERY: Duration = Duration::from_secs(3_600);

/// How soon again after something stood in the way.
const AGAIN: Duration = Duration::from_secs(60);

/// Makes the partitions of today and the next three days, and drops those that are older than the
/// retention. Whatever many workers do this at once, each partition is made and dropped once, and
/// nobody who writes is held up for more than a moment.
///
/// # Errors
/// When the database does not answer. What merely has to wait, or needs other rights, is in the
/// result: rows then go to the default partition.
pub async fn maintain(
    pool: &PgPool,
    now: Timestamp,
    retention: Option<Duration>,
) -> Result<Maintained, sqlx::Error> {
    let keep_from = retention.map(|retention| {
        let retention = SignedDuration::try_from(retention).unwrap_or(SignedDuration::MAX);
        let keep_from = now.checked_sub(retention).unwrap_or(Timestamp::MIN);
        day_of(keep_from)
    });
    partitions::maintain(pool, day_of(now), keep_from).await
}

fn day_of(instant: Timestamp) -> Date {
    TimeZone::UTC.to_datetime(instant).date()
}

/// The upkeep of one worker.
pub struct Maintenance {
    /// Where the ledger is.
    pub pool: PgPool,
    /// Tells which day it is.
    pub clock: Arc<dyn Clock>,
    /// How long rows are kept; `None`: for ever.
    pub retention: Option<Duration>,
    /// Where it reports.
    pub telemetry: Telemetry,
}

impl Maintenance {
    /// Runs until it is told to stop.
    pub async fn run(self, stop: CancellationToken) {
        let mut known = None;
        loop {
            let maintained = maintain(&self.pool, self.clock.now(), self.retention);
            let maintained = tokio::select! {
                () = stop.cancelled() => return,
                maintained = maintained => maintained,
            };
            let pause = self.take_stock(maintained, &mut known);
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(pause) => {}
            }
        }
    }

    /// Reports what is new to whoever reads the log. Gives the pause.
    fn take_stock(
        &self,
        maintained: Result<Maintained, sqlx::Error>,
        known: &mut Option<Obstacle>,
    ) -> Duration {
        let Ok(maintained) = maintained else {
            return AGAIN;
        };
        let obstacle = maintained.obstacle;
        if *known != obstacle {
            match obstacle {
                Some(Obstacle::Forbidden) => self.telemetry.ledger_has_no_partitions(),
                Some(Obstacle::Crowded) => self.telemetry.ledger_is_crowded(),
                Some(Obstacle::Busy | Obstacle::InUse) | None => {}
            }
        }
        *known = obstacle;
        match obstacle {
            Some(Obstacle::Busy | Obstacle::InUse) => AGAIN,
            Some(Obstacle::Forbidden | Obstacle::Crowded) | None => EVERY,
        }
    }
}
