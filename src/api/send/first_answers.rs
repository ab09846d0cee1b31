//! The first answers to requests with an `Idempotency-Key`, so that a repeated request gets the
//! same one.
//!
//! A request is noted with the digest of its body before its message is published, and its answer
//! after the broker has confirmed. So of two requests with one key and different bodies one is told
//! that the key is taken, and a server that dies in between leaves a note that keeps nobody from
//! asking again.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::PgPool;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::notes::Notes;
use crate::digest::Digest;
use crate::dispatch::ports::RecordsError;
use crate::domain::{AccountId, JobId, Lane};
use crate::postgres::Database;

/// The answer that was given first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstAnswer {
    /// The message's lane.
    pub lane: Lane,
    /// When it was accepted.
    pub at: Timestamp,
    /// Until when it waits, if it does and that is known.
    pub waits_until: Option<Timestamp>,
}

/// What is known of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Nothing, until now.
    New,
    /// It came before, and nobody knows what became of it.
    Begun,
    /// It was answered.
    Answered(FirstAnswer),
    /// Another request has the key.
    Other,
}

/// Where first answers are kept.
#[derive(Debug)]
pub enum FirstAnswers {
    /// In PostgreSQL, for all servers.
    Postgres {
        /// The database.
        database: Database,
        /// How long they are kept.
        life: Duration,
    },
    /// In this process.
    Memory(Notes),
}

impl FirstAnswers {
    /// Notes a request, unless it is known.
    ///
    /// # Errors
    /// When the database gives no answer.
    pub async fn begin(
        &self,
        account: &AccountId,
        id: &JobId,
        digest: Digest,
    ) -> Result<Known, RecordsError> {
        match self {
            Self::Postgres { database, life } => {
                let seconds = life.as_secs_f64();
                let asking = async |connection: &mut sqlx::PgConnection| {
                    note(connection, account, id, digest, seconds).await
                };
                database.ask(asking).await
            }
            Self::Memory(notes) => Ok(notes.begin(account, id, digest, Instant::now())),
        }
    }

    /// How a request was answered, if it was; it is not noted by asking.
    ///
    /// # Errors
    /// When the database gives no answer.
    pub async fn find(
        &self,
        account: &AccountId,
        id: &JobId,
    ) -> Result<Option<FirstAnswer>, RecordsError> {
        match self {
            Self::Postgres { database, .. } => {
                let asking = async |connection: &mut sqlx::PgConnection| {
                    answer_of(connection, account, id).await
                };
                database.ask(asking).await
            }
            Self::Memory(notes) => Ok(notes.find(account, id)),
        }
    }

    /// Writes down how a request was answered.
    ///
    /// # Errors
    /// When the database gives no answer: then the claim and the ledger still keep the message from
    /// being sent twice.
    pub async fn answered(
        &self,
        account: &AccountId,
        id: &JobId,
        digest: Digest,
        answer: FirstAnswer,
    ) -> Result<(), RecordsError> {
        match self {
            Self::Postgres { database, .. } => {
                let asking = async |connection: &mut sqlx::PgConnection| {
                    write(connection, account, id, digest, answer).await
                };
                database.ask(asking).await
            }
            Self::Memory(notes) => {
                notes.answered(account, id, digest, answer);
                Ok(())
            }
        }
    }

    /// Forgets a request that has come to nothing: with the same key another one may be tried.
    ///
    /// # Errors
    /// When the database gives no answer.
    pub async fn forget(&self, account: &AccountId, id: &JobId) -> Result<(), RecordsError> {
        match self {
            Self::Postgres { database, .. } => {
                let asking = async |connection: &mut sqlx::PgConnection| {
                    let forgotten = sqlx::query!(
                        "DELETE FROM first_answers
                         WHERE account_id = $1 AND message_id = $2 AND accepted_at IS NULL",
                        account.as_str(),
                        id.as_str(),
                    );
                    forgotten.execute(connection).await.map(drop)
                };
                database.ask(asking).await
            }
            Self::Memory(notes) => {
                notes.forget(account, id);
                Ok(())
            }
        }
    }
}

/// `is_new` may be wrong of a request that came in the same microsecond as the first with its key, and
/// decides last for that reason.
pub(super) const fn known(is_same: bool, is_new: bool, answer: Option<FirstAnswer>) -> Known {
    match (is_same, answer) {
        (false, _) => Known::Other,
        (true, Some(answer)) => Known::Answered(answer),
        (true, None) if is_new => Known::New,
        (true, None) => Known::Begun,
    }
}

/// A note that has outlived its time is as good as none.
async fn note(
    connection: &mut sqlx::PgConnection,
    account: &AccountId,
    id: &JobId,
    digest: Digest,
    life: f64,
) -> sqlx::Result<Known> {
    let row = sqlx::query!(
        r#"INSERT INTO first_answers AS known (account_id, message_id, digest)
           VALUES ($1, $2, $3)
           ON CONFLICT (account_id, message_id) DO UPDATE SET
               digest = CASE WHEN known.noted_at < now() - make_interval(secs => $4)
                   THEN excluded.digest ELSE known.digest END,
               lane = CASE WHEN known.noted_at < now() - make_interval(secs => $4)
                   THEN NULL ELSE known.lane END,
               accepted_at = CASE WHEN known.noted_at < now() - make_interval(secs => $4)
                   THEN NULL ELSE known.accepted_at END,
               waits_until = CASE WHEN known.noted_at < now() - make_interval(secs => $4)
                   THEN NULL ELSE known.waits_until END,
               noted_at = CASE WHEN known.noted_at < now() - make_interval(secs => $4)
                   THEN now() ELSE known.noted_at END
           RETURNING digest = $3 AS "is_same!", noted_at = now() AS "is_new!", lane,
               (extract(epoch FROM accepted_at) * 1000)::bigint AS accepted_ms,
               (extract(epoch FROM waits_until) * 1000)::bigint AS waits_ms"#,
        account.as_str(),
        id.as_str(),
        digest.as_bytes(),
        life,
    );
    let row = row.fetch_one(connection).await?;
    let answer = first_answer(row.lane.as_deref(), row.accepted_ms, row.waits_ms);
    Ok(known(row.is_same, row.is_new, answer))
}

fn first_answer(
    lane: Option<&str>,
    accepted_ms: Option<i64>,
    waits_ms: Option<i64>,
) -> Option<FirstAnswer> {
    Some(FirstAnswer {
        lane: Lane::parse(lane?)?,
        at: Timestamp::from_millisecond(accepted_ms?).ok()?,
        waits_until: waits_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok()),
    })
}

async fn answer_of(
    connection: &mut sqlx::PgConnection,
    account: &AccountId,
    id: &JobId,
) -> sqlx::Result<Option<FirstAnswer>> {
    let row = sqlx::query!(
        "SELECT lane, (extract(epoch FROM accepted_at) * 1000)::bigint AS accepted_ms,
             (extract(epoch FROM waits_until) * 1000)::bigint AS waits_ms
         FROM first_answers WHERE account_id = $1 AND message_id = $2",
        account.as_str(),
        id.as_str(),
    );
    let row = row.fetch_optional(connection).await?;
    Ok(row.and_then(|row| first_answer(row.lane.as_deref(), row.accepted_ms, row.waits_ms)))
}

async fn write(
    connection: &mut sqlx::PgConnection,
    account: &AccountId,
    id: &JobId,
    digest: Digest,
    answer: FirstAnswer,
) -> sqlx::Result<()> {
    let written = sqlx::query!(
        "INSERT INTO first_answers AS known
             (account_id, message_id, digest, lane, accepted_at, waits_until)
         VALUES ($1, $2, $3, $4, to_timestamp($5::bigint / 1000.0), to_timestamp($6::bigint / 1000.0))
         ON CONFLICT (account_id, message_id) DO UPDATE SET
             lane = coalesce(known.lane, excluded.lane),
             accepted_at = coalesce(known.accepted_at, excluded.accepted_at),
             waits_until = CASE WHEN known.accepted_at IS NULL
                 THEN excluded.waits_until ELSE known.waits_until END",
        account.as_str(),
        id.as_str(),
        digest.as_bytes(),
        answer.lane.as_str(),
        answer.at.as_millisecond(),
        answer.waits_until.map(Timestamp::as_millisecond),
    );
    written.execute(connection).await.map(drop)
}

/// How often what is old is forgotten.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// How many rows are forgotten in one go.
const AT_ONCE: i64 = 5_000;

/// Forgets first answers that are older than `life`, until `stop`.
pub async fn forget_old(pool: PgPool, life: Duration, stop: CancellationToken) {
    let forgetting = async {
        loop {
            let started = Instant::now();
            while let Ok(true) = forget_some(&pool, life).await {}
            tracing::debug!(took = ?started.elapsed(), "old first answers are forgotten");
            sleep(FORGET_EVERY).await;
        }
    };
    stop.run_until_cancelled(forgetting).await;
}

/// Whether there may be more.
async fn forget_some(pool: &PgPool, life: Duration) -> sqlx::Result<bool> {
    let forgotten = sqlx::query!(
        "DELETE FROM first_answers WHERE (account_id, message_id) IN (
             SELECT account_id, message_id FROM first_answers
             WHERE noted_at < now() - make_interval(secs => $1)
             ORDER BY noted_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
        life.as_secs_f64(),
        AT_ONCE,
    );
    let forgotten = forgotten.execute(pool).await?;
    Ok(forgotten.rows_affected() == AT_ONCE.unsigned_abs())
}
