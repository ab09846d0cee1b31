//! An opt-out that is committed while jobs of that recipient are everywhere.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::jobs::{Offer, Publisher};
use crate::support::records::Records;
use crate::support::scene::Scene;
use crate::support::worker::{Cluster, FALLBACKS};
use crate::support::{eventually, heavy};

const SECOND: Duration = Duration::from_secs(1);
const RECIPIENT: &str = "+447700900001";
const JOBS: usize = 1_000;
/// One batch per worker may have been looked up before the commit: it is at the carrier by then.
const UNDER_WAY: Duration = Duration::from_millis(150);

/// Where a group's jobs are when the opt-out comes. Each group has an account of its own, and enough
/// of a backlog at its budget to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    MarketingQueue,
    DelayQueue,
    Held,
    Waiting,
    TransactionalQueue,
}

const PLACES: [Place; 5] = [
    Place::MarketingQueue,
    Place::DelayQueue,
    Place::Held,
    Place::Waiting,
    Place::TransactionalQueue,
];

impl Place {
    fn account(self) -> String {
        format!("{self:?}")
    }

    /// One whose jobs are held has a budget that is always used up; what waits comes back at its
    /// budget's rate, and is soon over.
    fn budget(self) -> i32 {
        match self {
            Self::Held => 5,
            Self::Waiting => 1_000,
            _ => 120,
        }
    }

    fn offer(self, number: usize, later: &str) -> Offer {
        let (account, id) = (self.account(), format!("{self:?}-{number}"));
        let offer = match self {
            Self::Held | Self::TransactionalQueue => Offer::otp(&account, id),
            _ => Offer::marketing(&account, id),
        };
        let offer = offer.with("to", RECIPIENT).queued_now();
        if self == Self::Waiting {
            offer.with("not_before", later)
        } else {
            offer
        }
    }

    async fn publish(self, publisher: &Publisher, later: &str) {
        let offers: Vec<_> = (0..JOBS).map(|number| self.offer(number, later)).collect();
        if self == Self::DelayQueue {
            publisher.publish_all_to("marketing.shed", &offers).await;
        } else {
            publisher.publish_all(&offers).await;
        }
    }
}

async fn opt_out_everywhere(records: &Records) -> Instant {
    let rows = PLACES.map(|place| format!("('{}', '{RECIPIENT}', 'all')", place.account()));
    let insert = format!("INSERT INTO suppressions VALUES {}", rows.join(", "));
    records.commit(&insert).await
}

/// F5-09: none whose look-up began after the commit goes out, wherever it was; and none is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_opt_out_stops_everything_that_is_on_its_way() {
    let _alone = heavy().await;
    let (scene, database) = Scene::with_database("optout").await;
    // Few slots and a slow carrier: at any moment some jobs are on their way, not only when windows
    // open.
    let scene = scene.set("CARRIERS__DEFAULT__MAX_IN_FLIGHT", 4);
    scene.stub.set_latency(Duration::from_millis(25));
    let records = Records::of(database.pool());
    for place in PLACES {
        records.account(&place.account(), place.budget()).await;
    }
    let cluster = Cluster::start(2, &scene.config).await;
    let events = scene.events().await;
    let publisher = scene.publisher().await;
    let later = (jiff::Timestamp::now() + Duration::from_secs(12)).to_string();
    Place::Waiting.publish(&publisher, &later).await;
    let all_wait = async || records.waiting_for("not_before").await == JOBS;
    eventually("a thousand jobs wait", 10 * SECOND, all_wait).await;
    for place in PLACES.into_iter().filter(|place| *place != Place::Waiting) {
        place.publish(&publisher, &later).await;
    }
    let flowing = async || {
        let went = scene.stub.arrivals();
        let flows = |place: &Place| went.iter().any(|one| one.account == place.account());
        PLACES.iter().filter(|place| flows(place)).count() == PLACES.len() - 1
    };
    eventually("all other groups flow", 10 * SECOND, flowing).await;

    assert_eq!(
        records.waiting_for("not_before").await,
        JOBS,
        "not yet released"
    );
    let committed = opt_out_everywhere(&records).await;
    let before = scene.stub.count();
    records
        .await_entries(PLACES.len() * JOBS, 60 * SECOND)
        .await;

    let arrivals = scene.stub.arrivals();
    let after = arrivals.iter().filter(|one| one.at > committed);
    let late: Vec<_> = after
        .clone()
        .filter(|one| one.at > committed + UNDER_WAY)
        .collect();
    let last = after.clone().map(|one| one.at - committed).max();
    let refused = records.ended("refused", "opted_out").await;
    println!(
        "figure: opt_out jobs={} before={before} after_commit={} last_after_ms={} refused={refused} fallbacks={}",
        PLACES.len() * JOBS,
        after.count(),
        last.unwrap_or_default().as_millis(),
        cluster.count(FALLBACKS, &[]).await,
    );
    assert!(late.is_empty(), "after the opt-out: {late:?}");
    let waited = Place::Waiting.account();
    assert!(arrivals.iter().all(|one| one.account != waited));
    assert!(refused >= 3 * JOBS, "{refused} had not gone before");
    assert_eq!(arrivals.len() + refused, PLACES.len() * JOBS);
    assert_eq!(records.ended("dispatched", "").await, arrivals.len());
    let told = events.ends();
    let opted_out = ("refused".to_owned(), "opted_out".to_owned());
    assert_eq!((told.len(), told[&opted_out]), (2, refused));
    assert_eq!(records.waiting().await, 0);
    scene.assert_drained().await;
    cluster.stop().await;
    scene.end().await;
}
