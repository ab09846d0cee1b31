//! `frequency_caps`.

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgConnection;

use super::TableError;
use super::accounts::{self, Changed};
use crate::accounts::policy::CapRule;
use crate::domain::{AccountId, Channel};

/// A cap of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapRecord {
    /// The account.
    pub account: AccountId,
    /// The cap.
    pub rule: CapRule,
}

struct Row {
    account_id: String,
    name: String,
    channel: Option<String>,
    category: Option<String>,
    max_messages: i32,
    window_seconds: i32,
}

impl Row {
    fn record(self) -> Option<CapRecord> {
        Some(CapRecord {
            account: AccountId::parse(&self.account_id).ok()?,
            rule: CapRule {
                name: Arc::from(self.name),
                // A cap of a channel that only a newer version knows is not shown as one of all.
                channel: match self.channel {
                    None => None,
                    Some(name) => Some(Channel::parse(&name)?),
                },
                category: self.category.map(Into::into),
                limit: self.max_messages.unsigned_abs(),
                window: Duration::from_secs(self.window_seconds.unsigned_abs().into()),
            },
        })
    }
}

/// The caps of one account, or of all, in the order of accounts and names.
///
/// # Errors
/// When the database does not say.
pub async fn list(
    connection: &mut PgConnection,
    account: Option<&AccountId>,
) -> Result<Vec<CapRecord>, TableError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT account_id, name, channel, category, max_messages, window_seconds
        FROM frequency_caps WHERE $1::text IS NULL OR account_id = $1
        ORDER BY account_id, name",
        account.map(AccountId::as_str)
    );
    let rows = rows.fetch_all(connection).await?;
    Ok(rows.into_iter().filter_map(Row::record).collect())
}

/// At most `count` caps of an account, in the order of names, from the first one behind `after` on.
///
/// # Errors
/// When the database does not say.
pub async fn page(
    connection: &mut PgConnection,
    account: &AccountId,
    after: Option<&str>,
    count: u16,
) -> Result<Vec<CapRecord>, TableError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT account_id, name, channel, category, max_messages, window_seconds
        FROM frequency_caps WHERE account_id = $1 AND name > $2 ORDER BY name LIMIT $3",
        account.as_str(),
        after.unwrap_or_default(),
        i64::from(count)
    );
    let rows = rows.fetch_all(connection).await?;
    Ok(rows.into_iter().filter_map(Row::record).collect())
}

/// A cap by its name.
///
/// # Errors
/// When the database does not say.
pub async fn find(
    connection: &mut PgConnection,
    account: &AccountId,
    name: &str,
) -> Result<Option<CapRecord>, TableError> {
    let row = sqlx::query_as!(
        Row,
        "SELECT account_id, name, channel, category, max_messages, window_seconds
        FROM frequency_caps WHERE account_id = $1 AND name = $2",
        account.as_str(),
        name
    );
    let row = row.fetch_optional(connection).await?;
    Ok(row.and_then(Row::record))
}

/// How many caps an account has.
///
/// # Errors
/// When the database does not say.
pub async fn count(
    connection: &mut PgConnection,
    account: &AccountId,
) -> Result<usize, TableError> {
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM frequency_caps WHERE account_id = $1"#,
        account.as_str()
    );
    let count = count.fetch_one(connection).await?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Writes caps, each account's name given once; those that were there are replaced as a whole. To be
/// called in a transaction.
///
/// # Errors
/// When an account has no row, or the database does not do it.
pub async fn put(connection: &mut PgConnection, caps: &[CapRecord]) -> Result<Changed, TableError> {
    accounts::expect(connection, caps.iter().map(|cap| &cap.account)).await?;
    let ids: Vec<_> = caps.iter().map(|cap| cap.account.as_str()).collect();
    let names: Vec<_> = caps.iter().map(|cap| &*cap.rule.name).collect();
    let channels = caps.iter().map(|cap| cap.rule.channel.map(Channel::as_str));
    let categories = caps.iter().map(|cap| cap.rule.category.as_deref());
    let limits = caps.iter().map(|cap| cap.rule.limit);
    let windows = caps.iter().map(|cap| cap.rule.window.as_secs());
    let are_new = sqlx::query_scalar!(
        r#"INSERT INTO frequency_caps (account_id, name, channel, category, max_messages,
            window_seconds)
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::integer[],
            $6::integer[])
        ON CONFLICT (account_id, name) DO UPDATE SET
            channel = excluded.channel,
            category = excluded.category,
            max_messages = excluded.max_messages,
            window_seconds = excluded.window_seconds
        WHERE (frequency_caps.channel, frequency_caps.category, frequency_caps.max_messages,
                frequency_caps.window_seconds)
            IS DISTINCT FROM (excluded.channel, excluded.category, excluded.max_messages,
                excluded.window_seconds)
        RETURNING xmax = 0 AS "is_new!""#,
        &ids as &[&str],
        &names as &[&str],
        &channels.collect::<Vec<_>>() as &[Option<&str>],
        &categories.collect::<Vec<_>>() as &[Option<&str>],
        &limits.map(stored).collect::<Vec<_>>(),
        &windows.map(stored).collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await?;
    Ok(Changed::of(caps.len(), &are_new))
}

/// What is too large is refused by the table.
fn stored(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}

/// Removes a cap; `false` when there was none of that name.
///
/// # Errors
/// When the database does not do it.
pub async fn remove(
    connection: &mut PgConnection,
    account: &AccountId,
    name: &str,
) -> Result<bool, TableError> {
    let removed = sqlx::query!(
        "DELETE FROM frequency_caps WHERE account_id = $1 AND name = $2",
        account.as_str(),
        name
    );
    Ok(removed.execute(connection).await?.rows_affected() > 0)
}
