//! The keys in the table, read as a whole.

use sqlx::{Connection as _, PgConnection};

use super::api_key::KeyId;
use super::digest::SecretDigest;
use super::ring::{KeyGrant, KeyRing, StoredKey};
use super::scope::KeyScope;
use crate::accounts::reading::{BEGIN, each, version};
use crate::domain::{AccountId, Origin};

struct Row {
    key_id: String,
    account_id: String,
    digest: Vec<u8>,
    scopes: Vec<String>,
    origin: String,
    is_revoked: bool,
}

impl Row {
    /// `None` for an origin that only a newer version knows. A scope that only a newer version knows
    /// allows nothing that this one could do.
    fn stored(self) -> Option<StoredKey> {
        let scopes = self.scopes.iter();
        Some(StoredKey {
            grant: KeyGrant {
                key: KeyId::parse(self.key_id.as_bytes())?,
                account: AccountId::parse(&self.account_id).ok()?,
                scopes: scopes.filter_map(|it| KeyScope::parse(it)).collect(),
                origin: Origin::parse(&self.origin)?,
            },
            digest: SecretDigest::from_stored(&self.digest)?,
            is_revoked: self.is_revoked,
        })
    }
}

/// Every key, and the version of the tables. Keys that were revoked long ago are left out: there may
/// be many, and they are as good as unknown.
pub(super) async fn everything(connection: &mut PgConnection) -> sqlx::Result<(KeyRing, i64)> {
    let mut moment = connection.begin_with(BEGIN).await?;
    let version = version(&mut moment).await?;
    let mut ring = KeyRing::default();
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT key_id, account_id, digest, scopes, origin,
            revoked_at IS NOT NULL AS "is_revoked!"
        FROM api_keys WHERE revoked_at IS NULL OR revoked_at > now() - interval '90 days'"#
    );
    each(rows.fetch(&mut *moment), |row| {
        if let Some(key) = row.stored() {
            ring.add(key);
        }
    })
    .await?;
    moment.commit().await?;
    Ok((ring, version))
}
