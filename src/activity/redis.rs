//! The seconds of all processes in Redis, beside the counters.
//!
//! `<prefix>:{<account>}:second:<unix second>` is a hash with one field per process, which holds
//! what that process counted. It lives for [`Store::KEPT`]. Seconds are those of Redis's own clock,
//! so that processes whose clocks differ speak of the same ones.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use deadpool_redis::redis::aio::MultiplexedConnection;
use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, FromRedisValue, IntoConnectionInfo as _, Pipeline, RedisResult,
    Value, cmd, pipe,
};
use jiff::Timestamp;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::second::Second;
use super::store::{Reading, SecondsError, Store, WindowNow};
use crate::domain::AccountId;
use crate::settings;

/// Nobody waits longer for figures.
const LONGEST: Duration = Duration::from_secs(1);

/// Seconds in Redis.
pub struct RedisSeconds {
    client: Client,
    /// What every key begins with.
    prefix: String,
    /// The name of this process among others.
    process: String,
    /// How long one question, and connecting before it, may take.
    limit: Duration,
    connection: Mutex<Option<MultiplexedConnection>>,
    /// By how many milliseconds Redis's clock is ahead of this machine's.
    ahead_ms: AtomicI64,
    takes_writes: AtomicBool,
}

impl RedisSeconds {
    /// Seconds where the settings have the counters. Nothing is connected yet.
    ///
    /// # Errors
    /// When the URL cannot be used.
    pub fn open(settings: &settings::Redis) -> RedisResult<Self> {
        let info = settings.url.expose().as_str().into_connection_info()?;
        Ok(Self {
            client: Client::open(info)?,
            prefix: format!("{}:", settings.prefix),
            process: format!("{:016x}", fastrand::u64(..)),
            limit: settings.connect_timeout.min(LONGEST),
            connection: Mutex::default(),
            ahead_ms: AtomicI64::new(0),
            takes_writes: AtomicBool::new(true),
        })
    }

    pub(super) fn now_ms(&self) -> u64 {
        let here = Timestamp::now().as_millisecond();
        u64::try_from(here + self.ahead_ms.load(Relaxed)).unwrap_or_default()
    }

    pub(super) async fn leave(
        &self,
        second: u64,
        counted: &[(AccountId, Second)],
    ) -> Result<(), SecondsError> {
        let mut leaving = asking_the_time();
        let kept = Store::KEPT.as_secs();
        // So that it shows, also when there is nothing to tell, whether anything could be told.
        let probe = format!("{}second", self.prefix);
        leaving
            .cmd("SET")
            .arg(probe)
            .arg(second)
            .arg("EX")
            .arg(kept)
            .ignore();
        for (account, counts) in counted {
            let key = self.second(account, second);
            let (field, text) = (&self.process, counts.to_text());
            leaving.cmd("HSET").arg(&key).arg(field).arg(text).ignore();
            leaving.cmd("EXPIRE").arg(&key).arg(kept).ignore();
        }
        let left = self.ask(&leaving).await;
        self.takes_writes.store(left.is_ok(), Relaxed);
        left.map(drop)
    }

    pub(super) fn takes_writes(&self) -> bool {
        self.takes_writes.load(Relaxed)
    }

    pub(super) async fn read(
        &self,
        account: &AccountId,
        seconds: RangeInclusive<u64>,
    ) -> Result<Reading, SecondsError> {
        let mut reading = asking_the_time();
        let counter = format!("{}{{{account}}}:count", self.prefix);
        reading.cmd("GET").arg(&counter);
        reading.cmd("PTTL").arg(&counter);
        for second in seconds.clone() {
            reading.cmd("HVALS").arg(self.second(account, second));
        }
        let mut replies = self.ask(&reading).await?.into_iter();
        let used = value(replies.next()).unwrap_or(0);
        let left: i64 = value(replies.next()).unwrap_or(0);
        let left = u64::try_from(left).unwrap_or(0);
        Ok(Reading {
            window: WindowNow {
                used,
                left: Duration::from_millis(left),
            },
            seconds: by_second(seconds, replies),
        })
    }

    /// What each of several accounts did, in one round trip.
    pub(super) async fn read_all(
        &self,
        accounts: &[AccountId],
        seconds: RangeInclusive<u64>,
    ) -> Result<Vec<BTreeMap<u64, Second>>, SecondsError> {
        let mut reading = asking_the_time();
        for account in accounts {
            for second in seconds.clone() {
                reading.cmd("HVALS").arg(self.second(account, second));
            }
        }
        let mut replies = self.ask(&reading).await?.into_iter();
        let of_one = |_: &AccountId| by_second(seconds.clone(), &mut replies);
        Ok(accounts.iter().map(of_one).collect())
    }

    fn second(&self, account: &AccountId, second: u64) -> String {
        format!("{}{{{account}}}:second:{second}", self.prefix)
    }

    /// Asks, and learns the time by Redis's clock from the first of the answers; gives the others.
    async fn ask(&self, question: &Pipeline) -> Result<Vec<Value>, SecondsError> {
        let asked = timeout(self.limit, self.ask_in_any_time(question)).await;
        let answer = asked
            .map_err(|_| SecondsError)
            .and_then(|answer| answer.map_err(|_| SecondsError));
        if answer.is_err() {
            // One that was late would answer the next question with this one's answer.
            *self.connection.lock().await = None;
        }
        let mut replies = answer?.into_iter();
        if let Some((seconds, micros)) = value::<(i64, i64)>(replies.next()) {
            let there = seconds * 1_000 + micros / 1_000;
            self.ahead_ms
                .store(there - Timestamp::now().as_millisecond(), Relaxed);
        }
        Ok(replies.collect())
    }

    async fn ask_in_any_time(&self, question: &Pipeline) -> RedisResult<Vec<Value>> {
        let mut connection = self.connected().await?;
        question.query_async(&mut connection).await
    }

    async fn connected(&self) -> RedisResult<MultiplexedConnection> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = &*kept {
            return Ok(connection.clone());
        }
        let limit = Some(self.limit);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(limit)
            .set_response_timeout(limit);
        let connecting = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        let connection = connecting.await?;
        *kept = Some(connection.clone());
        Ok(connection)
    }
}

impl std::fmt::Debug for RedisSeconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisSeconds").finish_non_exhaustive()
    }
}

fn asking_the_time() -> Pipeline {
    let mut question = pipe();
    question.add_command(cmd("TIME"));
    question
}

/// What was counted in each second in which anything was: a reply for each.
fn by_second(
    seconds: RangeInclusive<u64>,
    replies: impl Iterator<Item = Value>,
) -> BTreeMap<u64, Second> {
    let told = seconds.zip(replies).filter_map(|(at, texts)| {
        let texts: Vec<String> = value(Some(texts))?;
        Some((at, together(&texts)?))
    });
    told.collect()
}

/// What all processes counted, or nothing where nobody did.
fn together(texts: &[String]) -> Option<Second> {
    let seconds = texts.iter().filter_map(|text| Second::from_text(text));
    seconds.reduce(|mut sum, one| {
        sum.merge(&one);
        sum
    })
}

/// A reply as what it should be; nothing where it is nil or something else.
fn value<T: FromRedisValue>(reply: Option<Value>) -> Option<T> {
    match reply? {
        Value::Nil => None,
        reply => T::from_redis_value(reply).ok(),
    }
}
