//! Looking after the ledger's partitions, at start-up and once an hour, on every worker.

use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use sqlx::PgPool;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::gaps::forget_gaps;
use super::partitions::{self, Maintained, Obstacle};
use crate::dispatch::ports::{Clock, RecordsError};
use crate::postgres::{explain, records_error};
use crate::telemetry::Telemetry;

/// How often all is looked at.
const EVERY: Duration = Duration::from_secs(3_600);

/// How soon again after something stood in the way.
const AGAIN: Duration = Duration::from_secs(60);

/// Makes the partitions of today and the next three days, and drops those that are older than the
/// retention, with the notes of what was never written. Whatever many workers do this at once, each partition is made and dropped once, and
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
        now.checked_sub(retention).unwrap_or(Timestamp::MIN)
    });
    let maintained = partitions::maintain(pool, day_of(now), keep_from.map(day_of)).await;
    if let Some(keep_from) = keep_from {
        forget_gaps(pool, keep_from).await?;
    }
    maintained
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
        known: &mut Option<Trouble>,
    ) -> Duration {
        let trouble = trouble(maintained);
        if *known != trouble {
            match &trouble {
                Some(Trouble::Obstacle(Obstacle::Forbidden)) => {
                    self.telemetry.ledger_has_no_partitions();
                }
                Some(Trouble::Obstacle(Obstacle::Crowded)) => self.telemetry.ledger_is_crowded(),
                Some(Trouble::Unknown(why)) => self.telemetry.ledger_is_not_kept_up(why),
                Some(Trouble::Obstacle(Obstacle::Busy | Obstacle::InUse) | Trouble::Away)
                | None => {}
            }
        }
        let pause = match trouble {
            Some(Trouble::Obstacle(Obstacle::Forbidden | Obstacle::Crowded)) | None => EVERY,
            Some(_) => AGAIN,
        };
        *known = trouble;
        pause
    }
}

/// Why not all could be done.
#[derive(Debug, PartialEq, Eq)]
enum Trouble {
    /// Something that was to be expected.
    Obstacle(Obstacle),
    /// The database does not answer, which others report.
    Away,
    /// Anything else, in plain words.
    Unknown(String),
}

fn trouble(maintained: Result<Maintained, sqlx::Error>) -> Option<Trouble> {
    match maintained {
        Ok(maintained) => maintained.obstacle.map(Trouble::Obstacle),
        Err(error) => Some(match records_error(&error) {
            RecordsError::Unreachable | RecordsError::TimedOut => Trouble::Away,
            RecordsError::Failed | RecordsError::Unfit => Trouble::Unknown(explain(&error)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What nobody expected needs a person, and must not look like a database that is away.
    #[test]
    fn an_error_that_nobody_expected_is_told_and_an_outage_is_not() {
        let unknown = trouble(Err(sqlx::Error::ColumnNotFound("x".into())));
        assert!(matches!(unknown, Some(Trouble::Unknown(_))));
        assert_eq!(trouble(Err(sqlx::Error::PoolTimedOut)), Some(Trouble::Away));
        assert_eq!(trouble(Ok(Maintained::default())), None);
    }
}
