//! Uploads in PostgreSQL.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgConnection;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::LEASE;
use super::record::{Begun, Contents, End, Note, Place, Upload, begun};
use crate::batch::RowError;
use crate::dispatch::ports::RecordsError;
use crate::domain::AccountId;
use crate::enqueueing::{Counts, Mark, Start};
use crate::postgres::Database;

/// Rejected rows, and batches, that are forgotten in one go.
const FORGOTTEN_AT_ONCE: i64 = 5_000;

/// How often it is looked for what is old.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// Uploads in PostgreSQL.
#[derive(Debug, Clone)]
pub struct PgUploads {
    database: Database,
}

impl PgUploads {
    /// Those in that database.
    #[must_use]
    pub const fn new(database: Database) -> Self {
        Self { database }
    }

    pub(super) async fn find(
        &self,
        account: &AccountId,
        batch: &str,
    ) -> Result<Option<Upload>, RecordsError> {
        let asking = async |connection: &mut PgConnection| find(connection, account, batch).await;
        self.database.ask(asking).await
    }

    /// Two statements, and others may come in between: so it is tried again where they have.
    pub(super) async fn begin(
        &self,
        place: &Place<'_>,
        contents: &Contents,
        now: Timestamp,
    ) -> Result<Begun, RecordsError> {
        loop {
            let taking = async |connection: &mut PgConnection| {
                if let Some(start) = take(connection, place, contents, now).await? {
                    return Ok(Some(Begun::Queue(start)));
                }
                let found = find(connection, place.account, place.batch.as_str()).await?;
                if let Some(upload) = &found
                    && upload.gives_way_to(contents)
                {
                    give_up(connection, place).await?;
                    return Ok(None);
                }
                Ok(found.and_then(|upload| begun(upload, contents)))
            };
            if let Some(begun) = self.database.ask(taking).await? {
                return Ok(begun);
            }
        }
    }

    pub(super) async fn note(
        &self,
        place: &Place<'_>,
        note: &Note<'_>,
    ) -> Result<bool, RecordsError> {
        let noting = async |connection: &mut PgConnection| write(connection, place, note).await;
        self.database.ask(noting).await
    }

    pub(super) async fn rejections(
        &self,
        account: &AccountId,
        batch: &str,
        behind: u64,
        most: u32,
    ) -> Result<Vec<RowError>, RecordsError> {
        let asking = async |connection: &mut PgConnection| {
            let rows = sqlx::query!(
                "SELECT line, field, reason FROM batch_rejections
                 WHERE account_id = $1 AND batch_id = $2 AND line > $3 ORDER BY line LIMIT $4",
                account.as_str(),
                batch,
                signed(behind),
                i64::from(most),
            );
            rows.fetch_all(connection).await
        };
        let rows = self.database.ask(asking).await?.into_iter();
        let rows = rows.map(|row| RowError {
            line: unsigned(row.line),
            field: row.field,
            reason: row.reason,
        });
        Ok(rows.collect())
    }

    /// Forgets some of what was last touched before `age` ago, and says whether there may be more. The
    /// rejected rows go first: a batch that is gone while some of its rows are left would leave them
    /// for ever.
    async fn forget(&self, age: Duration) -> Result<bool, RecordsError> {
        let seconds = age.as_secs_f64();
        let forgetting = async |connection: &mut PgConnection| {
            let rows = sqlx::query!(
                "DELETE FROM batch_rejections WHERE ctid = ANY (ARRAY(
                    SELECT batch_rejections.ctid FROM batch_rejections
                    JOIN batches USING (account_id, batch_id)
                    WHERE updated_at < now() - $1 * interval '1 s' LIMIT $2))",
                seconds,
                FORGOTTEN_AT_ONCE,
            );
            let rows = rows.execute(&mut *connection).await?.rows_affected();
            let batches = sqlx::query!(
                "DELETE FROM batches WHERE ctid = ANY (ARRAY(
                    SELECT ctid FROM batches
                    WHERE updated_at < now() - $1 * interval '1 s' AND NOT EXISTS (
                        SELECT FROM batch_rejections
                        WHERE batch_rejections.account_id = batches.account_id
                            AND batch_rejections.batch_id = batches.batch_id)
                    LIMIT $2))",
                seconds,
                FORGOTTEN_AT_ONCE,
            );
            let batches = batches.execute(connection).await?.rows_affected();
            let all = FORGOTTEN_AT_ONCE.unsigned_abs();
            Ok(rows == all || batches == all)
        };
        self.database.ask(forgetting).await
    }
}

/// Forgets uploads that were last touched before `age` ago, with their rejected rows, until `stop`.
pub async fn forget_old(uploads: PgUploads, age: Duration, stop: CancellationToken) {
    let forgetting = async {
        loop {
            match uploads.forget(age).await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "old batches could not be forgotten"),
            }
            sleep(FORGET_EVERY).await;
        }
    };
    stop.run_until_cancelled(forgetting).await;
}

/// Makes an entry, or takes one over that nobody has and that may be gone on with. `None`: neither.
async fn take(
    connection: &mut PgConnection,
    place: &Place<'_>,
    contents: &Contents,
    now: Timestamp,
) -> Result<Option<Start>, sqlx::Error> {
    let taken = sqlx::query!(
        "INSERT INTO batches AS known
            (account_id, batch_id, content, options, enqueued_ms, lease, lease_until)
         VALUES ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 ms')
         ON CONFLICT (account_id, batch_id) DO UPDATE SET
            lease = excluded.lease, lease_until = excluded.lease_until, updated_at = now()
         WHERE known.content = excluded.content AND known.options = excluded.options
            AND known.finished_at IS NULL AND known.lease_until <= now()
         RETURNING enqueued_ms, confirmed_line, queued, duplicates, rejected",
        place.account.as_str(),
        place.batch.as_str(),
        contents.content,
        contents.options,
        now.as_millisecond(),
        place.lease.0,
        lease_ms(),
    );
    let taken = taken.fetch_optional(connection).await?;
    Ok(taken.map(|row| {
        start(
            row.enqueued_ms,
            row.confirmed_line,
            [row.queued, row.duplicates, row.rejected],
        )
    }))
}

/// Forgets an upload that came to nothing, for another of its name.
async fn give_up(connection: &mut PgConnection, place: &Place<'_>) -> Result<(), sqlx::Error> {
    let forgotten = sqlx::query!(
        "WITH gone AS (
            DELETE FROM batches WHERE account_id = $1 AND batch_id = $2
                AND finished_at IS NOT NULL AND queued = 0
            RETURNING account_id, batch_id)
         DELETE FROM batch_rejections USING gone
         WHERE batch_rejections.account_id = gone.account_id
            AND batch_rejections.batch_id = gone.batch_id",
        place.account.as_str(),
        place.batch.as_str(),
    );
    forgotten.execute(connection).await.map(drop)
}

async fn find(
    connection: &mut PgConnection,
    account: &AccountId,
    batch: &str,
) -> Result<Option<Upload>, sqlx::Error> {
    let found = sqlx::query!(
        r#"SELECT content, options, enqueued_ms, confirmed_line, queued, duplicates, rejected,
            ceil(extract(epoch FROM lease_until - now()) * 1000)::bigint AS "busy_ms!",
            floor(extract(epoch FROM created_at) * 1000)::bigint AS "created_ms!",
            floor(extract(epoch FROM updated_at) * 1000)::bigint AS "updated_ms!",
            floor(extract(epoch FROM finished_at) * 1000)::bigint AS finished_ms
         FROM batches WHERE account_id = $1 AND batch_id = $2"#,
        account.as_str(),
        batch,
    );
    let found = found.fetch_optional(connection).await?;
    Ok(found.map(|row| Upload {
        contents: Contents {
            content: row.content,
            options: row.options,
        },
        start: start(
            row.enqueued_ms,
            row.confirmed_line,
            [row.queued, row.duplicates, row.rejected],
        ),
        busy_for: (row.busy_ms > 0).then(|| Duration::from_millis(unsigned(row.busy_ms))),
        created_at: instant(row.created_ms),
        updated_at: instant(row.updated_ms),
        finished_at: row.finished_ms.map(instant),
    }))
}

/// The mark and the rejected rows before it in one statement: neither is there without the other. A
/// lease that was given back stays written, so that the last note too may be made twice.
async fn write(
    connection: &mut PgConnection,
    place: &Place<'_>,
    note: &Note<'_>,
) -> Result<bool, sqlx::Error> {
    let counts = note.mark.counts;
    let rejected = note.rejected.iter();
    let lines: Vec<i64> = rejected.clone().map(|row| signed(row.line)).collect();
    let fields: Vec<&str> = rejected.clone().map(|row| row.field.as_str()).collect();
    let reasons: Vec<&str> = rejected.map(|row| row.reason.as_str()).collect();
    let lease_ms = note.end.map_or_else(lease_ms, |_| 0.0);
    let noted = sqlx::query_scalar!(
        r#"WITH noted AS (
            UPDATE batches SET confirmed_line = $4, queued = $5, duplicates = $6, rejected = $7,
                lease_until = now() + $8 * interval '1 ms', updated_at = now(),
                finished_at = CASE WHEN $9 THEN coalesce(finished_at, now()) END
            WHERE account_id = $1 AND batch_id = $2 AND lease = $3
            RETURNING 1
         ), kept AS (
            INSERT INTO batch_rejections (account_id, batch_id, line, field, reason)
            SELECT $1, $2, line, field, reason
            FROM unnest($10::bigint[], $11::text[], $12::text[]) AS told (line, field, reason)
            WHERE EXISTS (SELECT FROM noted)
            ON CONFLICT DO NOTHING
         )
         SELECT EXISTS (SELECT FROM noted) AS "noted!""#,
        place.account.as_str(),
        place.batch.as_str(),
        place.lease.0,
        signed(note.mark.line),
        signed(counts.queued),
        signed(counts.duplicates),
        signed(counts.rejected),
        lease_ms,
        note.end == Some(End::Finished),
        &lines,
        &fields as &[&str],
        &reasons as &[&str],
    );
    noted.fetch_one(connection).await
}

fn start(enqueued_ms: i64, line: i64, [queued, duplicates, rejected]: [i64; 3]) -> Start {
    Start {
        enqueued_at: instant(enqueued_ms),
        mark: Mark {
            line: unsigned(line),
            counts: Counts {
                queued: unsigned(queued),
                duplicates: unsigned(duplicates),
                rejected: unsigned(rejected),
                ..Counts::default()
            },
        },
    }
}

fn lease_ms() -> f64 {
    LEASE.as_secs_f64() * 1_000.0
}

fn instant(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
