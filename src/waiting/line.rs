//! Lines: what waits of one account in one lane.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use sqlx::{PgConnection, PgPool, PgTransaction};
use tokio::time::timeout;

use crate::domain::{AccountId, Lane};

/// How long one statement of a releaser may take.
pub(super) const STATEMENT_LIMIT: &str = "5s";

/// How long a releaser waits for what belongs together: to find work, to choose rows, to write down
/// which of them have gone.
const LIMIT: Duration = Duration::from_secs(10);

/// What waits of one account in one lane. In drain order of the lanes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Line {
    pub lane: Lane,
    pub account: AccountId,
}

/// What may have to be done about a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Calling {
    /// It has rows whose instant has come.
    pub due: bool,
    /// It has rows that wait for a decision.
    pub paused: bool,
    /// How far ahead of its ceiling it has been released. `None`: there is no account of that yet.
    pub ahead: Option<Duration>,
}

/// The lines that may have something to release, found by leaps from line to line: what waits in
/// between is not read.
pub(super) async fn calling(pool: &PgPool) -> Result<BTreeMap<Line, Calling>, sqlx::Error> {
    let mut transaction = begin(pool).await?;
    let mut lines: BTreeMap<Line, Calling> = BTreeMap::new();
    for (line, ahead) in due(&mut transaction).await? {
        let calling = lines.entry(line).or_default();
        (calling.due, calling.ahead) = (true, ahead);
    }
    for (line, ahead) in paused(&mut transaction).await? {
        let calling = lines.entry(line).or_default();
        (calling.paused, calling.ahead) = (true, ahead);
    }
    transaction.commit().await?;
    Ok(lines)
}

/// Gives up what the database does not do in time.
pub(super) async fn in_time<T>(
    asking: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let answer = timeout(LIMIT, asking).await;
    answer.map_err(|_| sqlx::Error::Io(io::ErrorKind::TimedOut.into()))?
}

/// Begins to look. Looking may take longer than what a pool allows for other questions: where very
/// many rows were released and have not been vacuumed away yet, it has to pass them all.
pub(super) async fn begin(pool: &PgPool) -> Result<PgTransaction<'static>, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let limit = sqlx::query!(
        "SELECT set_config('statement_timeout', $1, true)",
        STATEMENT_LIMIT
    );
    limit.fetch_one(&mut *transaction).await?;
    Ok(transaction)
}

/// A line, and how far ahead it is.
type Found = (Line, Option<Duration>);

struct FoundRow {
    account_id: String,
    lane: String,
    ahead_us: Option<i64>,
}

impl FoundRow {
    fn read(self) -> Result<Found, sqlx::Error> {
        let account = AccountId::parse(&self.account_id);
        let account = account.map_err(|error| sqlx::Error::Decode(error.into()))?;
        let lane = Lane::parse(&self.lane)
            .ok_or_else(|| sqlx::Error::Decode("expected the name of a lane".into()))?;
        let ahead = self.ahead_us.map(micros);
        Ok((Line { lane, account }, ahead))
    }
}

/// A span that may have come to its end already.
pub(super) fn micros(span: i64) -> Duration {
    Duration::from_micros(u64::try_from(span).unwrap_or(0))
}

async fn due(connection: &mut PgConnection) -> Result<Vec<Found>, sqlx::Error> {
    let found = sqlx::query_as!(
        FoundRow,
        r#"
        WITH RECURSIVE heads AS (
            (SELECT account_id, lane, due_at FROM waiting WHERE due_at IS NOT NULL
             ORDER BY account_id, lane, due_at, row_number LIMIT 1)
            UNION ALL
            SELECT next.account_id, next.lane, next.due_at FROM heads CROSS JOIN LATERAL (
                SELECT account_id, lane, due_at FROM waiting
                WHERE due_at IS NOT NULL AND (account_id, lane) > (heads.account_id, heads.lane)
                ORDER BY account_id, lane, due_at, row_number LIMIT 1
            ) AS next
        )
        SELECT account_id AS "account_id!", lane AS "lane!",
            (extract(epoch FROM released_until - now()) * 1000000)::bigint AS ahead_us
        FROM heads LEFT JOIN release_pace USING (account_id, lane)
        WHERE due_at <= now()
        "#
    );
    let found = found.fetch_all(connection).await?;
    found.into_iter().map(FoundRow::read).collect()
}

async fn paused(connection: &mut PgConnection) -> Result<Vec<Found>, sqlx::Error> {
    let found = sqlx::query_as!(
        FoundRow,
        r#"
        WITH RECURSIVE heads AS (
            (SELECT account_id, lane FROM waiting WHERE due_at IS NULL
             ORDER BY account_id, lane, waiting_group(campaign_id, journey_id, batch_id), row_number
             LIMIT 1)
            UNION ALL
            SELECT next.account_id, next.lane FROM heads CROSS JOIN LATERAL (
                SELECT account_id, lane FROM waiting
                WHERE due_at IS NULL AND (account_id, lane) > (heads.account_id, heads.lane)
                ORDER BY account_id, lane, waiting_group(campaign_id, journey_id, batch_id), row_number
                LIMIT 1
            ) AS next
        )
        SELECT account_id AS "account_id!", lane AS "lane!",
            (extract(epoch FROM released_until - now()) * 1000000)::bigint AS ahead_us
        FROM heads LEFT JOIN release_pace USING (account_id, lane)
        "#
    );
    let found = found.fetch_all(connection).await?;
    found.into_iter().map(FoundRow::read).collect()
}
