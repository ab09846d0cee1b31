//! The whole chain of gates and limits, in both lanes: what becomes of a job that each of them turns
//! away, in which order they decide, and that what one of them turns away has used nothing of
//! another. The same table as in the simulation, in one worker, each case with an account of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::sleep;

use crate::support::counters::{Counters, KeptCounters};
use crate::support::events::Events;
use crate::support::eventually;
use crate::support::jobs::Offer;
use crate::support::postgres::TestDatabase;
use crate::support::records::Records;
use crate::support::scene::Scene;
use crate::support::worker::Worker;

const RECIPIENT: &str = "+447700900001";
const SENDER: &str = "+447700900777";
const LANES: [&str; 2] = ["transactional", "marketing"];
/// A change is known to every worker within this.
const KNOWN_WITHIN: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(20);

/// Everything that may turn a job away, in the order in which they decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hurdle {
    OptedOut,
    Cancelled,
    Paused,
    NotBefore,
    QuietHours,
    Sent,
    Capped,
    Number,
    Service,
    Ceiling,
}

use Hurdle::{
    Cancelled, Capped, Ceiling, NotBefore, Number, OptedOut, Paused, QuietHours, Sent, Service,
};

const HURDLES: [Hurdle; 10] = [
    OptedOut, Cancelled, Paused, NotBefore, QuietHours, Sent, Capped, Number, Service, Ceiling,
];

/// What is to be seen of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    /// Its last event: outcome, reason, and when the next message may pass.
    Told(String, String, Option<Timestamp>),
    /// It waits: reason, and when it is due, where that is not a matter of turns.
    Waits(String, Option<Timestamp>),
    /// Neither.
    Nothing,
}

/// One account with every limit and some hurdles raised, and one job.
struct Case {
    account: String,
    lane: &'static str,
    raised: Vec<Hurdle>,
}

impl Case {
    fn new(lane: &'static str, raised: &[Hurdle]) -> Self {
        let names: Vec<_> = raised.iter().map(|hurdle| format!("{hurdle:?}")).collect();
        let account = format!("{lane}-{}-{}", names.len(), names.concat());
        Self {
            account: account.chars().take(64).collect(),
            lane,
            raised: raised.to_vec(),
        }
    }

    fn has(&self, hurdle: Hurdle) -> bool {
        self.raised.contains(&hurdle)
    }

    fn job(&self, hours: &Hours) -> Offer {
        let job = self.offer("it").with("from", SENDER);
        let job = job.with("service_id", "svc").with("category", "offers");
        let job = job.with("campaign_id", "c").with("journey_id", "j");
        if self.has(NotBefore) {
            job.with("not_before", hours.later.to_string())
        } else {
            job
        }
    }

    fn offer(&self, id: &str) -> Offer {
        let make = if self.lane == LANES[0] {
            Offer::otp
        } else {
            Offer::marketing
        };
        let offer = make(&self.account, id).queued_now();
        offer
            .with("to", RECIPIENT)
            .with("recipient_timezone", "Etc/UTC")
    }

    /// Jobs that have gone before.
    fn earlier(&self) -> Vec<Offer> {
        let sent = self.has(Sent).then(|| self.offer("it"));
        let capped = self.has(Capped).then(|| self.offer("other"));
        let capped = capped.map(|offer| offer.with("category", "offers"));
        sent.into_iter().chain(capped).collect()
    }

    /// Counters that others have raised to their ceilings.
    fn counters(&self, counters: &Counters) -> Vec<(String, u32)> {
        let ceiling = if self.lane == LANES[0] { 10 } else { 8 };
        let reached = [
            (Number, format!("number:{SENDER}"), 1),
            (Service, "service:svc".to_owned(), 1),
            (Ceiling, "count".to_owned(), ceiling),
        ];
        let reached = reached.into_iter().filter(|(hurdle, ..)| self.has(*hurdle));
        reached
            .map(|(_, name, count)| (counters.key(&self.account, &name), count))
            .collect()
    }

    fn expected(&self, hours: &Hours) -> Seen {
        let told =
            |outcome: &str, reason: &str, next| Seen::Told(outcome.into(), reason.into(), next);
        match self.raised.first() {
            Some(OptedOut) => told("refused", "opted_out", None),
            Some(Cancelled) => told("cancelled", "", None),
            Some(Paused) => Seen::Waits("paused".into(), None),
            Some(NotBefore) => Seen::Waits("not_before".into(), Some(hours.later)),
            Some(QuietHours) => told("refused", "quiet_hours", Some(hours.opening)),
            None | Some(Sent) => told("dispatched", "", None),
            Some(Capped) => told("refused", "frequency_cap", None),
            Some(Number) => Seen::Waits("number".into(), None),
            Some(Service) => Seen::Waits("service".into(), None),
            Some(Ceiling) => Seen::Nothing,
        }
    }

    /// Whether it goes once the counters' windows end.
    fn is_late(&self) -> bool {
        matches!(self.raised.first(), Some(Number | Service | Ceiling))
    }
}

/// The hours that this run's jobs meet.
struct Hours {
    /// When messages may be sent: not now.
    window: String,
    /// When that begins.
    opening: Timestamp,
    /// The instant that a publisher asks for.
    later: Timestamp,
}

impl Hours {
    fn new() -> Self {
        let now = Timestamp::now();
        let minutes = now.as_second().div_euclid(60) + 180;
        let opening = Timestamp::from_second(minutes * 60).unwrap();
        let at = |minutes: i64| format!("{:02}:{:02}", minutes / 60 % 24, minutes % 60);
        let later = now + SignedDuration::from_hours(1);
        Self {
            window: format!("{}-{}", at(minutes), at(minutes + 60)),
            opening,
            later: Timestamp::from_millisecond(later.as_millisecond()).unwrap(),
        }
    }
}

/// A case without hurdles, one for each hurdle, and those from each hurdle on together. Where the
/// lane's ceiling is reached nobody is asked before the window ends: it stands alone.
fn cases() -> Vec<Case> {
    let together = (0..HURDLES.len() - 2).map(|first| &HURDLES[first..HURDLES.len() - 1]);
    let alone = HURDLES.chunks(1);
    let raised: Vec<_> = [&[][..]].into_iter().chain(alone).chain(together).collect();
    let of_lane = |lane| raised.iter().map(move |raised| Case::new(lane, raised));
    LANES.into_iter().flat_map(of_lane).collect()
}

/// A worker, and all that jobs may run into.
struct World {
    scene: Scene,
    records: Records,
    counters: Counters,
    events: Events,
    hours: Hours,
    cases: Vec<Case>,
    _database: TestDatabase,
}

impl World {
    async fn new(cases: Vec<Case>) -> (Self, Worker) {
        let (scene, database) = Scene::with_database("chain").await;
        let records = Records::of(database.pool());
        for Case { account, .. } in &cases {
            records
                .commit(&format!(
                    "INSERT INTO accounts (account_id, budget_per_second) VALUES ('{account}', 10);
                     INSERT INTO frequency_caps VALUES ('{account}', 'daily', 'sms', 'offers', 1, 86400);
                     INSERT INTO ceilings VALUES ('{account}', 'number', '{SENDER}', 1),
                        ('{account}', 'service', 'svc', 1)"
                ))
                .await;
        }
        let worker = Worker::start(&scene.config).await;
        let world = Self {
            counters: Counters::connect(&scene.redis, &scene.prefix).await,
            events: scene.events().await,
            hours: Hours::new(),
            scene,
            records,
            cases,
            _database: database,
        };
        (world, worker)
    }

    async fn raise(&self) -> KeptCounters {
        let publisher = self.scene.publisher().await;
        let earlier: Vec<_> = self.cases.iter().flat_map(Case::earlier).collect();
        publisher.publish_all(&earlier).await;
        self.records.await_entries(earlier.len(), PATIENCE).await;
        for case in &self.cases {
            self.write_down(case).await;
        }
        // By then every window of the earlier jobs has ended, too.
        sleep(KNOWN_WITHIN + Duration::from_millis(100)).await;
        let reached = self.cases.iter();
        let reached = reached.flat_map(|case| case.counters(&self.counters));
        self.counters.keep(reached.collect()).await
    }

    async fn write_down(&self, case: &Case) {
        let Case { account, .. } = case;
        if case.has(OptedOut) {
            let opt_out =
                format!("INSERT INTO suppressions VALUES ('{account}', '{RECIPIENT}', 'all')");
            self.records.commit(&opt_out).await;
        }
        if case.has(Cancelled) {
            let records = &self.records;
            records.hold(account, "campaign", "c", "cancelled").await;
        }
        if case.has(Paused) {
            self.records.hold(account, "journey", "j", "paused").await;
        }
        if case.has(QuietHours) {
            let window = &self.hours.window;
            self.records
                .commit(&format!(
                    r#"UPDATE accounts SET quiet_hours = true, time_zone = 'Etc/UTC',
                        windows = '{{"sms": "{window}"}}' WHERE account_id = '{account}'"#
                ))
                .await;
        }
    }

    async fn kept(&self) -> BTreeMap<&str, BTreeMap<String, String>> {
        let mut kept = BTreeMap::new();
        for case in &self.cases {
            let account = &*case.account;
            kept.insert(account, self.counters.of(account).await);
        }
        kept
    }

    /// What is to be seen of a case's job.
    async fn look(&self, case: &Case) -> Seen {
        let instant = |millis: i64| Timestamp::from_millisecond(millis).unwrap();
        if let Some(row) = self.records.waits(&case.account, "it").await.pop() {
            let of_turns = matches!(&*row.reason, "number" | "service");
            let due = row.due.filter(|_| !of_turns).map(instant);
            return Seen::Waits(row.reason, due);
        }
        let mut events = self.events.of(&case.account, "it");
        // Of a job that went earlier the first telling is an old story.
        if case.has(Sent) && events.len() < 2 {
            events.clear();
        }
        let Some(event) = events.pop() else {
            return Seen::Nothing;
        };
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(text("lane"), case.lane);
        let next: Option<Timestamp> = text("next_allowed_at").parse().ok();
        // A cap's is measured by Redis's clock: that it has one is enough.
        let capped = text("reason") == "frequency_cap";
        assert!(next.is_some() || !capped);
        Seen::Told(text("outcome"), text("reason"), next.filter(|_| !capped))
    }

    /// The ledger says the same as the event. A job that was sent once stays a sent one.
    async fn assert_entered(&self, case: &Case) {
        let entries = self.records.entries(&case.account, "it").await;
        let Seen::Told(outcome, reason, next) = case.expected(&self.hours) else {
            assert_eq!(
                entries.len(),
                usize::from(case.has(Sent)),
                "{}",
                case.account
            );
            return;
        };
        assert_eq!(entries.len(), 1, "{}: {entries:?}", case.account);
        let entry = &entries[0];
        if case.has(Sent) {
            assert_eq!(entry.outcome, "dispatched", "{}", case.account);
            return;
        }
        let reason = Some(reason).filter(|reason| !reason.is_empty());
        assert_eq!((&entry.outcome, &entry.reason), (&outcome, &reason));
        assert_eq!(entry.lane, case.lane);
        if entry.reason.as_deref() == Some("frequency_cap") {
            assert!(entry.next_allowed.is_some());
        } else {
            let next = next.map(Timestamp::as_millisecond);
            assert_eq!(entry.next_allowed, next, "{}", case.account);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_hurdle_decides_in_its_turn_and_uses_nothing_of_another() {
    let (world, worker) = World::new(cases()).await;
    let kept = world.raise().await;
    let before = world.kept().await;
    let publisher = world.scene.publisher().await;
    let earlier = world.scene.stub.count();
    let jobs: Vec<_> = world
        .cases
        .iter()
        .map(|case| case.job(&world.hours))
        .collect();
    publisher.publish_all(&jobs).await;
    sleep(Duration::from_millis(400)).await;
    let over = [("lane", LANES[0]), ("limit", "lane")];
    let sheds = "lanekeeper_sheds_total";
    assert_eq!(worker.count(sheds, &over).await, 0, "held, not shed");

    for case in &world.cases {
        let expected = case.expected(&world.hours);
        let what = format!("{}: {expected:?}", case.account);
        eventually(&what, PATIENCE, async || world.look(case).await == expected).await;
        world.assert_entered(case).await;
    }
    let over = [("lane", LANES[1]), ("limit", "lane")];
    assert!(worker.count(sheds, &over).await > 0, "shed, not held");
    for lane in LANES {
        for limit in ["number", "service"] {
            let labels = [("lane", lane), ("limit", limit)];
            assert!(worker.count(sheds, &labels).await >= 2, "{labels:?}");
        }
    }
    // Nothing else went to the carrier, and nothing was counted but what went there.
    assert_eq!(world.scene.stub.count(), earlier + LANES.len());
    let mut after = world.kept().await;
    for case in world.cases.iter().filter(|case| case.raised.is_empty()) {
        let names: Vec<_> = after.remove(&*case.account).unwrap().into_keys().collect();
        assert!(names.iter().any(|name| name == "claim:it"), "{names:?}");
    }
    for (account, kept) in &after {
        assert_eq!(kept, &before[account], "{account}");
    }

    drop(kept);
    let late: Vec<_> = world.cases.iter().filter(|case| case.is_late()).collect();
    for case in &late {
        let what = format!("{} goes when the windows have ended", case.account);
        let gone = async || !world.records.entries(&case.account, "it").await.is_empty();
        eventually(&what, PATIENCE, gone).await;
        let entry = &world.records.entries(&case.account, "it").await[0];
        assert_eq!(entry.outcome, "dispatched");
    }
    println!(
        "figure: chain cases={} turned_away={} late={}",
        world.cases.len(),
        world.cases.len() - LANES.len(),
        late.len(),
    );
    worker.stop().await;
    world.scene.end().await;
}
