//! One worker whose records do not do what they should: what its lanes do meanwhile.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::ports::wall;
use crate::accounts::AccountPolicy;
use crate::dispatch::ports::{
    Accepted, Carrier, Clock, Ended, Facts, Gap, Inquiry, Records, RecordsError, SendError,
    WaitingJob,
};
use crate::dispatch::{Fleet, FleetCarrier, Pipeline, PipelineOptions, RetryPolicy};
use crate::domain::{Budget, Ceilings, Job, JobHeaders, Lane, Reserve};
use crate::embedded::{Delays, EmbeddedQueues, MemoryRecords};
use crate::meter::{Failover, FailoverOptions, MemoryStore};
use crate::settings::BreakerSettings;
use crate::telemetry::Telemetry;

/// Jobs that are delivered before any of them is settled.
const PREFETCH: usize = 16;

struct SinceStart(Instant);

impl Clock for SinceStart {
    fn now(&self) -> Timestamp {
        wall(self.0.elapsed())
    }
}

#[derive(Clone, Default)]
struct Went(Arc<Mutex<Vec<String>>>);

impl Carrier for Went {
    async fn send(&self, job: &Job, _: u32) -> Result<Accepted, SendError> {
        self.0.lock().unwrap().push(job.head.id.to_string());
        Ok(Accepted::default())
    }
}

struct Unwilling {
    records: MemoryRecords,
    /// Nothing is written down.
    writes_nothing: AtomicBool,
    /// Every answer to a probe takes a second, and is none.
    is_away: AtomicBool,
    probes: AtomicUsize,
}

impl Records for Unwilling {
    fn exist(&self) -> bool {
        true
    }

    /// The database cannot be asked about the campaign `unfit`.
    async fn facts(&self, inquiries: &[Inquiry<'_>]) -> Result<Vec<Facts>, RecordsError> {
        if inquiries.iter().any(|one| one.campaign == Some("unfit")) {
            return Err(RecordsError::Unfit);
        }
        self.records.facts(inquiries).await
    }

    async fn keep(&self, jobs: &[WaitingJob]) -> Result<(), RecordsError> {
        self.records.keep(jobs).await
    }

    async fn write(&self, ended: &[Ended]) -> Result<(), RecordsError> {
        if self.writes_nothing.load(Relaxed) {
            return Err(RecordsError::TimedOut);
        }
        self.records.write(ended).await
    }

    async fn note_gaps(&self, gaps: &[Gap]) -> Result<(), RecordsError> {
        self.records.note_gaps(gaps).await
    }

    async fn probe(&self) -> Result<(), RecordsError> {
        self.probes.fetch_add(1, Relaxed);
        if self.is_away.load(Relaxed) {
            sleep(Duration::from_secs(1)).await;
            return Err(RecordsError::TimedOut);
        }
        Ok(())
    }
}

struct World {
    queues: EmbeddedQueues,
    records: Arc<Unwilling>,
    went: Went,
    telemetry: Telemetry,
    hard: CancellationToken,
}

impl World {
    /// One with a worker that runs.
    fn start(is_away: bool) -> Self {
        let clock = Arc::new(SinceStart(Instant::now()));
        let world = Self {
            queues: EmbeddedQueues::new(Delays::default()),
            records: Arc::new(Unwilling {
                records: MemoryRecords::new(clock.clone()),
                writes_nothing: AtomicBool::new(false),
                is_away: AtomicBool::new(is_away),
                probes: AtomicUsize::new(0),
            }),
            went: Went::default(),
            telemetry: Telemetry::unexported(),
            hard: CancellationToken::new(),
        };
        let (session, deliveries) = world.queues.connect(PREFETCH);
        let store = MemoryStore::new(Duration::from_secs(900), clock.clone());
        let meter = Failover::new(
            store,
            FailoverOptions::default(),
            clock.clone(),
            world.telemetry.clone(),
        );
        let pipeline = Pipeline::new(
            Arc::new(session),
            Arc::new(meter),
            Fleet::new(vec![world.carrier()], |_| 0),
            clock,
            Arc::clone(&world.records),
            world.telemetry.clone(),
            options(),
        );
        let (soft, hard) = (CancellationToken::new(), world.hard.clone());
        tokio::spawn(pipeline.unwrap().run(deliveries, soft, hard));
        world
    }

    fn carrier(&self) -> FleetCarrier<Went> {
        FleetCarrier {
            name: "default".into(),
            adapter: Arc::new(self.went.clone()),
            max_in_flight: 8,
            timeout: Duration::from_secs(10),
            breaker: BreakerSettings {
                failures: 20,
                open: Duration::from_millis(500),
                open_cap: Duration::from_secs(2),
            },
        }
    }

    /// Publishes a job of a lane to the queue of a lane.
    fn publish(&self, id: &str, lane: Lane, queue: Lane, campaign: Option<&str>) {
        let job = json!({
            "id": id, "account_id": "acct", "channel": "sms", "to": "+447700900001",
            "campaign_id": campaign, "metadata": { "traffic_lane": lane.as_str() },
        });
        let headers = JobHeaders::default();
        self.queues.publish(queue, job.to_string(), headers);
    }

    fn went(&self) -> Vec<String> {
        let mut went = self.went.0.lock().unwrap().clone();
        went.sort();
        went
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.hard.cancel();
    }
}

fn options() -> PipelineOptions {
    let ceilings = Ceilings::of(
        Budget::per_second(1_000).unwrap(),
        Reserve::percent(20).unwrap(),
    );
    let policy = Arc::new(AccountPolicy::of(ceilings));
    PipelineOptions {
        prefetch: PREFETCH,
        sheds_per_second: [5_000, 1_000],
        retry: RetryPolicy {
            max_attempts: 5,
            base: Duration::from_millis(100),
            longest_here: Duration::from_secs(2),
        },
        announce_outcomes: true,
        claim_life: Duration::from_secs(900),
        policy: Arc::new(move |_| Some(Arc::clone(&policy))),
        pressure: None,
        try_seed: 1,
    }
}

/// A publisher that puts marketing into the wrong queue must not stop passwords, whatever the ledger
/// does.
#[tokio::test(start_paused = true)]
async fn marketing_in_the_passwords_queue_takes_up_no_room_there() {
    const BULK: usize = 4 * PREFETCH;
    let world = World::start(false);
    world.records.writes_nothing.store(true, Relaxed);
    world.publish("first", Lane::Marketing, Lane::Marketing, None);
    sleep(Duration::from_secs(2)).await;
    assert!(world.telemetry.closed(Lane::Marketing).is_some());
    for number in 0..BULK {
        let id = format!("m-{number:03}");
        world.publish(&id, Lane::Marketing, Lane::Transactional, None);
    }
    world.publish("otp", Lane::Transactional, Lane::Transactional, None);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(world.went(), ["first", "otp"]);
    assert_eq!(world.queues.ready(Lane::Marketing), BULK);
    assert_eq!(world.queues.unsettled(), 0);

    world.records.writes_nothing.store(false, Relaxed);
    sleep(Duration::from_secs(3)).await;
    assert_eq!(world.went().len(), BULK + 2);
    assert_eq!(world.queues.unsettled(), 0);
}

/// Neither may it be sent unchecked, nor come again for ever and close the lanes each time.
#[tokio::test(start_paused = true)]
async fn a_job_that_the_database_cannot_be_asked_about_stops_no_other() {
    let world = World::start(false);
    for number in 0..9 {
        let lane = Lane::ALL[number % 2];
        let campaign = (number == 4).then_some("unfit");
        world.publish(&format!("j-{number}"), lane, lane, campaign);
    }
    sleep(Duration::from_secs(1)).await;
    let others: Vec<_> = (0..9)
        .filter(|number| *number != 4)
        .map(|number| format!("j-{number}"))
        .collect();
    assert_eq!(world.went(), others);
    let dead = world.queues.dead();
    assert_eq!(dead.len(), 1);
    assert!(
        dead[0]
            .payload
            .as_bytes()
            .windows(5)
            .any(|text| text == b"\"j-4\"")
    );
    assert_eq!(world.telemetry.closed(Lane::Transactional), None);
    assert_eq!(world.queues.unsettled(), 0);
}

#[tokio::test(start_paused = true)]
async fn records_that_take_a_second_to_say_nothing_are_asked_each_second() {
    let world = World::start(true);
    sleep(Duration::from_millis(9_500)).await;
    assert_eq!(world.records.probes.load(Relaxed), 10);
}
