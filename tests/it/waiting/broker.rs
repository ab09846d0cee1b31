//! A broker that remembers what it was given, and fails or hangs as told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lanekeeper::dispatch::ports::{Broker, DeadLetter, EventBatch, PublishError, Receipt, Requeue};
use lanekeeper::domain::Lane;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// What becomes of a publish.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Stored and confirmed.
    Confirmed,
    /// Stored, and confirmed so much later.
    ConfirmedAfter(Duration),
    /// Not stored, and said so.
    Refused,
    /// Stored, but whoever published never hears of it.
    Unanswered,
}

type Mood = Box<dyn Fn(&Requeue) -> Fate + Send + Sync>;

/// One call of [`Broker::requeue`].
#[derive(Clone)]
pub struct Call {
    pub at: Instant,
    /// The jobs that were stored.
    pub stored: Vec<Requeue>,
}

#[derive(Default)]
pub struct FakeBroker {
    calls: Mutex<Vec<Call>>,
    mood: Mutex<Option<Mood>>,
    stored_something: Notify,
}

impl FakeBroker {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// From now on publishes end so.
    pub fn decide(&self, mood: impl Fn(&Requeue) -> Fate + Send + Sync + 'static) {
        *self.mood.lock().unwrap() = Some(Box::new(mood));
    }

    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// Every job that was stored, in order.
    pub fn stored(&self) -> Vec<Requeue> {
        let calls = self.calls.lock().unwrap();
        calls.iter().flat_map(|call| call.stored.clone()).collect()
    }

    /// Their ids.
    pub fn ids(&self) -> Vec<String> {
        let stored = self.stored();
        stored.iter().map(|job| job.id.to_string()).collect()
    }

    /// Waits until so many jobs have been stored.
    pub async fn has_stored(&self, jobs: usize) {
        let reached = async {
            loop {
                let news = self.stored_something.notified();
                if self.stored().len() >= jobs {
                    return;
                }
                news.await;
            }
        };
        let reached = tokio::time::timeout(super::LIMIT, reached).await;
        assert!(reached.is_ok(), "{} of {jobs} stored", self.stored().len());
    }

    fn fate(&self, job: &Requeue) -> Fate {
        let mood = self.mood.lock().unwrap();
        mood.as_ref().map_or(Fate::Confirmed, |mood| mood(job))
    }
}

impl Broker for FakeBroker {
    async fn requeue(&self, jobs: Vec<Requeue>) -> Vec<Result<(), PublishError>> {
        let fates: Vec<_> = jobs.iter().map(|job| self.fate(job)).collect();
        let stored = jobs.into_iter().zip(&fates);
        let stored = stored.filter_map(|(job, fate)| (*fate != Fate::Refused).then_some(job));
        self.calls.lock().unwrap().push(Call {
            at: Instant::now(),
            stored: stored.collect(),
        });
        self.stored_something.notify_waiters();
        if fates.contains(&Fate::Unanswered) {
            std::future::pending::<()>().await;
        }
        let late = fates.iter().map(|fate| match fate {
            Fate::ConfirmedAfter(late) => *late,
            _ => Duration::ZERO,
        });
        if let Some(latest) = late.max() {
            sleep(latest).await;
        }
        let result = |fate| match fate {
            Fate::Refused => Err(PublishError::Refused),
            _ => Ok(()),
        };
        fates.into_iter().map(result).collect()
    }

    async fn bury(&self, _: Vec<DeadLetter>) -> Vec<Result<(), PublishError>> {
        unreachable!("a releaser buries nothing")
    }

    async fn announce(&self, _: Vec<EventBatch>) -> Vec<Result<(), PublishError>> {
        unreachable!("a releaser announces nothing")
    }

    fn take(&self, _: Lane, _: bool) {}

    fn give_back(&self, _: Vec<Receipt>) {}

    fn acknowledge(&self, _: Vec<Receipt>) {}

    fn is_live(&self, _: &Receipt) -> bool {
        true
    }
}
