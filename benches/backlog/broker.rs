//! What the broker does while jobs wait, beside what it does while none do.

use tokio::time::Instant;

use crate::Options;
use crate::figure::Figure;
use crate::stage::{HOT, QUIET, SECOND, Stage, backlog, stop};
use crate::support::flow::Flow;
use crate::support::jobs::{Offer, Publisher};
use crate::support::worker::{Cluster, declare};

/// Jobs that are published, and sent, per second: the ceiling of the account with the backlog.
const RATE: u32 = 80;

/// In both cases the same is published and sent; only in one of them many wait. Rounds alternate.
pub async fn measure(options: Options) -> Vec<Figure> {
    let (mut waiting, mut none) = (Vec::new(), Vec::new());
    for round in 1..=options.or_quick(3, 1) {
        let stage = Stage::new("broker").await;
        let config = stage.config();
        declare(&config).await;
        let cluster = stage.start(1, &config).await;
        let publisher = stage.scene.publisher().await;
        // Several accounts, so that none of them meets its ceiling.
        none.push(load(&stage, &cluster, &publisher, "none", options).await);
        let offers = backlog(options.backlog(), HOT, "marketing");
        stage.flood_and_settle(offers, &cluster).await;
        waiting.push(load(&stage, &cluster, &publisher, "waiting", options).await);
        stop(cluster).await;
        println!(
            "  round {round}: {:.3} of a core while jobs wait, {:.3} while none do",
            waiting[round - 1],
            none[round - 1]
        );
    }
    let median = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    let what = "broker's processor time while the backlog waits / while none waits, at 80/s";
    let details = format!(
        "{:.3} and {:.3} of a core (medians of {} rounds)",
        median(&waiting),
        median(&none),
        none.len()
    );
    let ratio = median(&waiting) / median(&none);
    vec![Figure::new(what, ratio, "").at_most(1.3).note(details)]
}

/// The broker's share of a core while jobs are published and sent.
#[expect(clippy::cast_precision_loss, reason = "a few thousand at most")]
async fn load(
    stage: &Stage,
    cluster: &Cluster,
    publisher: &Publisher,
    name: &str,
    options: Options,
) -> f64 {
    let seconds = options.or_quick(30, 10);
    let count = RATE as usize * seconds;
    let offers = Offer::many(count, name, |id| {
        let half = id.ends_with(['0', '2', '4', '6', '8']);
        let quiet = format!("{QUIET}-{}", u8::from(half));
        let account = if name == "waiting" { HOT } else { &quiet };
        Offer::marketing(account, id)
    });
    // What came just before is done with.
    tokio::time::sleep(2 * SECOND).await;
    let (began, cpu) = (Instant::now(), stage.rabbit.cpu());
    let before = Flow::of(cluster, "marketing").await;
    publisher.publish_at(RATE, &offers).await;
    let used = stage.rabbit.cpu().saturating_sub(cpu);
    let flow = Flow::of(cluster, "marketing").await - before;
    let sent = flow.dispatched as f64 / began.elapsed().as_secs_f64();
    println!("  {name}: {sent:.1} sent per second, {} sheds", flow.sheds);
    used.as_secs_f64() / began.elapsed().as_secs_f64()
}
