//! Does Redis answer, take writes, and in time?

use std::time::Instant;

use deadpool_redis::redis::{self, AsyncConnectionConfig, Client, ErrorKind, RedisError};

use super::{Finding, reach};
use crate::settings::Redis;

/// How long the key that is written lives, in milliseconds.
const KEY_LIFE_MS: u64 = 1_000;

/// Where Redis listens unless told otherwise.
const PORT: u16 = 6379;

pub(super) async fn look(settings: &Redis) -> Finding {
    let (what, shown) = ("redis".to_owned(), settings.url.to_string());
    // A first connection, one that speaks, two answers, and a look at who it is if it is not Redis:
    // each may take the whole time-out.
    let limit = settings.connect_timeout * 5;
    reach::look(what, shown, limit, ask_or_doubt(settings)).await
}

async fn ask_or_doubt(settings: &Redis) -> Result<String, String> {
    let error = match ask(settings).await {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    match reach::stranger(settings.url.expose(), PORT).await {
        Some(doubt) if !doubt.contains("Redis") => Err(format!("{error}; {doubt}")),
        _ => Err(error),
    }
}

async fn ask(settings: &Redis) -> Result<String, String> {
    drop(reach::connect(settings.url.expose(), PORT).await?);
    let client = Client::open(settings.url.expose().as_str()).map_err(|error| reason(&error))?;
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(settings.connect_timeout))
        .set_response_timeout(Some(settings.connect_timeout));
    let mut connection = client
        .get_multiplexed_async_connection_with_config(&config)
        .await
        .map_err(|error| reason(&error))?;
    let asked = Instant::now();
    let answer: Result<(), RedisError> = redis::cmd("PING").query_async(&mut connection).await;
    let took = asked.elapsed();
    answer.map_err(|error| reason(&error))?;
    redis::cmd("SET")
        .arg(format!("{}:check", settings.prefix))
        .arg("1")
        .arg("PX")
        .arg(KEY_LIFE_MS)
        .query_async::<()>(&mut connection)
        .await
        .map_err(|error| format!("it answers, but takes no writes: {}", reason(&error)))?;
    let millis = took.as_secs_f64() * 1_000.0;
    if took > settings.timeout {
        let allowed = settings.timeout.as_millis();
        return Err(format!(
            "answers in {millis:.1} ms; redis.timeout_ms allows {allowed}"
        ));
    }
    Ok(format!("answers in {millis:.1} ms and takes writes"))
}

/// The kind of error and the server's code for it, such as WRONGPASS. Never the text: it can quote
/// what was sent, and that may have been a password.
fn reason(error: &RedisError) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    match (error.kind(), error.code()) {
        (ErrorKind::AuthenticationFailed, _) | (_, Some("WRONGPASS" | "NOAUTH")) => {
            "user or password is wrong (redis.url)".to_owned()
        }
        (ErrorKind::Io, _) => "it can be reached, but the connection failed".to_owned(),
        (_, Some(code)) if is_code(code) => format!("it says {code}"),
        _ => error.category().to_owned(),
    }
}

fn is_code(code: &str) -> bool {
    code.len() <= 16 && code.bytes().all(|byte| byte.is_ascii_uppercase())
}
