//! The one connection that is kept, and its renewal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool_redis::redis::aio::MultiplexedConnection;
use deadpool_redis::redis::{AsyncConnectionConfig, Pipeline, Value, cmd, pipe};
use deadpool_redis::{Connection, Manager, Pool, Runtime};

use super::errors;
use super::options::{RedisOptions, RedisOptionsError};
use super::scripts::{Call, Script};
use crate::meter::StoreError;

/// A connection with both scripts loaded, shared by all callers.
#[derive(Clone)]
pub(super) struct Open {
    connection: MultiplexedConnection,
    /// Tells this connection from earlier and later ones.
    pub(super) serial: u64,
    hashes: Arc<[String]>,
}

/// What is kept: the pool's own object, so that the pool knows of it, and what callers clone.
struct Kept {
    pooled: Connection,
    open: Open,
}

/// Keeps one multiplexed connection out of the pool's hands: a pool that hands connections out
/// anew sends two extra commands each time.
pub(super) struct Link {
    pool: Pool,
    connecting: tokio::sync::Mutex<u64>,
    kept: Mutex<Option<Kept>>,
}

impl Link {
    pub(super) fn new(options: &RedisOptions) -> Result<Self, RedisOptionsError> {
        options.check()?;
        let timeout = Some(options.connect_timeout);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(timeout)
            .set_response_timeout(Some(options.timeout.max(Duration::from_millis(1))));
        let manager = Manager::new_with_config(options.url.as_str(), config)
            .map_err(|_| RedisOptionsError::Url)?;
        let pool = Pool::builder(manager)
            .max_size(2)
            .wait_timeout(timeout)
            .create_timeout(timeout)
            // One that does not answer within a decision's time is not worth waiting for: a new
            // one is made at once.
            .recycle_timeout(Some(options.timeout))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|_| RedisOptionsError::Timeout)?;
        Ok(Self {
            pool,
            connecting: tokio::sync::Mutex::new(0),
            kept: Mutex::new(None),
        })
    }

    /// The kept connection, or a new one. One caller at a time connects; the others wait for it.
    pub(super) async fn open(&self) -> Result<Open, StoreError> {
        if let Some(open) = self.current() {
            return Ok(open);
        }
        let mut serial = self.connecting.lock().await;
        if let Some(open) = self.current() {
            return Ok(open);
        }
        let pooled = self.pool.get().await;
        let pooled = pooled.map_err(|error| errors::of_pool(&error))?;
        *serial += 1;
        let open = match Open::new(MultiplexedConnection::clone(&pooled), *serial).await {
            Ok(open) => open,
            Err(error) => {
                drop(Connection::take(pooled));
                return Err(error);
            }
        };
        *self.kept() = Some(Kept {
            pooled,
            open: open.clone(),
        });
        Ok(open)
    }

    /// Gives the connection with this serial up, unless a newer one has taken its place.
    pub(super) fn discard(&self, serial: u64) {
        let given_up = self.kept().take_if(|kept| kept.open.serial == serial);
        if let Some(kept) = given_up {
            drop(Connection::take(kept.pooled));
        }
    }

    fn current(&self) -> Option<Open> {
        self.kept().as_ref().map(|kept| kept.open.clone())
    }

    fn kept(&self) -> MutexGuard<'_, Option<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

impl Open {
    async fn new(mut connection: MultiplexedConnection, serial: u64) -> Result<Self, StoreError> {
        let mut loading = pipe();
        for script in Script::ALL {
            loading.add_command(script.load());
        }
        let replies = send(&mut connection, &loading).await?;
        let hash = |reply| match answer(reply)? {
            Value::BulkString(hash) => String::from_utf8(hash).map_err(|_| StoreError::Failed),
            _ => Err(StoreError::Failed),
        };
        let hashes: Vec<String> = replies.into_iter().map(hash).collect::<Result<_, _>>()?;
        Ok(Self {
            connection,
            serial,
            hashes: hashes.into(),
        })
    }

    /// Runs one script once per call. Calls that found the script gone, and therefore did nothing,
    /// are run again after it is loaded again; no other call ever is.
    pub(super) async fn run(
        &mut self,
        script: Script,
        calls: &[Call],
    ) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        let mut replies = self.ask(script, calls.iter(), false).await?;
        let missed = |reply: &Value| matches!(reply, Value::ServerError(error) if error.code() == "NOSCRIPT");
        if replies.iter().any(missed) {
            let again = calls
                .iter()
                .zip(&replies)
                .filter(|(_, reply)| missed(reply));
            let again: Vec<&Call> = again.map(|(call, _)| call).collect();
            let mut late = self.ask(script, again.into_iter(), true).await?.into_iter();
            for reply in replies.iter_mut().filter(|reply| missed(reply)) {
                *reply = late.next().ok_or(StoreError::Failed)?;
            }
        }
        Ok(replies.into_iter().map(answer).collect())
    }

    /// One reply per command; an error of any of them is an error of all.
    pub(super) async fn ask_all(&mut self, commands: &Pipeline) -> Result<Vec<Value>, StoreError> {
        let replies = send(&mut self.connection, commands).await?;
        replies.into_iter().map(answer).collect()
    }

    async fn ask(
        &mut self,
        script: Script,
        calls: impl Iterator<Item = &Call>,
        load: bool,
    ) -> Result<Vec<Value>, StoreError> {
        let mut asking = pipe();
        if load {
            asking.add_command(script.load());
        }
        let hash = &self.hashes[script as usize];
        for call in calls {
            let mut command = cmd("EVALSHA");
            command.arg(hash);
            call.write(&mut command);
            asking.add_command(command);
        }
        let mut replies = send(&mut self.connection, &asking).await?;
        if load {
            replies.remove(0);
        }
        Ok(replies)
    }
}

/// One reply per command; errors that the server answers are among them.
async fn send(
    connection: &mut MultiplexedConnection,
    commands: &Pipeline,
) -> Result<Vec<Value>, StoreError> {
    let count = commands.len();
    let replies = connection.send_packed_commands(commands, 0, count).await;
    let replies = replies.map_err(|error| errors::of_failure(&error))?;
    if replies.len() == count {
        Ok(replies)
    } else {
        Err(StoreError::Failed)
    }
}

fn answer(reply: Value) -> Result<Value, StoreError> {
    match reply {
        Value::ServerError(error) => Err(errors::of_answer(&error)),
        value => Ok(value),
    }
}
