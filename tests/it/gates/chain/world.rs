//! One worker, and an account for each case.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::sleep;

use super::cases::{Cancelled, Case, Hours, OptedOut, Paused, QuietHours, Seen, Sent};
use super::{PATIENCE, RECIPIENT, SENDER};
use crate::support::counters::{Counters, KeptCounters};
use crate::support::events::Events;
use crate::support::postgres::TestDatabase;
use crate::support::records::Records;
use crate::support::scene::Scene;
use crate::support::worker::Worker;

/// A change is known to every worker within this.
const KNOWN_WITHIN: Duration = Duration::from_secs(1);

/// A worker, and all that jobs may run into.
pub struct World {
    pub scene: Scene,
    pub records: Records,
    pub counters: Counters,
    pub events: Events,
    pub hours: Hours,
    pub cases: Vec<Case>,
    _database: TestDatabase,
}

impl World {
    pub async fn new(cases: Vec<Case>) -> (Self, Worker) {
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

    pub async fn raise(&self) -> KeptCounters {
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

    pub async fn kept(&self) -> BTreeMap<&str, BTreeMap<String, String>> {
        let mut kept = BTreeMap::new();
        for case in &self.cases {
            let account = &*case.account;
            kept.insert(account, self.counters.of(account).await);
        }
        kept
    }

    /// What is to be seen of a case's job.
    pub async fn look(&self, case: &Case) -> Seen {
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
    pub async fn assert_entered(&self, case: &Case) {
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
