//! `suppressions`: who must not be written to.

use jiff::Timestamp;
use sqlx::PgConnection;

use super::{TableError, instant};
use crate::domain::{AccountId, Scope};

/// An opt-out to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptOut {
    /// The recipient, in the form in which jobs are compared.
    pub recipient: String,
    /// What it concerns.
    pub scope: Scope,
    /// Where it came from, for people.
    pub source: Option<String>,
}

/// An opt-out as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppression {
    /// The recipient.
    pub recipient: String,
    /// `all` or a channel, perhaps one that only a newer version knows.
    pub scope: String,
    /// Where it came from, for people.
    pub source: Option<String>,
    /// When it was written down.
    pub since: Timestamp,
}

struct Row {
    recipient: String,
    scope: String,
    source: Option<String>,
    since_ms: i64,
}

impl From<Row> for Suppression {
    fn from(row: Row) -> Self {
        Self {
            recipient: row.recipient,
            scope: row.scope,
            source: row.source,
            since: instant(row.since_ms),
        }
    }
}

/// Writes opt-outs, and says how many were not there before. Those that were stay as they are.
///
/// # Errors
/// When the database does not do it.
pub async fn add(
    connection: &mut PgConnection,
    account: &AccountId,
    opt_outs: &[OptOut],
) -> Result<u64, TableError> {
    let recipients: Vec<_> = opt_outs.iter().map(|it| &*it.recipient).collect();
    let scopes: Vec<_> = opt_outs.iter().map(|it| it.scope.as_str()).collect();
    let sources: Vec<_> = opt_outs.iter().map(|it| it.source.as_deref()).collect();
    let added = sqlx::query!(
        "INSERT INTO suppressions (account_id, recipient, scope, source)
        SELECT $1, * FROM unnest($2::text[], $3::text[], $4::text[])
        ON CONFLICT DO NOTHING",
        account.as_str(),
        &recipients as &[&str],
        &scopes as &[&str],
        &sources as &[Option<&str>],
    );
    Ok(added.execute(connection).await?.rows_affected())
}

/// Removes recipients' opt-outs, of one scope or of all, and says how many there were.
///
/// # Errors
/// When the database does not do it.
pub async fn remove(
    connection: &mut PgConnection,
    account: &AccountId,
    recipients: &[String],
    scope: Option<Scope>,
) -> Result<u64, TableError> {
    let removed = sqlx::query!(
        "DELETE FROM suppressions
        WHERE account_id = $1 AND recipient = ANY ($2) AND ($3::text IS NULL OR scope = $3)",
        account.as_str(),
        recipients,
        scope.map(Scope::as_str)
    );
    Ok(removed.execute(connection).await?.rows_affected())
}

/// A recipient's opt-outs, one for each scope.
///
/// # Errors
/// When the database does not say.
pub async fn of_recipient(
    connection: &mut PgConnection,
    account: &AccountId,
    recipient: &str,
) -> Result<Vec<Suppression>, TableError> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT recipient, scope, source, (extract(epoch FROM since) * 1000)::bigint AS "since_ms!"
        FROM suppressions WHERE account_id = $1 AND recipient = $2 ORDER BY scope"#,
        account.as_str(),
        recipient
    );
    let rows = rows.fetch_all(connection).await?;
    Ok(rows.into_iter().map(Suppression::from).collect())
}

/// At most `count` opt-outs of an account, in the order of recipients and scopes, from the first one
/// behind that recipient and scope on.
///
/// # Errors
/// When the database does not say.
pub async fn page(
    connection: &mut PgConnection,
    account: &AccountId,
    scope: Option<Scope>,
    after: Option<(&str, &str)>,
    count: u16,
) -> Result<Vec<Suppression>, TableError> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT recipient, scope, source, (extract(epoch FROM since) * 1000)::bigint AS "since_ms!"
        FROM suppressions
        WHERE account_id = $1 AND (recipient, scope) > ($2, $3)
            AND ($4::text IS NULL OR scope = $4)
        ORDER BY recipient, scope LIMIT $5"#,
        account.as_str(),
        after.map_or("", |(recipient, _)| recipient),
        after.map_or("", |(_, scope)| scope),
        scope.map(Scope::as_str),
        i64::from(count)
    );
    let rows = rows.fetch_all(connection).await?;
    Ok(rows.into_iter().map(Suppression::from).collect())
}

/// So many opt-outs are looked at for one page of one scope at most, however few of them are of it: what
/// a page costs does not depend on how many there are.
pub const LOOKED_AT: u16 = 2_000;

/// One page of one scope.
#[derive(Debug)]
pub struct ScopePage {
    /// At most as many as were asked for; fewer, or none, do not mean that it is the last.
    pub found: Vec<Suppression>,
    /// Behind which recipient and scope the next one begins; `None`: this was the last.
    pub next: Option<(String, String)>,
}

/// At most `count` opt-outs of one scope, as [`page`], among the next [`LOOKED_AT`]. To be called in a
/// transaction that sees one moment.
///
/// # Errors
/// When the database does not say.
pub async fn scope_page(
    connection: &mut PgConnection,
    account: &AccountId,
    scope: Scope,
    after: Option<(&str, &str)>,
    count: u16,
) -> Result<ScopePage, TableError> {
    let (recipient, behind) = after.unwrap_or_default();
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT recipient, scope, source, (extract(epoch FROM since) * 1000)::bigint AS "since_ms!"
        FROM (
            SELECT * FROM suppressions
            WHERE account_id = $1 AND (recipient, scope) > ($2, $3)
            ORDER BY recipient, scope LIMIT $4
        ) AS looked_at
        WHERE scope = $5 ORDER BY recipient LIMIT $6"#,
        account.as_str(),
        recipient,
        behind,
        i64::from(LOOKED_AT),
        scope.as_str(),
        i64::from(count) + 1
    );
    let rows = rows.fetch_all(&mut *connection).await?;
    let mut found: Vec<_> = rows.into_iter().map(Suppression::from).collect();
    if found.len() > usize::from(count) {
        found.truncate(count.into());
        let last = found.last();
        let next = last.map(|last| (last.recipient.clone(), last.scope.clone()));
        return Ok(ScopePage { found, next });
    }
    let last = sqlx::query!(
        "SELECT recipient, scope FROM suppressions
        WHERE account_id = $1 AND (recipient, scope) > ($2, $3)
        ORDER BY recipient, scope OFFSET $4 LIMIT 1",
        account.as_str(),
        recipient,
        behind,
        i64::from(LOOKED_AT) - 1
    );
    let last = last.fetch_optional(connection).await?;
    let next = last.map(|last| (last.recipient, last.scope));
    Ok(ScopePage { found, next })
}

/// How many opt-outs an account has, of one scope or of all.
///
/// # Errors
/// When the database does not say.
pub async fn count(
    connection: &mut PgConnection,
    account: &AccountId,
    scope: Option<Scope>,
) -> Result<u64, TableError> {
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM suppressions
        WHERE account_id = $1 AND ($2::text IS NULL OR scope = $2)"#,
        account.as_str(),
        scope.map(Scope::as_str)
    );
    let count = count.fetch_one(connection).await?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Has the server look at the table's size after many opt-outs were added: plans that were made for
/// a small table must not be used any longer. A user who does not own the table may not ask for it,
/// which is no failure: the server looks by itself within a minute or so.
///
/// # Errors
/// When the database does not answer.
pub async fn take_stock(connection: &mut PgConnection) -> Result<(), TableError> {
    sqlx::query!("ANALYZE suppressions")
        .execute(connection)
        .await?;
    Ok(())
}
