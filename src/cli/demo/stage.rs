//! The stage: the whole of Lanekeeper in this process, with nothing outside it.
//!
//! Queues and counter are in memory and the carrier is the sandbox; the pipeline, its workers and
//! their settings are those that everybody gets.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::scenario::Offer;
use super::tally::{ByLane, Tally};
use super::watch::{WatchedCarrier, WatchedMeter};
use crate::accounts::AccountPolicy;
use crate::carrier::AnyCarrier;
use crate::cli::pipeline;
use crate::clock::SystemClock;
use crate::dispatch::ports::Meter;
use crate::dispatch::{Fleet, Pipeline};
use crate::domain::{AccountId, Ceilings, JobHeaders, JobId, Limit, Outcome};
use crate::embedded::{Delays, EmbeddedQueues, NoRecords};
use crate::meter::{Failover, MemoryStore};
use crate::settings::{CarrierKind, DEFAULT_CARRIER, Settings};
use crate::telemetry::Telemetry;

/// How long the sandbox takes to accept a message: about as long as a near carrier.
const CARRIER_LATENCY: Duration = Duration::from_millis(5);

/// How long workers may take to finish what they have begun.
const GRACE: Duration = Duration::from_secs(3);

/// Who plays, and within which ceilings.
#[derive(Debug, Clone, Copy)]
pub struct Cast {
    /// Workers that share one counter; at least 1.
    pub workers: usize,
    /// The account's ceilings.
    pub ceilings: Ceilings,
    /// What all randomness comes from.
    pub seed: u64,
}

/// A running stage. Dropping it ends its workers at once.
pub struct Stage {
    queues: EmbeddedQueues,
    telemetry: Telemetry,
    workers: JoinSet<()>,
    soft: CancellationToken,
    hard: CancellationToken,
    /// What happens on it.
    pub tally: Tally,
}

impl Stage {
    /// Opens a stage whose workers share a counter in memory. Must be called within a runtime.
    ///
    /// # Errors
    /// Never, unless the defaults were broken.
    pub fn open(cast: Cast) -> anyhow::Result<Self> {
        let settings = defaults()?;
        let options = pipeline::failover(&settings);
        let store = MemoryStore::new(options.claim_life, Arc::new(SystemClock));
        let telemetry = Telemetry::unexported();
        let meter = |telemetry: &Telemetry| {
            let clock = Arc::new(SystemClock);
            Failover::new(store.clone(), options.clone(), clock, telemetry.clone())
        };
        Self::open_with(cast, &settings, telemetry, meter)
    }

    /// The same with another meter for each worker.
    pub(super) fn open_with<M: Meter>(
        cast: Cast,
        settings: &Settings,
        telemetry: Telemetry,
        meter: impl Fn(&Telemetry) -> M,
    ) -> anyhow::Result<Self> {
        let mut stage = Self {
            queues: EmbeddedQueues::new(Delays {
                shed: settings.lanes.shed_delay,
                ..Delays::default()
            }),
            telemetry,
            workers: JoinSet::new(),
            soft: CancellationToken::new(),
            hard: CancellationToken::new(),
            tally: Tally::default(),
        };
        for number in 0..cast.workers {
            let meter = meter(&stage.telemetry);
            stage.start_worker(number, cast, settings, meter)?;
        }
        Ok(stage)
    }

    fn start_worker<M: Meter>(
        &mut self,
        number: usize,
        cast: Cast,
        settings: &Settings,
        meter: M,
    ) -> anyhow::Result<()> {
        self.tally.joined();
        let mut random = fastrand::Rng::with_seed(cast.seed.wrapping_add(number as u64));
        let policy = Arc::new(AccountPolicy::of(cast.ceilings));
        let policy = Arc::new(move |_: &AccountId| Some(Arc::clone(&policy)));
        let options = pipeline::options(settings, policy, random.u64(..));
        let (session, deliveries) = self.queues.connect(options.prefetch);
        let meter = WatchedMeter {
            meter,
            tally: self.tally.clone(),
        };
        let fleet = self.fleet(number, settings, random)?;
        let pipeline = Pipeline::new(
            Arc::new(session),
            Arc::new(meter),
            fleet,
            Arc::new(SystemClock),
            Arc::new(NoRecords),
            self.telemetry.clone(),
            options,
        )?;
        let run = pipeline.run(deliveries, self.soft.clone(), self.hard.clone());
        self.workers.spawn(run);
        Ok(())
    }

    fn fleet(
        &self,
        worker: usize,
        settings: &Settings,
        random: fastrand::Rng,
    ) -> anyhow::Result<Fleet<WatchedCarrier>> {
        let default = settings
            .carriers
            .iter()
            .find(|(name, _)| &***name == DEFAULT_CARRIER);
        let (name, default) = default.context("the defaults name no carrier")?;
        let mut sandbox = default.clone();
        if let CarrierKind::Sandbox(sandbox) = &mut sandbox.kind {
            sandbox.latency = CARRIER_LATENCY;
        }
        let clock = Arc::new(SystemClock);
        let cap = settings.jobs.retry_after_cap;
        let adapter = WatchedCarrier {
            carrier: AnyCarrier::open(name, &sandbox, cap, clock, random)?,
            tally: self.tally.clone(),
            worker,
        };
        let carrier = pipeline::carrier(name, &sandbox, adapter);
        Ok(Fleet::new(vec![carrier], |_| 0))
    }

    /// A publisher of its own, for another task.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        Publisher {
            queues: self.queues.clone(),
            tally: self.tally.clone(),
        }
    }

    /// How often jobs have been sent back because of their ceiling, so far.
    #[must_use]
    pub fn sheds(&self) -> ByLane {
        let sheds = &self.telemetry.counts().sheds;
        [0, 1].map(|lane| sheds.get(lane, Limit::Lane as usize))
    }

    /// Decisions made without the shared counter, so far.
    #[must_use]
    pub fn fallbacks(&self) -> u64 {
        self.telemetry.counts().fallbacks.sum()
    }

    /// Puts jobs that have ended without being dispatched into the tally.
    pub fn note_ends(&self) {
        let told = self.queues.take_told().into_iter();
        for told in told.filter(|told| told.outcome != Outcome::Dispatched.as_str()) {
            let events: Vec<Identified> = serde_json::from_slice(&told.body).unwrap_or_default();
            let ids = events.iter().filter_map(Identified::job);
            ids.for_each(|id| self.tally.ended(&id));
        }
    }

    /// Lets the workers finish what they have begun, and tells which jobs the queues still hold.
    pub async fn close(&mut self) -> Vec<JobId> {
        self.soft.cancel();
        let finished = async { while self.workers.join_next().await.is_some() {} };
        if timeout(GRACE, finished).await.is_err() {
            self.hard.cancel();
            self.workers.shutdown().await;
        }
        self.note_ends();
        let identified = |payload: bytes::Bytes| -> Option<JobId> {
            serde_json::from_slice::<Identified>(&payload).ok()?.job()
        };
        self.queues
            .left()
            .into_iter()
            .filter_map(identified)
            .collect()
    }
}

/// Puts messages into the queues and into the tally.
#[derive(Debug, Clone)]
pub struct Publisher {
    queues: EmbeddedQueues,
    tally: Tally,
}

impl Publisher {
    /// Publishes one message now.
    pub fn publish(&self, offer: Offer) {
        // Before, because a worker may be faster than the next line.
        self.tally
            .offered(&offer.id, offer.lane, tokio::time::Instant::now());
        self.queues
            .publish(offer.lane, offer.payload, JobHeaders::default());
    }
}

/// The one field of a message or event by which a job is recognised.
#[derive(Deserialize)]
struct Identified {
    id: String,
}

impl Identified {
    fn job(&self) -> Option<JobId> {
        JobId::parse(&self.id).ok()
    }
}

/// The settings that everybody gets who sets nothing.
pub(super) fn defaults() -> anyhow::Result<Settings> {
    let nothing: [(&str, &str); 0] = [];
    Ok(Settings::load(None, nothing)?)
}
