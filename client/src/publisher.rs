//! Publishes jobs and says of each whether the broker has stored it.

#[cfg(test)]
mod tests;

use std::fmt;

use lapin::BasicProperties;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use crate::shared_link::SharedLink;
use crate::wire::{self, Endpoint, Failure, Message, explain};
use crate::{ConnectError, Job, Options, Prefix, PublishError, routing_key};

/// The most batches under way at once; each has a channel to itself.
const CHANNELS: u32 = 8;

/// Written to disk by the broker.
const PERSISTENT: u8 = 2;

/// The broker's code for "you may not".
const ACCESS_REFUSED: u16 = 403;
/// The broker's code for "there is no such exchange".
const NOT_FOUND: u16 = 404;

/// Publishes jobs: persistent, mandatory, confirmed by the broker within a deadline.
///
/// It may be shared by any number of tasks. A lost connection is opened again by the next publish.
pub struct Publisher {
    endpoint: Endpoint,
    prefix: Prefix,
    options: Options,
    link: SharedLink,
    /// Held by every batch under way.
    under_way: Semaphore,
}

type Stored = Result<(), PublishError>;

impl Publisher {
    /// Connects. Needs a tokio runtime.
    ///
    /// # Errors
    /// [`ConnectError`], when the URL or the prefix cannot be used, or nobody answers in time.
    pub async fn connect(options: Options) -> Result<Self, ConnectError> {
        let publisher = Self::unconnected(options)?;
        let (endpoint, options) = (&publisher.endpoint, &publisher.options);
        publisher.link.get(endpoint, options).await?;
        Ok(publisher)
    }

    fn unconnected(options: Options) -> Result<Self, ConnectError> {
        Ok(Self {
            endpoint: Endpoint::parse(&options.url)?,
            prefix: Prefix::parse(&options.prefix)?,
            options,
            link: SharedLink::default(),
            under_way: Semaphore::new(CHANNELS as usize),
        })
    }

    /// Publishes one job and returns when the broker has stored it. Takes at most the time to
    /// connect, should it have to, and twice the time to confirm.
    ///
    /// # Errors
    /// [`PublishError`], whose verdict says whether to publish the same job again. A job that it
    /// was not stored for may have arrived all the same, which its id makes harmless.
    pub async fn publish(&self, job: &Job) -> Stored {
        let results = self.publish_batch(std::slice::from_ref(job)).await;
        results
            .into_iter()
            .next()
            .unwrap_or(Err(PublishError::NotTried))
    }

    /// Publishes jobs, at most a window of them unconfirmed at a time. One result per job, in
    /// order. When the broker stops answering, the rest is not tried.
    pub async fn publish_all(&self, jobs: &[Job]) -> Vec<Stored> {
        let mut results = Vec::with_capacity(jobs.len());
        for batch in jobs.chunks(self.options.window.max(1)) {
            let stored = self.publish_batch(batch).await;
            let mut failures = stored.iter().filter_map(|result| result.as_ref().err());
            let stopped = failures.any(PublishError::concerns_all);
            results.extend(stored);
            if stopped {
                break;
            }
        }
        results.resize(jobs.len(), Err(PublishError::NotTried));
        results
    }

    /// Waits for what is under way, for at most as long as one publish may take, and takes leave
    /// of the broker, for at most as long as it may take to confirm. What is published from now on
    /// fails.
    pub async fn close(&self) {
        let patience = self.options.connect_timeout + self.options.confirm_timeout;
        let all = timeout(patience, self.under_way.acquire_many(CHANNELS)).await;
        self.under_way.close();
        drop(all);
        if let Some(link) = self.link.end() {
            link.close(self.options.confirm_timeout).await;
        }
    }

    /// One result per job, in order. A job that no worker would send is left out.
    async fn publish_batch(&self, jobs: &[Job]) -> Vec<Stored> {
        let mut results: Vec<Stored> = Vec::with_capacity(jobs.len());
        let mut messages = Vec::with_capacity(jobs.len());
        for job in jobs {
            let message = self.message(job);
            results.push(message.as_ref().map(drop).map_err(Clone::clone));
            messages.extend(message);
        }
        if messages.is_empty() {
            return results;
        }
        let count = messages.len();
        let published = match self.publish_messages(messages).await {
            Ok(published) => published,
            Err(error) => vec![Err(error); count],
        };
        let places = results.iter_mut().filter(|result| result.is_ok());
        for (place, stored) in places.zip(published) {
            *place = stored;
        }
        results
    }

    fn message(&self, job: &Job) -> Result<Message<Vec<u8>>, PublishError> {
        let properties = BasicProperties::default()
            .with_delivery_mode(PERSISTENT)
            .with_content_type("application/json".into())
            .with_message_id(job.id().as_str().into());
        Ok(Message {
            exchange: self.prefix.send().into(),
            key: routing_key(job.lane(), job.account_id()).into(),
            mandatory: true,
            properties,
            body: job.to_json()?,
        })
    }

    /// One result per message, or why none of them was handed over.
    async fn publish_messages(
        &self,
        messages: Vec<Message<Vec<u8>>>,
    ) -> Result<Vec<Stored>, PublishError> {
        let limit = self.options.confirm_timeout;
        let permit = timeout(limit, self.under_way.acquire()).await;
        let _permit = permit
            .map_err(|_| PublishError::NotTried)?
            .map_err(|_| PublishError::Closed)?;
        let link = self.link.get(&self.endpoint, &self.options).await?;
        let deadline = Instant::now() + limit;
        let late = |_| PublishError::TimedOut { limit };
        timeout_at(deadline, link.unblocked()).await.map_err(late)?;
        let channel = match timeout_at(deadline, link.channel()).await {
            Ok(Ok(channel)) => channel,
            failed => {
                self.link.retire(&link);
                let error = failed.map_err(late)?.err();
                let reason = error.map_or_else(String::new, |error| explain(&error));
                return Err(PublishError::Broken { reason });
            }
        };
        let (results, overdue) = wire::publish(&channel, messages, deadline).await;
        if overdue.is_empty() {
            link.put_back(channel);
        } else if !link.is_blocked() {
            // It may be this connection that confirms nothing. Under an alarm no other would do.
            self.link.retire(&link);
        }
        Ok(self.explained(results))
    }

    /// Says of each failure what it means for a job.
    fn explained(&self, results: Vec<Result<(), Failure>>) -> Vec<Stored> {
        let exchange = self.prefix.send();
        // The broker closed the channel for one message; the others only broke with it.
        let closed = results.iter().find_map(|result| match result {
            Err(Failure::Broken {
                reason,
                code: Some(code),
            }) => Some((*code, reason.clone())),
            _ => None,
        });
        let explain = |failure| match failure {
            Failure::TimedOut => PublishError::TimedOut {
                limit: self.options.confirm_timeout,
            },
            Failure::Refused => PublishError::Refused,
            Failure::Returned { exchange } => PublishError::Returned { exchange },
            Failure::Broken { reason, .. } => match &closed {
                Some((NOT_FOUND, _)) => PublishError::NoExchange {
                    exchange: exchange.clone(),
                },
                Some((ACCESS_REFUSED, reason)) => PublishError::Denied {
                    exchange: exchange.clone(),
                    reason: reason.clone(),
                },
                _ => PublishError::Broken { reason },
            },
        };
        results
            .into_iter()
            .map(|result| result.map_err(explain))
            .collect()
    }
}

/// Where it publishes to, without user name and password.
impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("endpoint", &self.endpoint)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
