//! Many accounts with backlogs at once, and a thousand that send a job now and then.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::Options;
use crate::figure::Figure;
use crate::stage::{SECOND, Stage, millis, per_second, stop};
use crate::support::flow::Flow;
use crate::support::jobs::{Offer, Publisher};
use crate::support::scene::quantile;
use crate::support::worker::Cluster;

const HOT: usize = 50;
/// Of each account: so that what all of them may send is less than two processors can.
const BUDGET: u32 = 25;
/// What that leaves the marketing lane.
const CEILING: f64 = 20.0;
/// Queues made beforehand, where so many campaigns are expected at one time.
const SPARE: usize = 64;
/// Queues made beforehand by default: `hot.spare`.
const BY_DEFAULT: usize = 2;
const QUIET: usize = 1_000;
/// Jobs of all quiet accounts together, per second.
const RATE: u32 = 100;

const QUIET_JOB: &str = "a quiet account's job beside 50 backlogs";

/// What the sandbox accepted, and when.
struct Accepted(HashMap<String, Vec<(String, Timestamp)>>);

pub async fn measure(options: Options) -> Vec<Figure> {
    let mut figures = prepared(options).await;
    figures.push(by_default(options).await);
    figures
}

/// A worker whose carrier notes what it is given.
struct Play {
    stage: Stage,
    cluster: Cluster,
    publisher: Publisher,
    file: PathBuf,
    _files: TempDir,
}

impl Play {
    async fn begin(name: &str, spare: usize) -> Self {
        let stage = Stage::new(name).await;
        let files = TempDir::new().unwrap();
        let file = files.path().join("accepted.jsonl");
        let config = stage
            .config()
            .set("LANES__BUDGET_PER_SECOND", BUDGET)
            .set("HOT__SPARE", spare)
            .set("CARRIERS__DEFAULT__KIND", "sandbox")
            .set(
                "CARRIERS__DEFAULT__SANDBOX_RECORD_FILE",
                &*file.to_string_lossy(),
            );
        let cluster = stage.start(1, &config).await;
        let publisher = stage.scene.publisher().await;
        Self {
            stage,
            cluster,
            publisher,
            file,
            _files: files,
        }
    }

    /// All accounts publish at once, and quiet ones beside them; gives when those published what.
    async fn flood(&self, options: Options, name: &str) -> (Duration, HashMap<String, Timestamp>) {
        let each = options.or_quick(2_000, 400);
        let seconds = options.or_quick(30, 15);
        let beside = format!("beside-{name}");
        let (took, quiet) = tokio::join!(
            self.stage.flood(flood(each, name)),
            quiet(&self.publisher, seconds, &beside)
        );
        println!("  published at {:.0}/s", per_second(each * HOT, took));
        (took, quiet)
    }
}

/// As operators have it who know that many campaigns begin at one time.
async fn prepared(options: Options) -> Vec<Figure> {
    let play = Play::begin("many", SPARE).await;
    let (_, first) = play.flood(options, "bulk").await;
    // What was published before they had their queues gives way; then all of them send again.
    let queues = &play.stage.queues;
    queues.await_open("marketing", HOT, 60 * SECOND).await;
    let split = queues.open_since("marketing").await;
    let gave_way = play.stage.shared_queues_clear().await;
    let since = Timestamp::now();
    let (flooded_again, later) = play.flood(options, "more").await;
    let until = Timestamp::now();
    all_sent(&play.file, first.len() + later.len()).await;
    let flow = Flow::of(&play.cluster, "marketing").await;
    stop(play.cluster).await;
    let accepted = Accepted::read(&play.file);
    let shares = accepted.shares(since + flooded_again, until);
    let took = [accepted.took(&first), accepted.took(&later)];
    figures(&took, &shares, split.len(), flow, gave_way)
}

/// With as many spare queues as there are by default: most accounts have to wait for theirs.
async fn by_default(options: Options) -> Figure {
    let play = Play::begin("many-default", BY_DEFAULT).await;
    let (_, first) = play.flood(options, "bulk").await;
    all_sent(&play.file, first.len()).await;
    let flow = Flow::of(&play.cluster, "marketing").await;
    stop(play.cluster).await;
    let took = Accepted::read(&play.file).took(&first);
    let p99 = millis(quantile(&took, 0.99));
    let what = format!("{QUIET_JOB}, from their first job on, {BY_DEFAULT} spare queues, p99");
    let note = format!("{}; {} sheds", describe(&took), flow.sheds);
    Figure::new(what, p99, "ms").note(note)
}

/// So many jobs of each account, in turn, as if all of them published at the same time.
fn flood(each: usize, name: &str) -> Vec<Offer> {
    (0..each * HOT)
        .map(|place| Offer::marketing(&format!("hot-{}", place % HOT), format!("{name}-{place}")))
        .collect()
}

fn figures(
    took: &[Vec<Duration>; 2],
    shares: &[f64],
    split: usize,
    flow: Flow,
    gave_way: Duration,
) -> Vec<Figure> {
    let p99 = |took: &[Duration]| millis(quantile(took, 0.99));
    let least = shares.first().copied().unwrap_or(0.0);
    let median = shares.get(shares.len() / 2).copied().unwrap_or(0.0);
    #[expect(clippy::cast_precision_loss, reason = "fifty at most")]
    let split = split as f64;
    let [first, later] = took;
    vec![
        Figure::new(
            format!("{QUIET_JOB}, from their first job on, {SPARE} spare queues, p99"),
            p99(first),
            "ms",
        )
        .at_most(1_000.0)
        .note(describe(first)),
        Figure::new(
            format!("{QUIET_JOB}, once all have queues of their own, p99"),
            p99(later),
            "ms",
        )
        .at_most(1_000.0)
        .note(describe(later)),
        Figure::new(
            "until nothing of theirs lay in the shared queue any more",
            gave_way.as_secs_f64(),
            "s",
        ),
        Figure::new("accounts of 50 that got queues of their own", split, "").at_least(50.0),
        Figure::new(
            "share of its ceiling that each of them used: the least",
            least,
            "",
        )
        .at_least(0.9)
        .note(format!("median {median:.3}; {} sheds in all", flow.sheds)),
    ]
}

fn describe(took: &[Duration]) -> String {
    let p = |share| millis(quantile(took, share));
    let (half, longest, jobs) = (p(0.5), p(1.0), took.len());
    format!("p50 {half:.0}, longest {longest:.0} ms; {jobs} jobs")
}

/// Waits until all jobs of quiet accounts were sent, or for as long as anybody would.
async fn all_sent(file: &Path, jobs: usize) {
    let limit = Instant::now() + 60 * SECOND;
    while Instant::now() < limit {
        let text = std::fs::read_to_string(file).unwrap();
        if text.matches("\"quiet-").count() >= jobs {
            return;
        }
        sleep(SECOND).await;
    }
}

/// Publishes one job of a quiet account after the other; gives when each was.
async fn quiet(publisher: &Publisher, seconds: usize, name: &str) -> HashMap<String, Timestamp> {
    let mut left_at = HashMap::new();
    let mut ticks = interval(SECOND / RATE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for place in 0..RATE as usize * seconds {
        ticks.tick().await;
        let account = format!("quiet-{}", place % QUIET);
        let id = format!("{name}-{place}");
        left_at.insert(id.clone(), Timestamp::now());
        publisher
            .publish_all(&[Offer::marketing(&account, id)])
            .await;
    }
    left_at
}

impl Accepted {
    /// The record of the sandbox, by account.
    fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).unwrap();
        let mut accepted: HashMap<String, Vec<(String, Timestamp)>> = HashMap::new();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let text = |field: &str| line[field].as_str().unwrap().to_owned();
            let at = Timestamp::from_microsecond(line["at_us"].as_i64().unwrap()).unwrap();
            let of_account = accepted.entry(text("account_id")).or_default();
            of_account.push((text("id"), at));
        }
        Self(accepted)
    }

    /// How long each of these took; one that never came counts as an hour.
    fn took(&self, left_at: &HashMap<String, Timestamp>) -> Vec<Duration> {
        let all = self.0.values().flatten();
        let at: HashMap<_, _> = all.map(|(id, at)| (id, *at)).collect();
        let took = |(id, left): (&String, &Timestamp)| {
            let at = at.get(id).copied();
            at.map_or(3_600 * SECOND, |at| {
                Duration::try_from(at.duration_since(*left)).unwrap_or_default()
            })
        };
        left_at.iter().map(took).collect()
    }

    /// The share of its ceiling that each account with a backlog used between two instants, least first.
    #[expect(clippy::cast_precision_loss, reason = "a few thousand at most")]
    fn shares(&self, since: Timestamp, until: Timestamp) -> Vec<f64> {
        let seconds = until.duration_since(since).as_secs_f64();
        let share = |place: usize| {
            let all = self.0.get(&format!("hot-{place}"));
            let all = all.map_or(&[][..], Vec::as_slice);
            let sent = all.iter().filter(|(_, at)| (since..until).contains(at));
            sent.count() as f64 / seconds / CEILING
        };
        let mut shares: Vec<_> = (0..HOT).map(share).collect();
        shares.sort_by(f64::total_cmp);
        shares
    }
}
