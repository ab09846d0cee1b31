//! One simulated run: some workers, a broker, a store of counters and a carrier.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::plan::{Blow, Kind, Plan, PlannedJob};
use super::ports::{
    Outside, Seen, SimulatedClock, UnsureBroker, UnsureCarrier, UnsureRecords, UnsureStore, wall,
};
use crate::accounts::{AccountPolicy, HoldKind};
use crate::dispatch::ports::{Delivery, Hold};
use crate::dispatch::{Fleet, FleetCarrier, Pipeline, PipelineOptions, RetryPolicy};
use crate::domain::{AccountId, Decoded, JobHeaders, JobId, Lane};
use crate::embedded::{Delays, EmbeddedQueues, MemoryRecords, Session};
use crate::meter::{Failover, FailoverOptions, MemoryStore};
use crate::settings::BreakerSettings;
use crate::telemetry::{DuplicateKind, Telemetry};

/// After so long a run is stuck.
const LONGEST_RUN: Duration = Duration::from_secs(900);

/// How long the paused campaign is paused.
pub const PAUSED_FOR: Duration = Duration::from_secs(3);

/// How long after the last acknowledgement every entry is in the ledger: the outside misbehaves for
/// ten seconds, and the ledger is tried each second.
const LEDGER_CATCHES_UP: Duration = Duration::from_secs(20);

/// What a run left behind.
pub struct Report {
    pub plan: Arc<Plan>,
    pub seen: Seen,
    pub started: Instant,
    pub lasted: Duration,
    pub stuck: bool,
    /// Each event's id and outcome.
    pub told: Vec<(String, String)>,
    pub dead: usize,
    pub possible_duplicates: u64,
    pub fallbacks: u64,
    /// What the ledger says of each planned job.
    pub entries: Vec<Option<&'static str>>,
}

/// Runs a plan to its end, under a paused clock.
pub fn run(plan: Plan) -> Report {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(play(Arc::new(plan)))
}

async fn play(plan: Arc<Plan>) -> Report {
    let outside = Outside::new(Arc::clone(&plan));
    let queues = EmbeddedQueues::new(Delays {
        park: [Duration::from_secs(5); 2],
        ..Delays::default()
    });
    let stage = Stage {
        outside: outside.clone(),
        queues: queues.clone(),
        store: MemoryStore::new(
            Duration::from_secs(900),
            Arc::new(SimulatedClock(outside.clone())),
        ),
        records: MemoryRecords::new(Arc::new(SimulatedClock(outside.clone()))),
        telemetry: Telemetry::unexported(),
    };
    let mut workers: Vec<Worker> = (0..plan.workers)
        .map(|number| stage.start(number, 0))
        .collect();
    let mut tasks = JoinSet::new();
    tasks.spawn(publish_all(outside.clone(), queues.clone()));
    tasks.spawn(decide(outside.clone(), stage.records.clone()));
    let releasing = tokio::spawn(release(stage.records.clone(), queues.clone()));
    for (round, (at, number, blow)) in plan.blows.iter().enumerate() {
        sleep_until(outside.started + *at).await;
        stage.strike(&mut workers[*number], *number, *blow, round as u64 + 1);
    }
    while tasks.join_next().await.is_some() {}
    let stuck = !drained(&queues, &stage.records, outside.started).await;
    releasing.abort();
    if plan.records && !stuck {
        // What the ledger missed is entered a little later.
        sleep(LEDGER_CATCHES_UP).await;
    }
    report(plan, &stage, stuck)
}

/// What operators and recipients do meanwhile.
async fn decide(outside: Outside, records: MemoryRecords) {
    let account = |place: usize| AccountId::parse(&format!("a{place}")).unwrap();
    for place in 0..outside.plan.ceilings.len() {
        records.hold(
            &account(place),
            HoldKind::Campaign,
            "paused",
            Some(Hold::Paused),
        );
        records.hold(
            &account(place),
            HoldKind::Journey,
            "off",
            Some(Hold::Cancelled),
        );
    }
    let mut changes: Vec<(Duration, usize)> = Vec::new();
    for (place, job) in outside.plan.jobs.iter().enumerate() {
        match job.kind {
            Kind::OptedOut => records.opt_out(&account(job.account), &recipient(place)),
            Kind::OptsOut => changes.push((job.at + Duration::from_secs(1), place)),
            _ => {}
        }
    }
    changes.sort();
    for (at, place) in changes {
        sleep_until(outside.started + at).await;
        let job = &outside.plan.jobs[place];
        records.opt_out(&account(job.account), &recipient(place));
    }
    sleep_until(outside.started + PAUSED_FOR).await;
    for place in 0..outside.plan.ceilings.len() {
        records.hold(&account(place), HoldKind::Campaign, "paused", None);
    }
}

/// Brings waiting jobs back when they are due.
async fn release(records: MemoryRecords, queues: EmbeddedQueues) {
    loop {
        for job in records.take_due() {
            let payload = job.payload.to_bytes();
            queues.publish(job.lane, payload, job.headers);
        }
        sleep(Duration::from_millis(250)).await;
    }
}

async fn drained(queues: &EmbeddedQueues, records: &MemoryRecords, started: Instant) -> bool {
    let left = || {
        queues.unsettled()
            + queues.away()
            + records.waiting()
            + Lane::ALL
                .into_iter()
                .map(|lane| queues.ready(lane))
                .sum::<usize>()
    };
    while left() > 0 {
        if started.elapsed() > LONGEST_RUN {
            return false;
        }
        sleep(Duration::from_millis(50)).await;
    }
    true
}

fn report(plan: Arc<Plan>, stage: &Stage, stuck: bool) -> Report {
    let counts = stage.telemetry.counts();
    let told = stage.queues.take_told().into_iter().flat_map(|told| {
        let events: Vec<serde_json::Value> = serde_json::from_slice(&told.body).unwrap();
        events.into_iter().map(move |event| {
            (
                event["id"].as_str().unwrap().to_owned(),
                told.outcome.to_owned(),
            )
        })
    });
    let entry = |(place, job): (usize, &PlannedJob)| {
        let account = AccountId::parse(&format!("a{}", job.account)).unwrap();
        let id = JobId::parse(&place.to_string()).unwrap();
        let entry = stage.records.entry(&account, &id);
        entry.map(|ended| ended.outcome.as_str())
    };
    Report {
        entries: plan.jobs.iter().enumerate().map(entry).collect(),
        told: told.collect(),
        seen: std::mem::take(&mut stage.outside.seen()),
        started: stage.outside.started,
        lasted: stage.outside.started.elapsed(),
        dead: stage.queues.dead().len(),
        possible_duplicates: counts.duplicates.get(DuplicateKind::Possible as usize, 0),
        fallbacks: counts.fallbacks.sum(),
        plan,
        stuck,
    }
}

async fn publish_all(outside: Outside, queues: EmbeddedQueues) {
    let mut jobs: Vec<(usize, PlannedJob)> =
        outside.plan.jobs.iter().cloned().enumerate().collect();
    jobs.sort_by_key(|(_, job)| job.at);
    for (place, job) in jobs {
        sleep_until(outside.started + job.at).await;
        let queue = if job.kind == Kind::Misplaced {
            other(job.lane)
        } else {
            job.lane
        };
        queues.publish(queue, payload(place, &job), JobHeaders::default());
    }
}

fn other(lane: Lane) -> Lane {
    Lane::ALL[1 - lane.index()]
}

fn payload(place: usize, job: &PlannedJob) -> String {
    if job.kind == Kind::Garbage {
        return "{".into();
    }
    let mut value = serde_json::json!({
        "id": place.to_string(),
        "account_id": format!("a{}", job.account),
        "channel": "sms",
        "to": if job.kind == Kind::Invalid { "nobody".into() } else { recipient(place) },
        "metadata": { "traffic_lane": job.lane.as_str() },
    });
    if job.kind == Kind::ShortLived {
        value["expires_at"] = wall(job.at + Duration::from_secs(2)).to_string().into();
    }
    match job.kind {
        Kind::Paused => value["campaign_id"] = "paused".into(),
        Kind::Cancelled => value["journey_id"] = "off".into(),
        Kind::Later => {
            value["not_before"] = wall(job.at + Duration::from_secs(2)).to_string().into();
        }
        _ => {}
    }
    value.to_string()
}

/// A number for each job.
fn recipient(place: usize) -> String {
    format!("+4477009{place:05}")
}

/// What the workers of a run share.
struct Stage {
    outside: Outside,
    queues: EmbeddedQueues,
    store: MemoryStore,
    records: MemoryRecords,
    telemetry: Telemetry,
}

struct Worker {
    root: AbortHandle,
    soft: CancellationToken,
    session: Arc<Session>,
}

impl Stage {
    /// Each start is a process of its own, and is told apart from the others by its number.
    fn start(&self, number: usize, round: u64) -> Worker {
        let process = number + 100 * usize::try_from(round).unwrap();
        let (session, deliveries) = self.queues.connect(self.outside.plan.prefetch);
        let session = Arc::new(session);
        let broker = UnsureBroker {
            session: Arc::clone(&session),
            outside: self.outside.clone(),
        };
        let store = UnsureStore {
            store: self.store.clone(),
            outside: self.outside.clone(),
            worker: process,
        };
        let meter = Failover::new(
            store,
            FailoverOptions::default(),
            Arc::new(SimulatedClock(self.outside.clone())),
            self.telemetry.clone(),
        );
        let pipeline = Pipeline::new(
            Arc::new(broker),
            Arc::new(meter),
            self.fleet(process),
            Arc::new(SimulatedClock(self.outside.clone())),
            Arc::new(UnsureRecords {
                records: self.records.clone(),
                worker: process,
                outside: self.outside.clone(),
            }),
            self.telemetry.clone(),
            self.options(number, round),
        );
        let (soft, hard) = (CancellationToken::new(), CancellationToken::new());
        let deliveries = self.tapped(process, deliveries);
        let run = pipeline.unwrap().run(deliveries, soft.clone(), hard);
        let root = tokio::spawn(run).abort_handle();
        Worker {
            root,
            soft,
            session,
        }
    }

    fn fleet(&self, worker: usize) -> Fleet<UnsureCarrier> {
        let carrier = FleetCarrier {
            name: "default".into(),
            adapter: Arc::new(UnsureCarrier {
                outside: self.outside.clone(),
                worker,
            }),
            max_in_flight: self.outside.plan.slots,
            timeout: Duration::from_millis(500),
            breaker: BreakerSettings {
                failures: 20,
                open: Duration::from_millis(500),
                open_cap: Duration::from_secs(2),
            },
        };
        Fleet::new(vec![carrier], |_| 0)
    }

    fn options(&self, number: usize, round: u64) -> PipelineOptions {
        let outside = self.outside.clone();
        PipelineOptions {
            prefetch: self.outside.plan.prefetch,
            sheds_per_second: [5000, 1000],
            retry: RetryPolicy {
                max_attempts: 40,
                base: Duration::from_millis(100),
                longest_here: Duration::from_secs(2),
            },
            announce_outcomes: true,
            claim_life: Duration::from_secs(900),
            policy: Arc::new(move |account| {
                Some(Arc::new(AccountPolicy::of(outside.ceilings(account))))
            }),
            pressure: None,
            try_seed: Rng::with_seed(self.outside.plan.seed ^ (round << 32) ^ number as u64)
                .u64(..),
        }
    }

    /// Writes down which transactional jobs a worker has received.
    fn tapped(
        &self,
        worker: usize,
        mut deliveries: mpsc::UnboundedReceiver<Vec<Delivery>>,
    ) -> mpsc::UnboundedReceiver<Vec<Delivery>> {
        let (tap, tapped) = mpsc::unbounded_channel();
        let outside = self.outside.clone();
        tokio::spawn(async move {
            while let Some(batch) = deliveries.recv().await {
                for delivery in &batch {
                    note_ready(&outside, worker, delivery);
                }
                if tap.send(batch).is_err() {
                    return;
                }
            }
        });
        tapped
    }

    fn strike(&self, worker: &mut Worker, number: usize, blow: Blow, round: u64) {
        match blow {
            Blow::Sever => worker.session.reconnect(),
            Blow::Stop => {
                worker.soft.cancel();
                *worker = self.start(number, round);
            }
            Blow::Kill => {
                worker.root.abort();
                // A worker that stopped in order keeps its session until its last acknowledgement;
                // one that was killed loses it at once.
                worker.session.reconnect();
                *worker = self.start(number, round);
            }
        }
    }
}

fn note_ready(outside: &Outside, worker: usize, delivery: &Delivery) {
    let Decoded::Job(job) = &delivery.decoded else {
        return;
    };
    let kind = outside.plan.jobs[job.head.id.as_str().parse::<usize>().unwrap()].kind;
    let may_be_sent = job.expires_at.is_none() && !kind.needs_records();
    if job.lane() == Lane::Transactional && may_be_sent {
        let id = job.head.id.to_string();
        let account = job.head.account.clone();
        outside
            .seen()
            .ready
            .entry(worker)
            .or_default()
            .insert(id, (account, Instant::now()));
    }
}
