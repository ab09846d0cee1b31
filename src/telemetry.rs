//! Named events: each one counts, and the ones an operator should read are logged.
//!
//! Counters are plain atomics in arrays over closed label sets, so that counting costs next to
//! nothing and no job can ever add a time series. [`crate::ops`] exports them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Gauge, Histogram, Meter};

use crate::activity::Tally;
use crate::dispatch::ports::{RecordsError, WaitReason};
use crate::domain::{Failure, Field, Lane, Limit, MeterMode, Outcome, Refusal, TRAFFIC_LANE};
use crate::meter::StoreError;

/// Why a second send of a job was seen. A closed list: metric labels come from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateKind {
    /// The job had been sent before: it was not sent again.
    Prevented,
    /// An earlier try ended without a known result: it was sent again.
    Possible,
}

impl DuplicateKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Prevented, Self::Possible];

    /// The label in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prevented => "prevented",
            Self::Possible => "possible",
        }
    }
}

/// What keeps waiting jobs from being released. A closed list: metric labels come from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseTrouble {
    /// The broker does not confirm publishes.
    Broker,
    /// The database does not answer, or with an error.
    Database,
}

impl ReleaseTrouble {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Broker, Self::Database];

    /// The label in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Broker => "broker",
            Self::Database => "database",
        }
    }
}

/// The fields whose unrecognised values decide no lane.
pub const HINT_FIELDS: [&str; 3] = [TRAFFIC_LANE, "priority", "origin"];

/// Every outcome with each of its reasons, for labels.
#[must_use]
pub fn all_outcomes() -> Vec<Outcome> {
    let plain = [
        Outcome::Dispatched,
        Outcome::Expired,
        Outcome::Cancelled,
        Outcome::Dead,
        Outcome::Failed(Failure::CarrierRejected),
        Outcome::Failed(Failure::AttemptsExhausted),
        Outcome::Refused(Refusal::UnknownAccount),
        Outcome::Refused(Refusal::OptedOut),
        Outcome::Refused(Refusal::FrequencyCap),
        Outcome::Refused(Refusal::QuietHours),
    ];
    let invalid = Field::ALL.map(|field| Outcome::Refused(Refusal::Invalid(field)));
    plain.into_iter().chain(invalid).collect()
}

const OUTCOMES: usize = 10 + Field::ALL.len();

/// One atomic counter per combination of two labels.
#[derive(Debug)]
pub struct Grid<const ROWS: usize, const COLUMNS: usize>([[AtomicU64; COLUMNS]; ROWS]);

impl<const ROWS: usize, const COLUMNS: usize> Grid<ROWS, COLUMNS> {
    fn new() -> Self {
        Self(std::array::from_fn(|_| {
            std::array::from_fn(|_| AtomicU64::new(0))
        }))
    }

    fn add(&self, row: usize, column: usize, count: u64) {
        self.0[row][column].fetch_add(count, Relaxed);
    }

    /// The sum of all cells.
    #[must_use]
    pub fn sum(&self) -> u64 {
        let cells = self.0.iter().flatten();
        cells.map(|cell| cell.load(Relaxed)).sum()
    }

    /// The value of one cell.
    #[must_use]
    pub fn get(&self, row: usize, column: usize) -> u64 {
        self.0[row][column].load(Relaxed)
    }
}

/// Every count that the product keeps of itself.
#[derive(Debug)]
pub struct Counts {
    /// Messages delivered, by lane of the queue.
    pub deliveries: Grid<2, 1>,
    /// Ends of jobs, by lane and by place in [`all_outcomes`].
    pub outcomes: Grid<2, OUTCOMES>,
    /// Sheds, by lane and place in [`Limit::ALL`].
    pub sheds: Grid<2, 4>,
    /// Jobs parked because their carrier is out, by lane.
    pub parks: Grid<2, 1>,
    /// Tries again, by lane.
    pub retries: Grid<2, 1>,
    /// Decisions without the shared counter, by lane and place in [`StoreError::ALL`].
    pub fallbacks: Grid<2, { StoreError::ALL.len() }>,
    /// Jobs that passed without a look at their frequency caps, by lane.
    pub caps_unchecked: Grid<2, 1>,
    /// Place in [`StoreError::ALL`] of the last reason for deciding without the shared counter.
    last_fallback: AtomicU64,
    /// Duplicates, by place in [`DuplicateKind::ALL`].
    pub duplicates: Grid<2, 1>,
    /// Lane hints that nobody understood, by place in [`HINT_FIELDS`].
    pub hints: Grid<3, 1>,
    /// Publishes that failed and will be repeated.
    pub publish_failures: AtomicU64,
    /// Jobs that have waited in the database and gone back to their queues, by lane.
    pub released: Grid<2, 1>,
    /// Rounds of releasing that came to nothing, by place in [`ReleaseTrouble::ALL`].
    pub release_failures: Grid<2, 1>,
    /// Jobs that wait in the database, of all workers, by lane.
    pub waiting: Grid<2, 1>,
    /// Jobs at a carrier now, by lane.
    pub in_flight: Grid<2, 1>,
    /// Age of the oldest job in this worker's hands, in milliseconds, by lane.
    pub oldest_ms: Grid<2, 1>,
    /// Jobs that went to wait in the database, by lane and place in [`WaitReason::ALL`].
    pub waits: Grid<2, { WaitReason::ALL.len() }>,
    /// Accounts that this worker has given a queue of their own, by lane.
    pub splits: Grid<2, 1>,
    /// Accounts under pressure for which there was no more room for one, by lane.
    pub splits_declined: Grid<2, 1>,
    /// Accounts from which this worker has taken theirs, by lane.
    pub merges: Grid<2, 1>,
    /// Accounts' own queues that this worker knows, by lane.
    pub hot_queues: Grid<2, 1>,
    /// 1 while opt-outs cannot be looked up, and nothing is sent.
    pub records_away: AtomicU64,
    /// 1 while the ledger does not keep up, and marketing waits for it.
    pub ledger_behind: AtomicU64,
    /// Entries that wait for the ledger.
    pub ledger_waiting: AtomicU64,
    /// Entries that found no room to wait for the ledger.
    pub ledger_lost: AtomicU64,
    /// Place in [`MeterMode::ALL`] of the mode that decides now.
    pub meter_mode: AtomicU64,
}

impl Counts {
    /// Whose counter this process decides by.
    #[must_use]
    pub fn mode(&self) -> MeterMode {
        let place = usize::try_from(self.meter_mode.load(Relaxed)).unwrap_or_default();
        MeterMode::ALL
            .get(place)
            .copied()
            .unwrap_or(MeterMode::Local)
    }
}

/// The handle through which the parts of a process report what they do.
#[derive(Clone)]
pub struct Telemetry {
    counts: Arc<Counts>,
    outcomes: Arc<[Outcome]>,
    queue_wait: Histogram<f64>,
    carrier_seconds: Histogram<f64>,
    carrier_out: Gauge<u64>,
    api_seconds: Histogram<f64>,
    tally: Tally,
}

impl Telemetry {
    /// Telemetry whose histograms live in `meter`; the counters are exported by whoever reads
    /// [`Telemetry::counts`].
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        let seconds = |name: &'static str, description: &'static str, bounds: Vec<f64>| {
            meter
                .f64_histogram(name)
                .with_unit("s")
                .with_description(description)
                .with_boundaries(bounds)
                .build()
        };
        Self {
            counts: Arc::new(Counts {
                deliveries: Grid::new(),
                outcomes: Grid::new(),
                sheds: Grid::new(),
                parks: Grid::new(),
                retries: Grid::new(),
                fallbacks: Grid::new(),
                caps_unchecked: Grid::new(),
                last_fallback: AtomicU64::new(0),
                duplicates: Grid::new(),
                hints: Grid::new(),
                publish_failures: AtomicU64::new(0),
                released: Grid::new(),
                release_failures: Grid::new(),
                waiting: Grid::new(),
                in_flight: Grid::new(),
                oldest_ms: Grid::new(),
                waits: Grid::new(),
                splits: Grid::new(),
                splits_declined: Grid::new(),
                merges: Grid::new(),
                hot_queues: Grid::new(),
                records_away: AtomicU64::new(0),
                ledger_behind: AtomicU64::new(0),
                ledger_waiting: AtomicU64::new(0),
                ledger_lost: AtomicU64::new(0),
                meter_mode: AtomicU64::new(0),
            }),
            outcomes: all_outcomes().into(),
            queue_wait: seconds(
                "lanekeeper.queue_wait",
                "From enqueueing to the start of each carrier call",
                vec![
                    0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0,
                    60.0, 600.0, 3600.0,
                ],
            ),
            carrier_seconds: seconds(
                "lanekeeper.carrier",
                "One carrier call",
                vec![
                    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
                ],
            ),
            api_seconds: seconds(
                "lanekeeper.api",
                "One HTTP request, from its head to its answer",
                vec![
                    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
                ],
            ),
            carrier_out: meter
                .u64_gauge("lanekeeper.carrier_out")
                .with_description("1 while a carrier is left alone because it does not answer")
                .build(),
            tally: Tally::off(),
        }
    }

    /// The same, with a tally of single accounts beside the counts of all.
    #[must_use]
    pub fn with_tally(mut self, tally: Tally) -> Self {
        self.tally = tally;
        self
    }

    /// What single accounts do. It has no place in metrics, which know no accounts.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Telemetry that nobody exports, for tests and simulations.
    #[must_use]
    pub fn unexported() -> Self {
        Self::new(&opentelemetry::global::meter("unexported"))
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Messages arrived from a lane's queue.
    pub fn delivered(&self, queue: Lane, count: u64) {
        self.counts.deliveries.add(queue.index(), 0, count);
    }

    /// A job has ended.
    pub fn settled(&self, lane: Lane, outcome: Outcome) {
        if let Some(place) = self.outcomes.iter().position(|known| *known == outcome) {
            self.counts.outcomes.add(lane.index(), place, 1);
        }
    }

    /// A job was sent back because of a limit.
    pub fn shed(&self, lane: Lane, limit: Limit) {
        self.counts.sheds.add(lane.index(), limit as usize, 1);
    }

    /// A job was parked.
    pub fn parked(&self, lane: Lane) {
        self.counts.parks.add(lane.index(), 0, 1);
    }

    /// A job will be tried again.
    pub fn retried(&self, lane: Lane) {
        self.counts.retries.add(lane.index(), 0, 1);
    }

    /// Decisions were made without the shared counter.
    pub fn fell_open(&self, lane: Lane, why: StoreError, decisions: u64) {
        self.counts
            .fallbacks
            .add(lane.index(), why as usize, decisions);
        if decisions > 0 {
            self.counts.last_fallback.store(why as u64, Relaxed);
        }
    }

    /// Jobs passed without a look at their frequency caps, because their counts were out of reach.
    pub fn cap_unchecked(&self, lane: Lane, jobs: u64) {
        self.counts.caps_unchecked.add(lane.index(), 0, jobs);
    }

    /// An account has been given a queue of its own.
    pub fn split(&self, lane: Lane) {
        self.counts.splits.add(lane.index(), 0, 1);
    }

    /// An account under pressure was not given one: there are as many as there may be.
    pub fn split_declined(&self, lane: Lane) {
        self.counts.splits_declined.add(lane.index(), 0, 1);
    }

    /// An account shares the lane's queue again.
    pub fn merged(&self, lane: Lane) {
        self.counts.merges.add(lane.index(), 0, 1);
    }

    /// So many accounts have queues of their own in a lane.
    pub fn hot_queues(&self, lane: Lane, count: usize) {
        self.counts.hot_queues.0[lane.index()][0].store(count as u64, Relaxed);
    }

    /// A second send of a job was prevented, or risked.
    pub fn duplicate(&self, kind: DuplicateKind) {
        self.counts.duplicates.add(kind as usize, 0, 1);
    }

    /// A job carried a lane hint that nobody understands; `field` is one of [`HINT_FIELDS`].
    pub fn unrecognised_hint(&self, field: &'static str) {
        if let Some(place) = HINT_FIELDS.iter().position(|known| *known == field) {
            self.counts.hints.add(place, 0, 1);
        }
    }

    /// Sheds were decided without the shared counter, by what this process remembers of its own.
    pub fn fell_open_again(&self, lane: Lane, decisions: u64) {
        let why = self.counts.last_fallback.load(Relaxed);
        let why = usize::try_from(why)
            .unwrap_or(0)
            .min(StoreError::ALL.len() - 1);
        self.counts.fallbacks.add(lane.index(), why, decisions);
    }

    /// A request was answered. `route` is the path as it is declared, `code` that of an error or
    /// empty.
    pub fn answered(&self, route: String, status: u16, code: &'static str, took: Duration) {
        let labels = [
            KeyValue::new("route", route),
            KeyValue::new("status", i64::from(status)),
            KeyValue::new("code", code),
        ];
        self.api_seconds.record(took.as_secs_f64(), &labels);
    }

    /// A carrier is in use, and not known to be out.
    pub fn carrier_opened(&self, carrier: &Arc<str>) {
        self.record_out(carrier, false);
    }

    fn record_out(&self, carrier: &Arc<str>, out: bool) {
        let label = KeyValue::new("carrier", Arc::clone(carrier));
        self.carrier_out.record(u64::from(out), &[label]);
    }

    /// A carrier counts as being out, because of what `why` says, or, without it, no longer.
    pub fn carrier_changed(&self, carrier: &Arc<str>, why: Option<&str>) {
        self.record_out(carrier, why.is_some());
        let carrier: &str = carrier;
        if let Some(why) = why {
            tracing::warn!(carrier, why, "a carrier is out: its jobs are parked");
        } else {
            tracing::info!(carrier, "a carrier is back");
        }
    }

    /// A message that cannot be read has been put into the dead queue.
    pub fn buried(&self, queue: Lane, reason: &'static str, detail: &str) {
        tracing::warn!(
            queue = queue.as_str(),
            reason,
            detail,
            "a message cannot be read; it lies in the dead queue"
        );
    }

    /// Publishes failed and will be repeated.
    pub fn publish_failed(&self, count: u64) {
        self.counts.publish_failures.fetch_add(count, Relaxed);
    }

    /// Jobs that waited in the database are in their lane's queue again.
    pub fn released(&self, lane: Lane, jobs: usize) {
        self.counts.released.add(lane.index(), 0, jobs as u64);
    }

    /// Waiting jobs could not be released. Whether that is news to whoever reads the log is known to
    /// the caller.
    pub fn release_failed(&self, trouble: ReleaseTrouble, news: bool) {
        self.counts.release_failures.add(trouble as usize, 0, 1);
        if news {
            let cause = trouble.as_str();
            tracing::warn!(cause, "waiting jobs cannot be released; they are kept");
        }
    }

    /// Waiting jobs can be released again.
    pub fn release_goes_on(&self) {
        tracing::info!("waiting jobs are released again");
    }

    /// The ledger gets no partitions, because the database user may not make any.
    pub fn ledger_has_no_partitions(&self) {
        tracing::warn!(
            "this database user may not make or drop the ledger's partitions: its rows go to \
             ledger_other and are not dropped by the day; make it the owner of the table ledger"
        );
    }

    /// The ledger's partitions cannot be looked after; why, in plain words.
    pub fn ledger_is_not_kept_up(&self, why: &str) {
        tracing::warn!(
            why,
            "the ledger's partitions cannot be made or dropped; trying again each minute"
        );
    }

    /// The ledger gets no further partitions, because too many rows have none.
    pub fn ledger_is_crowded(&self) {
        tracing::warn!(
            "ledger_other holds so much that making a partition would hold up everybody: the ledger's \
             rows go on going there, and are deleted when they are old; docs/OPERATIONS.md says how \
             to make partitions again"
        );
    }

    /// So many jobs of a lane wait in the database.
    pub fn waiting(&self, lane: Lane, jobs: u64) {
        self.counts.waiting.0[lane.index()][0].store(jobs, Relaxed);
    }

    /// Jobs of a lane at carriers now.
    pub fn in_flight(&self, lane: Lane, jobs: usize) {
        self.counts.in_flight.0[lane.index()][0].store(jobs as u64, Relaxed);
    }

    /// Age of the oldest job of a lane in this worker's hands.
    pub fn oldest(&self, lane: Lane, age: Duration) {
        let millis = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        self.counts.oldest_ms.0[lane.index()][0].store(millis, Relaxed);
    }

    /// A job waits in the database.
    pub fn waits(&self, lane: Lane, reason: WaitReason) {
        self.counts.waits.add(lane.index(), reason as usize, 1);
    }

    /// Nothing is sent before the database has answered once.
    pub fn records_awaited(&self) {
        self.counts.records_away.store(1, Relaxed);
    }

    /// Why a lane takes no jobs although the broker has some, if the database is the reason.
    #[must_use]
    pub fn closed(&self, lane: Lane) -> Option<&'static str> {
        if self.counts.records_away.load(Relaxed) > 0 {
            return Some("opt-outs cannot be looked up: the database does not answer");
        }
        let behind = self.counts.ledger_behind.load(Relaxed) > 0;
        (behind && lane == Lane::Marketing).then_some("the ledger does not keep up")
    }

    /// The database does not answer: nothing is sent.
    pub fn records_away(&self, why: RecordsError) {
        self.counts.records_away.store(1, Relaxed);
        tracing::warn!(%why, "nothing is sent until opt-outs can be looked up again");
    }

    /// The database answers.
    pub fn records_back(&self) {
        if self.counts.records_away.swap(0, Relaxed) > 0 {
            tracing::info!("opt-outs can be looked up");
        }
    }

    /// Whether the ledger keeps up, and how many entries wait for it.
    pub fn ledger(&self, keeps_up: bool, waiting: usize) {
        self.counts.ledger_waiting.store(waiting as u64, Relaxed);
        let behind = u64::from(!keeps_up);
        if self.counts.ledger_behind.swap(behind, Relaxed) == behind {
            return;
        }
        if keeps_up {
            tracing::info!("the ledger keeps up again");
        } else {
            tracing::warn!("the ledger does not keep up: marketing waits for it");
        }
    }

    /// Entries are lost to the ledger.
    pub fn ledger_lost(&self, entries: u64) {
        self.counts.ledger_lost.fetch_add(entries, Relaxed);
    }

    /// Entries are lost to the ledger, because the database cannot take what is in them.
    pub fn ledger_refused(&self, entries: u64) {
        self.ledger_lost(entries);
        tracing::warn!(
            entries,
            "the ledger has left out what the database cannot take"
        );
    }

    /// Whose counter decides now.
    pub fn meter_mode(&self, mode: MeterMode) {
        self.counts.meter_mode.store(mode as u64, Relaxed);
    }

    /// How long a job waited from being queued to its dispatch.
    pub fn waited(&self, lane: Lane, wait: Duration) {
        self.queue_wait
            .record(wait.as_secs_f64(), &[KeyValue::new("lane", lane.as_str())]);
    }

    /// How long a carrier call took.
    pub fn called(&self, carrier: &Arc<str>, took: Duration) {
        self.carrier_seconds.record(
            took.as_secs_f64(),
            &[KeyValue::new("carrier", Arc::clone(carrier))],
        );
    }
}

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Telemetry").finish_non_exhaustive()
    }
}
