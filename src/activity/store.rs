//! Where the seconds of all processes lie.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use thiserror::Error;

use super::memory::MemorySeconds;
use super::redis::RedisSeconds;
use super::second::Second;
use crate::domain::AccountId;

/// Nothing answers where the seconds lie, or not in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the store of counters does not answer")]
pub struct SecondsError;

/// An account's counter at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WindowNow {
    /// Messages admitted in the current window, both lanes together.
    pub used: u32,
    /// How long it still lasts; zero when there is none.
    pub left: Duration,
}

/// What is known of an account.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Its counter.
    pub window: WindowNow,
    /// What it did, by the second, in seconds since the Unix epoch. Seconds in which it did nothing
    /// are not there.
    pub seconds: BTreeMap<u64, Second>,
}

/// Where the seconds of all processes lie: with a worker or an API server in Redis, beside the
/// counters, and with `dev` in memory.
#[derive(Debug)]
pub enum Store {
    /// In Redis.
    Redis(Box<RedisSeconds>),
    /// In this process.
    Memory(MemorySeconds),
}

impl Store {
    /// How long a second is kept.
    pub const KEPT: Duration = Duration::from_secs(90);

    /// The time by the clock that all processes share, in milliseconds since the Unix epoch, as well
    /// as it is known.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        match self {
            Self::Redis(seconds) => seconds.now_ms(),
            Self::Memory(seconds) => seconds.now_ms(),
        }
    }

    /// Leaves what this process has counted within a second.
    ///
    /// # Errors
    /// When it cannot be left there.
    pub async fn leave(
        &self,
        second: u64,
        counted: &[(AccountId, Second)],
    ) -> Result<(), SecondsError> {
        match self {
            Self::Redis(seconds) => seconds.leave(second, counted).await,
            Self::Memory(seconds) => {
                seconds.leave(second, counted);
                Ok(())
            }
        }
    }

    /// Whether what was left last could be left: what does not take seconds counts no sends either.
    #[must_use]
    pub fn takes_writes(&self) -> bool {
        match self {
            Self::Redis(seconds) => seconds.takes_writes(),
            Self::Memory(_) => true,
        }
    }

    /// An account's counter, and what it did within these seconds.
    ///
    /// # Errors
    /// When nobody says.
    pub async fn read(
        &self,
        account: &AccountId,
        seconds: RangeInclusive<u64>,
    ) -> Result<Reading, SecondsError> {
        match self {
            Self::Redis(store) => store.read(account, seconds).await,
            Self::Memory(store) => Ok(store.read(account, seconds)),
        }
    }

    /// What each of several accounts did within these seconds, in their order: one question for all
    /// of them. Seconds in which an account did nothing are not there.
    ///
    /// # Errors
    /// When nobody says.
    pub async fn read_all(
        &self,
        accounts: &[AccountId],
        seconds: RangeInclusive<u64>,
    ) -> Result<Vec<BTreeMap<u64, Second>>, SecondsError> {
        match self {
            Self::Redis(store) => store.read_all(accounts, seconds).await,
            Self::Memory(store) => {
                let read = |account| store.read(account, seconds.clone()).seconds;
                Ok(accounts.iter().map(read).collect())
            }
        }
    }
}
