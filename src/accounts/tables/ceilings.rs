//! `ceilings`: of sender numbers and messaging services.

use sqlx::PgConnection;

use super::TableError;
use super::accounts::{self, Changed};
use crate::domain::AccountId;

/// What has a ceiling of its own within its account's budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CeilingKind {
    /// A sender number, or another sender id.
    Number,
    /// A messaging service.
    Service,
}

impl CeilingKind {
    /// The spelling in the table and in commands.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Service => "service",
        }
    }
}

/// A ceiling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CeilingRecord {
    /// The account.
    pub account: AccountId,
    /// Of what.
    pub kind: CeilingKind,
    /// The sender in normalised form, or the service.
    pub target: String,
    /// Messages per second, 1 to 10⁹.
    pub per_second: u32,
}

struct Row {
    account_id: String,
    kind: String,
    target: String,
    per_second: i32,
}

impl Row {
    fn record(self) -> Option<CeilingRecord> {
        let kind = match &*self.kind {
            "number" => CeilingKind::Number,
            "service" => CeilingKind::Service,
            _ => return None,
        };
        Some(CeilingRecord {
            account: AccountId::parse(&self.account_id).ok()?,
            kind,
            target: self.target,
            per_second: self.per_second.unsigned_abs(),
        })
    }
}

/// The ceilings of one account, or of all, in the order of accounts, kinds and targets.
///
/// # Errors
/// When the database does not say.
pub async fn list(
    connection: &mut PgConnection,
    account: Option<&AccountId>,
) -> Result<Vec<CeilingRecord>, TableError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT account_id, kind, target, per_second
        FROM ceilings WHERE $1::text IS NULL OR account_id = $1
        ORDER BY account_id, kind, target",
        account.map(AccountId::as_str)
    );
    let rows = rows.fetch_all(connection).await?;
    Ok(rows.into_iter().filter_map(Row::record).collect())
}

/// Writes ceilings, each target given once. To be called in a transaction.
///
/// # Errors
/// When an account has no row, or the database does not do it.
pub async fn put(
    connection: &mut PgConnection,
    ceilings: &[CeilingRecord],
) -> Result<Changed, TableError> {
    accounts::expect(connection, ceilings.iter().map(|it| &it.account)).await?;
    let ids: Vec<_> = ceilings.iter().map(|it| it.account.as_str()).collect();
    let kinds: Vec<_> = ceilings.iter().map(|it| it.kind.as_str()).collect();
    let targets: Vec<_> = ceilings.iter().map(|it| &*it.target).collect();
    // What is too large is refused by the table.
    let rates = ceilings.iter().map(|it| i32::try_from(it.per_second));
    let rates: Vec<_> = rates.map(|rate| rate.unwrap_or(i32::MAX)).collect();
    let are_new = sqlx::query_scalar!(
        r#"INSERT INTO ceilings (account_id, kind, target, per_second)
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::integer[])
        ON CONFLICT (account_id, kind, target) DO UPDATE SET per_second = excluded.per_second
        WHERE ceilings.per_second <> excluded.per_second
        RETURNING xmax = 0 AS "is_new!""#,
        &ids as &[&str],
        &kinds as &[&str],
        &targets as &[&str],
        &rates,
    )
    .fetch_all(connection)
    .await?;
    Ok(Changed::of(ceilings.len(), &are_new))
}

/// Removes a ceiling; `false` when there was none.
///
/// # Errors
/// When the database does not do it.
pub async fn remove(
    connection: &mut PgConnection,
    account: &AccountId,
    kind: CeilingKind,
    target: &str,
) -> Result<bool, TableError> {
    let removed = sqlx::query!(
        "DELETE FROM ceilings WHERE account_id = $1 AND kind = $2 AND target = $3",
        account.as_str(),
        kind.as_str(),
        target
    );
    Ok(removed.execute(connection).await?.rows_affected() > 0)
}
