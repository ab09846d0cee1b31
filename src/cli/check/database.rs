//! Does PostgreSQL answer, in time, and is its schema the one that this program works with?

use std::time::{Duration, Instant};

use sqlx::{Connection as _, PgConnection};
use url::Url;

use super::{Finding, reach};
use crate::postgres::{
    self, MigrationsError, OLDEST, Schema, UTF8, encoding, explain, server_version,
};
use crate::settings::Database;

/// Where PostgreSQL listens unless told otherwise.
const PORT: u16 = 5432;

const WHAT: &str = "database";

/// What does not exist without one.
pub(super) fn none() -> Finding {
    Finding::note(
        WHAT,
        "none is configured (database.url): deferral (not_before), pause and cancellation, opt-outs, \
         frequency caps, quiet hours and the ledger do not exist without one",
    )
}

pub(super) async fn look(settings: &Database) -> Finding {
    let shown = settings.url.to_string();
    // A first connection, one that speaks, and a few questions.
    let limit = settings.connect_timeout * 2 + settings.timeout * 4;
    reach::look(WHAT.to_owned(), shown, limit, ask(settings)).await
}

async fn ask(settings: &Database) -> Result<String, String> {
    let url = settings.url.expose();
    // The directory of a socket is nothing to look up.
    let is_socket = url.host_str().is_some_and(|host| host.starts_with("%2F"));
    if !is_socket {
        drop(reach::connect(url, PORT).await?);
    }
    let mut connection = match postgres::connect(settings).await {
        Ok(connection) => connection,
        // Whoever answers with an error of PostgreSQL's is PostgreSQL.
        Err(error @ sqlx::Error::Database(_)) => return Err(explain(&error)),
        Err(error) => return Err(doubt(url, explain(&error)).await),
    };
    let report = report(&mut connection, settings).await;
    let _ = connection.close().await;
    report
}

async fn doubt(url: &Url, error: String) -> String {
    match reach::stranger(url, PORT).await {
        Some(doubt) => format!("{error}; {doubt}"),
        None => error,
    }
}

async fn report(connection: &mut PgConnection, settings: &Database) -> Result<String, String> {
    let answer = time(connection, settings.timeout).await?;
    let encoding = encoding(connection).await;
    let encoding = encoding.map_err(|error| explain(&error))?;
    if encoding != UTF8 {
        return Err(MigrationsError::Encoding(encoding).to_string());
    }
    let schema = Schema::look(connection).await;
    let schema = schema.map_err(|error| format!("its list of migrations: {}", explain(&error)))?;
    let schema = judge(&schema, settings.migrate)?;
    Ok(format!("{answer}; {schema}"))
}

/// Asks which version it is, and measures how long the answer takes.
async fn time(connection: &mut PgConnection, limit: Duration) -> Result<String, String> {
    let asked = Instant::now();
    let version = server_version(connection).await;
    let took = asked.elapsed();
    let version = version.map_err(|error| explain(&error))?;
    if version < OLDEST {
        return Err(format!(
            "is PostgreSQL {version}, and {OLDEST} or newer is needed"
        ));
    }
    let millis = took.as_secs_f64() * 1_000.0;
    if took > limit {
        let allowed = limit.as_millis();
        return Err(format!(
            "answers in {millis:.1} ms; database.timeout_ms allows {allowed}"
        ));
    }
    Ok(format!("PostgreSQL {version} answers in {millis:.1} ms"))
}

fn judge(schema: &Schema, will_migrate: bool) -> Result<String, String> {
    schema.refuse_changed().map_err(|error| error.to_string())?;
    let behind = match schema.pending.len() {
        0 if schema.unknown.is_empty() => return Ok("its schema is up to date".to_owned()),
        0 => {
            let newer = "its schema is newer than this program, which works with it";
            return Ok(newer.to_owned());
        }
        1 => "its schema is 1 migration behind".to_owned(),
        pending => format!("its schema is {pending} migrations behind"),
    };
    if will_migrate {
        return Ok(format!("{behind}, which a worker that starts will apply"));
    }
    Err(format!("{behind}: run `lanekeeper migrate`"))
}
