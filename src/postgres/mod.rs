//! PostgreSQL: one pool of connections, questions with a time limit, and the schema.
//!
//! What is asked is not known here: the modules that keep something in the database have their own
//! queries, checked when they are compiled against `.sqlx/` (`scripts/queries.sh` renews it).

mod copied;
mod error;
mod migrations;
mod pool;
mod schema;
mod version;

pub(crate) use copied::{Copied, keep};
pub use error::{explain, records_error};
pub use migrations::{MigrationsError, migrate, migrate_at_start};
pub use pool::{BESIDE, Database, ONE_MOMENT, connect};
pub use schema::{MIGRATIONS, Schema, Step};
pub use version::{OLDEST, ServerVersion, UTF8, encoding, server_version};
