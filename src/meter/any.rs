//! The meter of a process, whichever its store.

use super::{ClaimNow, Failover, MemoryStore, RedisStore, Standing, StoreError};
use crate::dispatch::ports::{AccountAnswer, AccountRequest, Conclusion, JobRequest, Meter};
use crate::domain::{AccountId, JobId};

/// The meter of a process.
#[derive(Debug)]
pub enum AnyMeter {
    /// Its counters are in Redis, shared by all replicas.
    Redis(Failover<RedisStore>),
    /// Its counters are in this process: there is no other.
    Memory(Failover<MemoryStore>),
}

impl AnyMeter {
    /// What an admission of the job would meet; see [`Failover::look`].
    ///
    /// # Errors
    /// When the shared counters do not answer.
    pub async fn look(
        &self,
        account: &AccountId,
        job: &JobRequest,
    ) -> Result<Standing, StoreError> {
        match self {
            Self::Redis(meter) => meter.look(account, job).await,
            Self::Memory(meter) => meter.look(account, job).await,
        }
    }

    /// How a job stands; see [`Failover::claim`].
    ///
    /// # Errors
    /// When the shared counters do not answer, and nothing is known here.
    pub async fn claim(&self, account: &AccountId, id: &JobId) -> Result<ClaimNow, StoreError> {
        match self {
            Self::Redis(meter) => meter.claim(account, id).await,
            Self::Memory(meter) => meter.claim(account, id).await,
        }
    }
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
