//! How long one-time passwords take beside a backlog.

use std::time::Duration;

use crate::Options;
use crate::figure::Figure;
use crate::stage::{HOT, QUIET, SECOND, Stage, backlog, millis, stop};
use crate::support::jobs::Offer;
use crate::support::scene::quantile;

/// Passwords per second.
const RATE: u32 = 15;

/// Another account's, beside a backlog in the lane of passwords.
pub async fn measure_strangers(options: Options) -> Vec<Figure> {
    let stage = Stage::new("strangers").await;
    let cluster = stage.start(1, &stage.config()).await;
    let passwords = options.or_quick(20, 10);
    let offers = backlog(options.backlog(), HOT, "transactional");
    let (during, flooded) =
        tokio::join!(took(&stage, QUIET, "early", passwords), stage.flood(offers));
    println!("  the flood took {:.1} s", flooded.as_secs_f64());
    let waiting = took(&stage, QUIET, "late", passwords).await;
    stop(cluster).await;
    let seconds = options.or_quick(20, 10);
    let p = |took: &[Duration], share| millis(quantile(took, share));
    let what = "another account's passwords beside a backlog of passwords";
    let note = format!(
        "p50 {:.1}, longest {:.1} ms; {} in {seconds} s",
        p(&waiting, 0.5),
        p(&waiting, 1.0),
        waiting.len()
    );
    let while_published = format!(
        "p50 {:.1}, longest {:.1} ms; the flood took {:.1} s",
        p(&during, 0.5),
        p(&during, 1.0),
        flooded.as_secs_f64()
    );
    vec![
        Figure::new(format!("{what}, p99"), p(&waiting, 0.99), "ms")
            .at_most(50.0)
            .note(note),
        Figure::new(
            "the same from the backlog's first job on, p99",
            p(&during, 0.99),
            "ms",
        )
        .note(while_published),
    ]
}

/// The account's own, while its marketing backlog drains, beside those of a worker with nothing else
/// to do. Rounds alternate, because a machine's speed drifts.
pub async fn measure_own(options: Options) -> Vec<Figure> {
    let (mut idle, mut draining) = (Vec::new(), Vec::new());
    let seconds = options.or_quick(40, 10);
    for round in 1..=options.or_quick(4, 2) {
        let stage = Stage::new("own").await;
        let cluster = stage.start(1, &stage.config()).await;
        took(&stage, HOT, "warm-up", 2).await;
        let alone = took(&stage, HOT, "idle", seconds).await;
        let offers = backlog(options.backlog(), HOT, "marketing");
        stage.flood_and_settle(offers, &cluster).await;
        let beside = took(&stage, HOT, "beside", seconds).await;
        stop(cluster).await;
        let p99 = |took: &[Duration]| millis(quantile(took, 0.99));
        println!(
            "  round {round}: p99 {:.1} ms idle, {:.1} ms draining",
            p99(&alone),
            p99(&beside)
        );
        idle.extend(alone);
        draining.extend(beside);
    }
    let p = |took: &[Duration], share| millis(quantile(took, share));
    let note = format!(
        "p99 {:.1} / {:.1} ms, p50 {:.1} / {:.1} ms, {} passwords each",
        p(&draining, 0.99),
        p(&idle, 0.99),
        p(&draining, 0.5),
        p(&idle, 0.5),
        idle.len()
    );
    let what = "an account's own passwords while its marketing drains / while idle, p99";
    let ratio = p(&draining, 0.99) / p(&idle, 0.99);
    vec![Figure::new(what, ratio, "").at_most(1.5).note(note)]
}

/// How long each of an account's passwords took to the carrier, over so many seconds.
async fn took(stage: &Stage, account: &str, name: &str, seconds: u32) -> Vec<Duration> {
    let count = usize::try_from(RATE * seconds).expect("few");
    let offers = Offer::many(count, name, |id| Offer::otp(account, id));
    let publisher = stage.scene.publisher().await;
    let left_at = publisher.publish_at(RATE, &offers).await;
    let arrived = async || {
        left_at
            .keys()
            .all(|id| stage.scene.stub.first(id).is_some())
    };
    crate::support::eventually("the passwords arrive", 60 * SECOND, arrived).await;
    stage.scene.stub.latencies(&left_at)
}
