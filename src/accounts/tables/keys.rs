//! `api_keys`: the keys of the HTTP API.

use jiff::Timestamp;
use sqlx::PgConnection;

use super::{TableError, instant};
use crate::accounts::keys::{KeyId, KeyScope, KeyScopes, StoredKey};
use crate::domain::{AccountId, Origin};

/// A key as it is listed: nothing of its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// Its public part.
    pub id: KeyId,
    /// The account.
    pub account: AccountId,
    /// What it is for, for people.
    pub name: String,
    /// What it allows.
    pub scopes: KeyScopes,
    /// The origin of what is sent with it.
    pub origin: Origin,
    /// Since when there is such a key.
    pub created: Timestamp,
    /// Since when it is valid no longer.
    pub revoked: Option<Timestamp>,
}

struct Row {
    key_id: String,
    account_id: String,
    name: String,
    scopes: Vec<String>,
    origin: String,
    created_ms: i64,
    revoked_ms: Option<i64>,
}

impl Row {
    fn record(self) -> Option<KeyRecord> {
        let scopes = self.scopes.iter();
        Some(KeyRecord {
            id: KeyId::parse(self.key_id.as_bytes())?,
            account: AccountId::parse(&self.account_id).ok()?,
            name: self.name,
            scopes: scopes.filter_map(|it| KeyScope::parse(it)).collect(),
            origin: Origin::parse(&self.origin)?,
            created: instant(self.created_ms),
            revoked: self.revoked_ms.map(instant),
        })
    }
}

/// Writes a new key, and gives it as it is listed.
///
/// # Errors
/// When the database does not do it; also when there is a key of that id already.
pub async fn create(
    connection: &mut PgConnection,
    key: &StoredKey,
    name: &str,
) -> Result<KeyRecord, TableError> {
    let grant = &key.grant;
    let scopes = grant.scopes.names();
    let created_ms = sqlx::query_scalar!(
        r#"INSERT INTO api_keys (key_id, account_id, name, digest, scopes, origin)
        VALUES ($1, $2, $3, $4, $5, $6)
        RETURNING (extract(epoch FROM created_at) * 1000)::bigint AS "created_ms!""#,
        grant.key.as_str(),
        grant.account.as_str(),
        name,
        key.digest.as_bytes(),
        &scopes as &[&str],
        grant.origin.as_str()
    );
    let created_ms = created_ms.fetch_one(connection).await?;
    Ok(KeyRecord {
        id: grant.key,
        account: grant.account.clone(),
        name: name.to_owned(),
        scopes: grant.scopes,
        origin: grant.origin,
        created: instant(created_ms),
        revoked: None,
    })
}

/// The keys of one account, or of all, revoked ones included, in the order of accounts and age.
///
/// # Errors
/// When the database does not say.
pub async fn list(
    connection: &mut PgConnection,
    account: Option<&AccountId>,
) -> Result<Vec<KeyRecord>, TableError> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT key_id, account_id, name, scopes, origin,
            (extract(epoch FROM created_at) * 1000)::bigint AS "created_ms!",
            (extract(epoch FROM revoked_at) * 1000)::bigint AS revoked_ms
        FROM api_keys WHERE $1::text IS NULL OR account_id = $1
        ORDER BY account_id, created_at, key_id"#,
        account.map(AccountId::as_str)
    );
    let rows = rows.fetch_all(connection).await?;
    Ok(rows.into_iter().filter_map(Row::record).collect())
}

/// What became of a key that was to be revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoked {
    /// The account that it belongs to.
    pub account_id: String,
    /// What it was for.
    pub name: String,
    /// Since when it is revoked.
    pub since: Timestamp,
    /// Whether it was so already.
    pub already: bool,
}

/// Revokes a key; `None` when there is none of that id. One that was revoked before keeps the instant.
///
/// # Errors
/// When the database does not do it.
pub async fn revoke(
    connection: &mut PgConnection,
    id: KeyId,
) -> Result<Option<Revoked>, TableError> {
    let revoked = sqlx::query!(
        r#"UPDATE api_keys AS now_revoked SET revoked_at = coalesce(before.revoked_at, now())
        FROM (SELECT key_id, revoked_at FROM api_keys WHERE key_id = $1 FOR UPDATE) AS before
        WHERE now_revoked.key_id = before.key_id
        RETURNING account_id, name, before.revoked_at IS NOT NULL AS "already!",
            (extract(epoch FROM now_revoked.revoked_at) * 1000)::bigint AS "since_ms!""#,
        id.as_str()
    );
    let revoked = revoked.fetch_optional(connection).await?;
    Ok(revoked.map(|row| Revoked {
        account_id: row.account_id,
        name: row.name,
        since: instant(row.since_ms),
        already: row.already,
    }))
}
