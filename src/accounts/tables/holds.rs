//! `holds`: what is paused or cancelled.

use jiff::Timestamp;
use sqlx::PgConnection;

use super::{TableError, instant};
use crate::accounts::hold_kind::{HoldKind, hold_name, parse_hold};
use crate::dispatch::ports::Hold;
use crate::domain::AccountId;

/// What a hold is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldTarget {
    /// The account.
    pub account: AccountId,
    /// What of it.
    pub kind: HoldKind,
    /// The campaign's, journey's or batch's id; the account's own for an account.
    pub target: String,
}

/// A hold as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldRecord {
    /// What it is on.
    pub on: HoldTarget,
    /// Which.
    pub hold: Hold,
    /// Why, for people.
    pub reason: Option<String>,
    /// Since when.
    pub since: Timestamp,
}

struct Row {
    account_id: String,
    kind: String,
    target: String,
    state: String,
    reason: Option<String>,
    since_ms: i64,
}

impl Row {
    fn record(self) -> Option<HoldRecord> {
        Some(HoldRecord {
            on: HoldTarget {
                account: AccountId::parse(&self.account_id).ok()?,
                kind: HoldKind::parse(&self.kind)?,
                target: self.target,
            },
            hold: parse_hold(&self.state)?,
            reason: self.reason,
            since: instant(self.since_ms),
        })
    }
}

/// Pauses or cancels something, and says which hold it had before. What is cancelled stays so, and
/// what has the same hold already keeps its reason unless there is another. To be called in a
/// transaction.
///
/// # Errors
/// When the database does not do it.
pub async fn put(
    connection: &mut PgConnection,
    on: &HoldTarget,
    hold: Hold,
    reason: Option<&str>,
) -> Result<Option<Hold>, TableError> {
    let before = locked(connection, on).await?;
    sqlx::query!(
        "INSERT INTO holds (account_id, kind, target, state, reason)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (account_id, kind, target) DO UPDATE SET
            state = excluded.state,
            reason = coalesce(excluded.reason, holds.reason),
            since = CASE WHEN holds.state = excluded.state THEN holds.since ELSE now() END
        WHERE holds.state <> 'cancelled' OR excluded.state = 'cancelled'",
        on.account.as_str(),
        on.kind.as_str(),
        on.target,
        hold_name(hold),
        reason
    )
    .execute(connection)
    .await?;
    Ok(before)
}

/// Lifts a hold, unless it is graver than `gravest`, and says which there was. To be called in a
/// transaction.
///
/// # Errors
/// When the database does not do it.
pub async fn lift(
    connection: &mut PgConnection,
    on: &HoldTarget,
    gravest: Hold,
) -> Result<Option<Hold>, TableError> {
    let before = locked(connection, on).await?;
    if before.is_some_and(|hold| hold <= gravest) {
        sqlx::query!(
            "DELETE FROM holds WHERE account_id = $1 AND kind = $2 AND target = $3",
            on.account.as_str(),
            on.kind.as_str(),
            on.target
        )
        .execute(connection)
        .await?;
    }
    Ok(before)
}

async fn locked(
    connection: &mut PgConnection,
    on: &HoldTarget,
) -> Result<Option<Hold>, TableError> {
    let state = sqlx::query_scalar!(
        "SELECT state FROM holds WHERE account_id = $1 AND kind = $2 AND target = $3 FOR UPDATE",
        on.account.as_str(),
        on.kind.as_str(),
        on.target
    );
    let state = state.fetch_optional(connection).await?;
    Ok(state.as_deref().and_then(parse_hold))
}

/// Every hold of one account, or of all, the oldest last.
///
/// # Errors
/// When the database does not say.
pub async fn list(
    connection: &mut PgConnection,
    account: Option<&AccountId>,
) -> Result<Vec<HoldRecord>, TableError> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT account_id, kind, target, state, reason,
            (extract(epoch FROM since) * 1000)::bigint AS "since_ms!"
        FROM holds WHERE $1::text IS NULL OR account_id = $1
        ORDER BY since DESC, account_id, kind, target"#,
        account.map(AccountId::as_str)
    );
    let rows = rows.fetch_all(connection).await?;
    Ok(rows.into_iter().filter_map(Row::record).collect())
}

/// The holds of an account that were put last, up to so many.
///
/// # Errors
/// When the database does not say.
pub async fn newest(
    connection: &mut PgConnection,
    account: &AccountId,
    most: i64,
) -> Result<Vec<HoldRecord>, sqlx::Error> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT account_id, kind, target, state, reason,
            (extract(epoch FROM since) * 1000)::bigint AS "since_ms!"
        FROM holds WHERE account_id = $1
        ORDER BY since DESC, kind, target LIMIT $2"#,
        account.as_str(),
        most
    );
    let rows = rows.fetch_all(connection).await?;
    Ok(rows.into_iter().filter_map(Row::record).collect())
}
