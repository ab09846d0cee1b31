//! Keys of the HTTP API: who presents one may do what it grants, for the account that it belongs to.
//!
//! A key is `lk_<key id>_<secret>`. The id is public, and what people and logs name a key by. Of the
//! secret only a digest is stored. An API server keeps all of them in memory ([`LiveKeyRing`]): a
//! request is checked without asking the database.

mod api_key;
mod digest;
mod live;
mod reading;
mod ring;
mod scope;

pub use api_key::{ApiKey, KeyId, NoRandomness};
pub use digest::SecretDigest;
pub use live::{LiveKeyRing, keep};
pub use ring::{KeyError, KeyGrant, KeyRing, StoredKey};
pub use scope::{KeyScope, KeyScopes};
