//! The counters, caps and claims that all replicas share, in Redis 6.2 or newer.

mod admission;
mod answers;
mod conclusions;
mod errors;
mod keys;
mod link;
mod look;
mod options;
mod scripts;

use tokio::time::Instant;

use super::{CounterStore, Standing, StoreAnswer, StoreError};
use crate::dispatch::ports::{AccountRequest, Conclusion, JobRequest};
use crate::domain::AccountId;
use deadpool_redis::redis::Value;
use link::{Link, Open};
pub use look::look;
pub use options::{RedisOptions, RedisOptionsError};
use scripts::{Call, Script};

/// A [`CounterStore`] in Redis: one script call per account and batch, all accounts of a batch in
/// one round trip.
///
/// The keys of each call share one hash tag, so a Redis Cluster could take each call; on one, the
/// calls would have to be sent per slot instead of in one pipeline.
#[derive(Debug)]
pub struct RedisStore {
    options: RedisOptions,
    link: Link,
}

impl RedisStore {
    /// A store that connects when it is first used.
    ///
    /// # Errors
    /// When the options cannot be right; never because nothing answers at the URL.
    pub fn new(options: RedisOptions) -> Result<Self, RedisOptionsError> {
        let link = Link::new(&options)?;
        Ok(Self { options, link })
    }

    /// Runs one script once per call, all in one round trip, within the time-out of a decision.
    async fn run(&self, script: Script, calls: &[Call]) -> Vec<Result<Value, StoreError>> {
        let deadline = Instant::now() + self.options.timeout;
        let opening = tokio::time::timeout_at(deadline, self.link.open());
        let replies = match opening.await.unwrap_or(Err(StoreError::TimedOut)) {
            Ok(open) => self.run_on(open, script, calls, deadline).await,
            Err(error) => Err(error),
        };
        replies.unwrap_or_else(|error| vec![Err(error); calls.len()])
    }

    /// As [`RedisStore::run`], on an open connection, which is given up when it has failed: a
    /// reply that is late would otherwise lie in wait for the next question, and a server that
    /// takes no writes may have been replaced by another one under the same name.
    async fn run_on(
        &self,
        mut open: Open,
        script: Script,
        calls: &[Call],
        deadline: Instant,
    ) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        let serial = open.serial;
        let running = tokio::time::timeout_at(deadline, open.run(script, calls));
        let replies = running.await.unwrap_or(Err(StoreError::TimedOut));
        let first_error = match &replies {
            Ok(replies) => replies.iter().find_map(|reply| reply.as_ref().err()),
            Err(error) => Some(error),
        };
        if first_error.is_some_and(|error| *error != StoreError::Failed) {
            self.link.discard(serial);
        }
        replies
    }
}

impl CounterStore for RedisStore {
    async fn admit(&self, requests: &[AccountRequest]) -> Vec<Result<StoreAnswer, StoreError>> {
        let calls: Vec<Call> = requests
            .iter()
            .map(|request| admission::call(&self.options, request))
            .collect();
        let replies = self.run(Script::Admit, &calls).await;
        std::iter::zip(requests, replies)
            .map(|(request, reply)| answers::read(reply?, request))
            .collect()
    }

    async fn conclude(&self, conclusions: &[Conclusion]) -> Result<(), StoreError> {
        let calls = conclusions::calls(&self.options, conclusions);
        if calls.is_empty() {
            return Ok(());
        }
        let replies = self.run(Script::Conclude, &calls).await;
        replies.into_iter().try_for_each(|reply| reply.map(drop))
    }

    async fn look(&self, account: &AccountId, job: &JobRequest) -> Result<Standing, StoreError> {
        self.look_at(account, job).await
    }

    /// Connects with the patience of a connection attempt, then admits a job of an account that
    /// cannot exist, within the time-out of a decision: what it shows is what decisions will meet.
    async fn probe(&self) -> Result<(), StoreError> {
        let connecting = tokio::time::timeout(self.options.connect_timeout, self.link.open());
        let open = connecting.await.unwrap_or(Err(StoreError::TimedOut))?;
        let deadline = Instant::now() + self.options.timeout;
        let call = admission::probe(&self.options);
        let replies = self.run_on(open, Script::Admit, &[call], deadline).await?;
        replies.into_iter().try_for_each(|reply| reply.map(drop))
    }
}
