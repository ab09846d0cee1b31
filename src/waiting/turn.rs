//! One line's turn: what may go is published, and what was confirmed is deleted.

use std::time::Duration;

use sqlx::{PgConnection, PgPool, PgTransaction};
use tokio::time::timeout;

use super::advance;
use super::choose::{self, MAX_ROWS};
use super::line::{Line, in_time};
use super::row::Row;
use crate::dispatch::ports::{Broker, Requeue};

/// What is to be released of a line.
pub(super) struct Plan {
    pub line: Line,
    /// How far ahead it was, if anybody has kept account of that.
    pub ahead: Option<Duration>,
    /// Whether rows whose instant has come may go.
    pub due: bool,
    /// The groups of paused rows that may go.
    pub resumed: Vec<String>,
    /// Which of both has the first choice.
    pub due_first: bool,
    /// Jobs per second.
    pub per_second: u32,
    /// How long the publish may take. It has a limit of its own: given up any earlier, jobs that were
    /// confirmed late would be published again and again.
    pub publish_limit: Duration,
}

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Turn {
    /// Rows that have gone.
    pub released: usize,
    /// Rows whose publish was not confirmed, and which are still there.
    pub unconfirmed: usize,
    /// Whether as many rows were chosen as a turn takes, so that there may be more to do at once.
    pub full: bool,
}

impl Plan {
    /// Takes the turn, unless another worker holds the line.
    pub(super) async fn carry_out(
        &self,
        pool: &PgPool,
        broker: &impl Broker,
    ) -> Result<Turn, sqlx::Error> {
        let Some((transaction, rows)) = in_time(self.begin(pool)).await? else {
            return Ok(Turn::default());
        };
        let (turn, gone) = self.publish(rows, broker).await?;
        in_time(self.end(transaction, &gone)).await?;
        Ok(turn)
    }

    /// Takes hold of the line and of the rows that may go now; `None` when there are none, or another
    /// worker holds the line.
    async fn begin(
        &self,
        pool: &PgPool,
    ) -> Result<Option<(PgTransaction<'static>, Vec<Row>)>, sqlx::Error> {
        if self.ahead.is_none() {
            advance::open(pool, &self.line).await?;
        }
        let mut transaction = pool.begin().await?;
        let rows = self.choose(&mut transaction).await?;
        if rows.is_empty() {
            transaction.rollback().await?;
            return Ok(None);
        }
        Ok(Some((transaction, rows)))
    }

    /// Deletes the rows that have gone, and lets go of the others and of the line.
    async fn end(
        &self,
        mut transaction: PgTransaction<'static>,
        gone: &[i64],
    ) -> Result<(), sqlx::Error> {
        if !gone.is_empty() {
            advance::released(&mut transaction, &self.line, self.per_second, gone).await?;
        }
        transaction.commit().await
    }

    /// The rows that may go now. The line is held from here to the transaction's end.
    async fn choose(&self, connection: &mut PgConnection) -> Result<Vec<Row>, sqlx::Error> {
        let Some(ahead) = advance::hold(connection, &self.line, self.publish_limit).await? else {
            return Ok(Vec::new());
        };
        let room = advance::room(ahead, self.per_second).min(MAX_ROWS);
        let mut rows = Vec::new();
        for due in [self.due_first, !self.due_first] {
            let left = room - rows.len();
            if left > 0 {
                rows.extend(self.choose_of(connection, due, left).await?);
            }
        }
        Ok(rows)
    }

    async fn choose_of(
        &self,
        connection: &mut PgConnection,
        due: bool,
        limit: usize,
    ) -> Result<Vec<Row>, sqlx::Error> {
        match due {
            true if self.due => choose::due(connection, &self.line, limit).await,
            false if !self.resumed.is_empty() => {
                choose::resumed(connection, &self.line, &self.resumed, limit).await
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Publishes the jobs. Gives the numbers of the rows that may be deleted.
    async fn publish(
        &self,
        rows: Vec<Row>,
        broker: &impl Broker,
    ) -> Result<(Turn, Vec<i64>), sqlx::Error> {
        let full = choose::fills_a_turn(&rows);
        let numbers: Vec<i64> = rows.iter().map(|row| row.number).collect();
        let jobs = rows.into_iter().map(|row| row.into_requeue(&self.line));
        let jobs = jobs.collect::<Result<Vec<Requeue>, _>>()?;
        // Whatever is not answered in time counts as not confirmed.
        let results = timeout(self.publish_limit, broker.requeue(jobs)).await;
        let results = results.unwrap_or_default();
        let confirmed = numbers.iter().zip(&results);
        let confirmed = confirmed.filter_map(|(number, result)| result.is_ok().then_some(*number));
        let gone: Vec<i64> = confirmed.collect();
        let turn = Turn {
            released: gone.len(),
            unconfirmed: numbers.len() - gone.len(),
            full,
        };
        Ok((turn, gone))
    }
}
