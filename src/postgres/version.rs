//! Which PostgreSQL answers, and how it keeps texts.

use std::fmt;

use sqlx::PgConnection;

/// The oldest server that is supported: older ones are no longer maintained.
pub const OLDEST: ServerVersion = ServerVersion(150_000);

/// A server's version, as its `server_version_num` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerVersion(i32);

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 10_000, self.0 % 10_000)
    }
}

/// In which encoding a database keeps texts. Any other than [`UTF8`] knows only some of the texts
/// that jobs hold, and answers with an error to the rest.
///
/// # Errors
/// When it does not answer.
pub async fn encoding(connection: &mut PgConnection) -> Result<String, sqlx::Error> {
    let name = sqlx::query_scalar!(r#"SELECT current_setting('server_encoding') AS "name!""#);
    name.fetch_one(connection).await
}

/// The one encoding that knows every text.
pub const UTF8: &str = "UTF8";

/// Asks the server for its version.
///
/// # Errors
/// When it does not answer.
pub async fn server_version(connection: &mut PgConnection) -> Result<ServerVersion, sqlx::Error> {
    let number = sqlx::query_scalar!(
        r#"SELECT current_setting('server_version_num')::integer AS "number!""#
    );
    number.fetch_one(connection).await.map(ServerVersion)
}
