//! `holds`: what is paused or cancelled.

use jiff::Timestamp;
use sqlx::PgConnection;

use super::{TableError, instant};
use crate::accounts::hold_kind::{HoldKind, hold_name, parse_hold};
use crate::accounts::keys::KeyId;
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
    /// The id of the API key that made it; `None`: an operator did.
    pub by_key: Option<String>,
}

/// What became of a hold that was to be lifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifted {
    /// There was none.
    NotHeld,
    /// It is lifted.
    Lifted(Hold),
    /// It stays, because it is graver than what was to be lifted.
    Graver(Hold),
    /// It stays, because an operator made it.
    Operators(Hold),
}

impl Lifted {
    /// What becomes of a hold: `before`, and whether an operator made it.
    #[must_use]
    pub fn of(before: Option<(Hold, bool)>, gravest: Hold, by: Option<KeyId>) -> Self {
        match before {
            None => Self::NotHeld,
            Some((hold, true)) if by.is_some() => Self::Operators(hold),
            Some((hold, _)) if hold > gravest => Self::Graver(hold),
            Some((hold, _)) => Self::Lifted(hold),
        }
    }
}

struct Row {
    account_id: String,
    kind: String,
    target: String,
    state: String,
    reason: Option<String>,
    since_ms: i64,
    by_key: Option<String>,
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
            by_key: self.by_key,
        })
    }
}

/// Pauses or cancels something, and says which hold it had before. What is cancelled stays so, and
/// what has the same hold already keeps its reason unless there is another. `by`: the API key that
/// does it, or `None`, an operator; a key changes nothing of what an operator has laid down. To be
/// called in a transaction.
///
/// # Errors
/// When the database does not do it.
pub async fn put(
    connection: &mut PgConnection,
    on: &HoldTarget,
    hold: Hold,
    reason: Option<&str>,
    by: Option<KeyId>,
) -> Result<Option<Hold>, TableError> {
    let before = locked(connection, on).await?;
    // Where there was none to lock, an operator may put one meanwhile: the statement itself looks.
    sqlx::query!(
        "INSERT INTO holds (account_id, kind, target, state, reason, by_key)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (account_id, kind, target) DO UPDATE SET
            state = excluded.state,
            reason = coalesce(excluded.reason, holds.reason),
            by_key = excluded.by_key,
            since = CASE WHEN holds.state = excluded.state THEN holds.since ELSE now() END
        WHERE (holds.state <> 'cancelled' OR excluded.state = 'cancelled')
            AND (holds.by_key IS NOT NULL OR excluded.by_key IS NULL)",
        on.account.as_str(),
        on.kind.as_str(),
        on.target,
        hold_name(hold),
        reason,
        by.as_ref().map(KeyId::as_str),
    )
    .execute(connection)
    .await?;
    Ok(before.map(|(hold, _)| hold))
}

/// Lifts a hold, unless it is graver than `gravest`, or an operator's while an API key (`by`) asks.
/// To be called in a transaction.
///
/// # Errors
/// When the database does not do it.
pub async fn lift(
    connection: &mut PgConnection,
    on: &HoldTarget,
    gravest: Hold,
    by: Option<KeyId>,
) -> Result<Lifted, TableError> {
    let before = locked(connection, on).await?;
    let lifted = Lifted::of(before, gravest, by);
    if matches!(lifted, Lifted::Lifted(_)) {
        sqlx::query!(
            "DELETE FROM holds WHERE account_id = $1 AND kind = $2 AND target = $3",
            on.account.as_str(),
            on.kind.as_str(),
            on.target
        )
        .execute(connection)
        .await?;
    }
    Ok(lifted)
}

/// A hold, and whether an operator made it.
async fn locked(
    connection: &mut PgConnection,
    on: &HoldTarget,
) -> Result<Option<(Hold, bool)>, TableError> {
    let row = sqlx::query!(
        r#"SELECT state, by_key IS NULL AS "is_operators!" FROM holds
        WHERE account_id = $1 AND kind = $2 AND target = $3 FOR UPDATE"#,
        on.account.as_str(),
        on.kind.as_str(),
        on.target
    );
    let row = row.fetch_optional(connection).await?;
    Ok(row.and_then(|row| Some((parse_hold(&row.state)?, row.is_operators))))
}

/// A hold.
///
/// # Errors
/// When the database does not say.
pub async fn find(
    connection: &mut PgConnection,
    on: &HoldTarget,
) -> Result<Option<HoldRecord>, TableError> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT account_id, kind, target, state, reason, by_key,
            (extract(epoch FROM since) * 1000)::bigint AS "since_ms!"
        FROM holds WHERE account_id = $1 AND kind = $2 AND target = $3"#,
        on.account.as_str(),
        on.kind.as_str(),
        on.target
    );
    let row = row.fetch_optional(connection).await?;
    Ok(row.and_then(Row::record))
}

/// At most `count` holds of an account, in the order of kinds and targets, from the first one behind
/// `after` on.
///
/// # Errors
/// When the database does not say.
pub async fn page(
    connection: &mut PgConnection,
    account: &AccountId,
    after: Option<(HoldKind, &str)>,
    count: u16,
) -> Result<Vec<HoldRecord>, TableError> {
    let (kind, target) = after.map_or(("", ""), |(kind, target)| (kind.as_str(), target));
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT account_id, kind, target, state, reason, by_key,
            (extract(epoch FROM since) * 1000)::bigint AS "since_ms!"
        FROM holds WHERE account_id = $1 AND (kind, target) > ($2, $3)
        ORDER BY kind, target LIMIT $4"#,
        account.as_str(),
        kind,
        target,
        i64::from(count)
    );
    let rows = rows.fetch_all(connection).await?;
    Ok(rows.into_iter().filter_map(Row::record).collect())
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
        r#"SELECT account_id, kind, target, state, reason, by_key,
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
        r#"SELECT account_id, kind, target, state, reason, by_key,
            (extract(epoch FROM since) * 1000)::bigint AS "since_ms!"
        FROM holds WHERE account_id = $1
        ORDER BY since DESC, kind, target LIMIT $2"#,
        account.as_str(),
        most
    );
    let rows = rows.fetch_all(connection).await?;
    Ok(rows.into_iter().filter_map(Row::record).collect())
}
