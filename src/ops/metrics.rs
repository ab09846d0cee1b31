//! Metrics: the process's own counts, for Prometheus.
//!
//! Counting costs an atomic addition; the instruments here only read when somebody asks. Labels are
//! closed sets, and each combination is there from the start, so that a first event shows as an
//! increase.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Registry, TextEncoder};
use thiserror::Error;

use crate::dispatch::ports::WaitReason;
use crate::domain::{Lane, Limit, MeterMode};
use crate::meter::StoreError;
use crate::telemetry::{
    Counts, DuplicateKind, HINT_FIELDS, ReleaseTrouble, Telemetry, all_outcomes,
};

/// Why there are no metrics.
#[derive(Debug, Error)]
pub enum MetricsError {
    /// The exporter.
    #[error("metrics cannot be set up: {0}")]
    Setup(String),
    /// The text.
    #[error("metrics cannot be written: {0}")]
    Render(#[from] prometheus::Error),
}

/// The metrics of one process.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Registry,
    provider: SdkMeterProvider,
}

impl Metrics {
    /// Metrics with nothing in them yet.
    ///
    /// # Errors
    /// When the exporter cannot be set up.
    pub fn new() -> Result<Self, MetricsError> {
        let registry = Registry::new();
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .without_target_info()
            .build()
            .map_err(|error| MetricsError::Setup(error.to_string()))?;
        let provider = SdkMeterProvider::builder().with_reader(exporter).build();
        Ok(Self { registry, provider })
    }

    /// Where [`Telemetry`] keeps its histograms.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.provider.meter("lanekeeper")
    }

    /// Exports what the telemetry counts, and its gauges.
    pub fn observe(&self, telemetry: &Telemetry) {
        let instruments = Instruments {
            meter: self.meter(),
            telemetry: telemetry.clone(),
        };
        instruments.jobs();
        instruments.waits();
        instruments.hot();
        instruments.troubles();
        instruments.states();
        instruments.records();
    }

    /// The text that Prometheus reads.
    ///
    /// # Errors
    /// When the text cannot be written.
    pub fn render(&self) -> Result<String, MetricsError> {
        Ok(TextEncoder::new().encode_to_string(&self.registry.gather())?)
    }
}

/// One value with its labels.
type Cell = (Vec<KeyValue>, u64);

struct Instruments {
    meter: Meter,
    telemetry: Telemetry,
}

impl Instruments {
    /// What happens to jobs.
    fn jobs(&self) {
        self.counter(
            "lanekeeper.deliveries",
            "Messages delivered, by lane of their queue",
            |counts| by_lane(|lane| counts.deliveries.get(lane.index(), 0)),
        );
        self.counter(
            "lanekeeper.outcomes",
            "Jobs settled, by how they ended",
            |counts| {
                let outcomes: Vec<_> = all_outcomes().into_iter().enumerate().collect();
                grid(&outcomes, |lane, (place, outcome)| {
                    let labels = [("outcome", outcome.as_str()), ("reason", outcome.reason())];
                    (labels.to_vec(), counts.outcomes.get(lane.index(), *place))
                })
            },
        );
        self.counter(
            "lanekeeper.sheds",
            "Jobs sent back because a limit was reached",
            |counts| {
                grid(&Limit::ALL, |lane, limit| {
                    let count = counts.sheds.get(lane.index(), *limit as usize);
                    (vec![("limit", limit.as_str())], count)
                })
            },
        );
        self.counter(
            "lanekeeper.retries",
            "Tries that failed and are repeated",
            |counts| by_lane(|lane| counts.retries.get(lane.index(), 0)),
        );
        self.counter(
            "lanekeeper.parks",
            "Jobs parked because their carrier is out",
            |counts| by_lane(|lane| counts.parks.get(lane.index(), 0)),
        );
    }

    /// Jobs that wait in the database.
    fn waits(&self) {
        self.counter(
            "lanekeeper.released",
            "Jobs that waited in the database and are in their queue again",
            |counts| by_lane(|lane| counts.released.get(lane.index(), 0)),
        );
        self.counter(
            "lanekeeper.release_failures",
            "Rounds in which waiting jobs could not be released, by what did not answer",
            |counts| {
                let causes = ReleaseTrouble::ALL.into_iter();
                causes
                    .map(|cause| {
                        let count = counts.release_failures.get(cause as usize, 0);
                        (vec![KeyValue::new("cause", cause.as_str())], count)
                    })
                    .collect()
            },
        );
        self.lane_gauge(
            "lanekeeper.waiting",
            "Jobs that wait in the database; every worker tells the same number",
            |counts, lane| counts.waiting.get(lane.index(), 0),
        );
    }

    /// Queues of accounts' own.
    fn hot(&self) {
        self.counter(
            "lanekeeper.splits",
            "Accounts under pressure that were given a queue of their own",
            |counts| by_lane(|lane| counts.splits.get(lane.index(), 0)),
        );
        self.counter(
            "lanekeeper.splits_declined",
            "Accounts under pressure for which there was no more room for one",
            |counts| by_lane(|lane| counts.splits_declined.get(lane.index(), 0)),
        );
        self.counter(
            "lanekeeper.merges",
            "Accounts that share the lane's queue again",
            |counts| by_lane(|lane| counts.merges.get(lane.index(), 0)),
        );
        self.lane_gauge(
            "lanekeeper.hot_queues",
            "Queues of accounts' own; every worker tells the same number",
            |counts, lane| counts.hot_queues.get(lane.index(), 0),
        );
    }

    /// What operators should look at when it grows.
    fn troubles(&self) {
        self.counter(
            "devotel.messaging.rate_limiter.fallback",
            "Decisions, admit or shed, made without the shared counter",
            |counts| {
                grid(&StoreError::ALL, |lane, why| {
                    let count = counts.fallbacks.get(lane.index(), *why as usize);
                    (vec![("reason", why.as_str())], count)
                })
            },
        );
        self.counter(
            "lanekeeper.caps_unchecked",
            "Jobs that passed without a look at their frequency caps",
            |counts| by_lane(|lane| counts.caps_unchecked.get(lane.index(), 0)),
        );
        self.counter(
            "lanekeeper.duplicates",
            "Second sends that were prevented, or possible because a result was unknown",
            |counts| {
                let kinds = DuplicateKind::ALL.into_iter();
                kinds
                    .map(|kind| {
                        let count = counts.duplicates.get(kind as usize, 0);
                        (vec![KeyValue::new("kind", kind.as_str())], count)
                    })
                    .collect()
            },
        );
        self.counter(
            "lanekeeper.unrecognised_hints",
            "Values meant to choose a lane that nobody understands",
            |counts| {
                let fields = HINT_FIELDS.into_iter().enumerate();
                fields
                    .map(|(place, field)| {
                        (
                            vec![KeyValue::new("field", field)],
                            counts.hints.get(place, 0),
                        )
                    })
                    .collect()
            },
        );
        self.counter(
            "lanekeeper.publish_failures",
            "Publishes that failed and are repeated",
            |counts| vec![(Vec::new(), counts.publish_failures.load(Relaxed))],
        );
    }

    /// What is written down, or cannot be.
    fn records(&self) {
        self.counter(
            "lanekeeper.waits",
            "Jobs that went to wait in the database",
            |counts| {
                grid(&WaitReason::ALL, |lane, reason| {
                    let count = counts.waits.get(lane.index(), *reason as usize);
                    (vec![("reason", reason.as_str())], count)
                })
            },
        );
        self.counter(
            "lanekeeper.ledger_lost",
            "Entries that found no room to wait for the ledger",
            |counts| vec![(Vec::new(), counts.ledger_lost.load(Relaxed))],
        );
        self.gauge(
            "lanekeeper.database_away",
            "1 while opt-outs cannot be looked up, and nothing is sent",
            |counts| counts.records_away.load(Relaxed),
        );
        self.gauge(
            "lanekeeper.ledger_behind",
            "1 while the ledger does not keep up, and marketing waits for it",
            |counts| counts.ledger_behind.load(Relaxed),
        );
        self.gauge(
            "lanekeeper.ledger_waiting",
            "Entries that wait for the ledger",
            |counts| counts.ledger_waiting.load(Relaxed),
        );
    }

    /// What is so now.
    fn states(&self) {
        self.lane_gauge(
            "lanekeeper.in_flight",
            "Jobs at carriers",
            |counts, lane| counts.in_flight.get(lane.index(), 0),
        );
        let mode = self.meter.u64_observable_gauge("lanekeeper.meter_mode");
        let telemetry = self.telemetry.clone();
        mode.with_description("1 for the counter that decides, 0 for the other")
            .with_callback(move |observer| {
                let present = telemetry.counts().meter_mode.load(Relaxed);
                for mode in MeterMode::ALL {
                    let labels = [KeyValue::new("mode", mode.as_str())];
                    observer.observe(u64::from(mode as u64 == present), &labels);
                }
            })
            .build();
        let oldest = self.meter.f64_observable_gauge("lanekeeper.oldest");
        let telemetry = self.telemetry.clone();
        oldest
            .with_unit("s")
            .with_description("Age of the oldest job in this worker's hands")
            .with_callback(move |observer| {
                for (labels, millis) in
                    by_lane(|lane| telemetry.counts().oldest_ms.get(lane.index(), 0))
                {
                    observer.observe(Duration::from_millis(millis).as_secs_f64(), &labels);
                }
            })
            .build();
    }

    /// A state of each lane.
    fn lane_gauge(
        &self,
        name: &'static str,
        description: &'static str,
        read: impl Fn(&Counts, Lane) -> u64 + Send + Sync + 'static,
    ) {
        let telemetry = self.telemetry.clone();
        let gauge = self.meter.u64_observable_gauge(name);
        gauge
            .with_description(description)
            .with_callback(move |observer| {
                for (labels, count) in by_lane(|lane| read(telemetry.counts(), lane)) {
                    observer.observe(count, &labels);
                }
            })
            .build();
    }

    /// A state of the whole process.
    fn gauge(
        &self,
        name: &'static str,
        description: &'static str,
        read: impl Fn(&Counts) -> u64 + Send + Sync + 'static,
    ) {
        let telemetry = self.telemetry.clone();
        self.meter
            .u64_observable_gauge(name)
            .with_description(description)
            .with_callback(move |observer| observer.observe(read(telemetry.counts()), &[]))
            .build();
    }

    fn counter(
        &self,
        name: &'static str,
        description: &'static str,
        read: impl Fn(&Counts) -> Vec<Cell> + Send + Sync + 'static,
    ) {
        let telemetry = self.telemetry.clone();
        self.meter
            .u64_observable_counter(name)
            .with_description(description)
            .with_callback(move |observer| {
                for (labels, count) in read(telemetry.counts()) {
                    observer.observe(count, &labels);
                }
            })
            .build();
    }
}

fn by_lane(read: impl Fn(Lane) -> u64) -> Vec<Cell> {
    let cell = |lane: Lane| (vec![KeyValue::new("lane", lane.as_str())], read(lane));
    Lane::ALL.map(cell).into()
}

/// One cell for each lane and item; `read` gives the item's labels and the count.
fn grid<Item>(
    items: &[Item],
    read: impl Fn(Lane, &Item) -> (Vec<(&'static str, &'static str)>, u64),
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for lane in Lane::ALL {
        for item in items {
            let (labels, count) = read(lane, item);
            let labels = labels
                .into_iter()
                .map(|(name, value)| KeyValue::new(name, value));
            let lane = KeyValue::new("lane", lane.as_str());
            cells.push((std::iter::once(lane).chain(labels).collect(), count));
        }
    }
    cells
}
