//! Serving one line: what of it may go now, and its turn.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use sqlx::{PgConnection, PgPool};
use tokio_util::sync::CancellationToken;

use super::advance;
use super::groups;
use super::line::{self, Calling, Line, in_time};
use super::turn::{Plan, Turn};
use crate::dispatch::ports::{Broker, RecordsError};
use crate::domain::{AccountId, Lane};
use crate::postgres::records_error;
use crate::telemetry::{ReleaseTrouble, Telemetry};

/// Pages of groups that are looked at in one turn before one has something to release.
const PAGES: usize = 4;

/// The rate at which jobs go that will not be sent, where the ceiling lets none through.
const CANCELLED_PER_SECOND: u32 = 1;

/// Tells the ceiling of an account's lane, in jobs per second. 0: nothing is released but what is
/// cancelled.
pub type CeilingOf = Arc<dyn Fn(&AccountId, Lane) -> u32 + Send + Sync>;

/// What serving lines needs.
pub(super) struct Service<B> {
    pub pool: PgPool,
    pub broker: Arc<B>,
    pub ceiling: CeilingOf,
    /// How long a publish may take.
    pub publish_limit: Duration,
    pub telemetry: Telemetry,
}

/// What serving a line came to.
pub(super) struct Served {
    pub line: Line,
    /// After which group its paused jobs are looked at next; `None`: from the start.
    pub place: Option<String>,
    /// Rows that have gone.
    pub released: usize,
    /// Whether more of it may be released at once.
    pub more: bool,
    pub trouble: Option<ReleaseTrouble>,
}

/// What of a line may go now.
#[derive(Default)]
struct MayGo {
    /// Rows whose instant has come.
    due: bool,
    /// The groups of paused rows.
    groups: Vec<String>,
    /// Where the next look at its groups begins.
    place: Option<String>,
}

impl<B: Broker> Service<B> {
    /// Serves a line, unless the round is `over`; ends the round when nothing can be released.
    pub(super) async fn serve(
        &self,
        line: Line,
        calling: Calling,
        place: Option<String>,
        rng: Rng,
        over: &CancellationToken,
    ) -> Served {
        let mut served = Served {
            line,
            place,
            released: 0,
            more: false,
            trouble: None,
        };
        if over.is_cancelled() {
            return served;
        }
        match self.turn(&mut served, calling, rng).await {
            Ok(turn) => self.take_stock(&mut served, turn, over),
            Err(error) => {
                served.trouble = Some(ReleaseTrouble::Database);
                // Whatever else is wrong may concern this line alone.
                if records_error(&error) != RecordsError::Failed {
                    over.cancel();
                }
            }
        }
        served
    }

    fn take_stock(&self, served: &mut Served, turn: Turn, over: &CancellationToken) {
        self.telemetry.released(served.line.lane, turn.released);
        served.released = turn.released;
        served.more = turn.full && turn.released > 0;
        if turn.unconfirmed > 0 {
            served.trouble = Some(ReleaseTrouble::Broker);
            if turn.released == 0 {
                over.cancel();
            }
        }
    }

    async fn turn(
        &self,
        served: &mut Served,
        calling: Calling,
        mut rng: Rng,
    ) -> Result<Turn, sqlx::Error> {
        let line = &served.line;
        let ceiling = (self.ceiling)(&line.account, line.lane);
        let per_second = ceiling.max(CANCELLED_PER_SECOND);
        if advance::room(calling.ahead.unwrap_or_default(), per_second) == 0 {
            return Ok(Turn::default());
        }
        let sendable = ceiling > 0;
        let asking = self.ask(line, calling, sendable, served.place.take(), &mut rng);
        let may_go = in_time(asking).await?;
        served.place = may_go.place;
        if !may_go.due && may_go.groups.is_empty() {
            return Ok(Turn::default());
        }
        let plan = Plan {
            line: line.clone(),
            ahead: calling.ahead,
            due: may_go.due,
            resumed: may_go.groups,
            due_first: rng.bool(),
            per_second,
            publish_limit: self.publish_limit,
        };
        plan.carry_out(&self.pool, &*self.broker).await
    }

    /// What of the line may go, as far as the holds have to be asked.
    async fn ask(
        &self,
        line: &Line,
        calling: Calling,
        sendable: bool,
        place: Option<String>,
        rng: &mut Rng,
    ) -> Result<MayGo, sqlx::Error> {
        let mut may_go = MayGo {
            due: calling.due && sendable,
            ..MayGo::default()
        };
        if sendable && !calling.paused {
            return Ok(may_go);
        }
        let mut asking = line::begin(&self.pool).await?;
        if calling.due && !sendable {
            may_go.due = groups::account_is_cancelled(&mut asking, line).await?;
        }
        if calling.paused {
            (may_go.groups, may_go.place) =
                resumed(&mut asking, line, place, sendable, rng).await?;
        }
        asking.commit().await?;
        Ok(may_go)
    }
}

/// Looks through the line's groups, page by page, until some of them may go. Gives these, and where
/// the next look begins. They go in any order, and a page that had some may be looked at again or
/// left: no campaign waits until another one has gone altogether.
async fn resumed(
    connection: &mut PgConnection,
    line: &Line,
    mut place: Option<String>,
    sendable: bool,
    rng: &mut Rng,
) -> Result<(Vec<String>, Option<String>), sqlx::Error> {
    for _ in 0..PAGES {
        let start = place.as_deref().unwrap_or(groups::START);
        let page = groups::after(connection, line, start).await?;
        let full = page.len() >= groups::AT_ONCE;
        let next = page.last().filter(|_| full).map(|last| last.key.clone());
        let released = page.into_iter().filter(|group| group.is_released(sendable));
        let mut released: Vec<_> = released.map(|group| group.key).collect();
        if !released.is_empty() {
            rng.shuffle(&mut released);
            return Ok((released, if rng.bool() { next } else { place }));
        }
        place = next;
        if place.is_none() {
            break;
        }
    }
    Ok((Vec::new(), place))
}
