//! The meter of a process, whichever its store.

use super::{Failover, MemoryStore, RedisStore};
use crate::dispatch::ports::{AccountAnswer, AccountRequest, Conclusion, Meter};

/// The meter of a process.
#[derive(Debug)]
pub enum AnyMeter {
    /// Its counters are in Redis, shared by all replicas.
    Redis(Failover<RedisStore>),
    /// Its counters are in this process: there is no other.
    Memory(Failover<MemoryStore>),
}

impl Meter for AnyMeter {
    async fn admit(&self, requests: Vec<AccountRequest>) -> Vec<AccountAnswer> {
        match self {
            Self::Redis(meter) => meter.admit(requests).await,
            Self::Memory(meter) => meter.admit(requests).await,
        }
    }

    async fn conclude(&self, conclusions: Vec<Conclusion>) {
        match self {
            Self::Redis(meter) => meter.conclude(conclusions).await,
            Self::Memory(meter) => meter.conclude(conclusions).await,
        }
    }
}
