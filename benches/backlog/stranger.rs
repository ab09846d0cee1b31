//! How long one job of another account takes while somebody publishes a backlog.

use std::time::Duration;

use tokio::time::sleep;

use crate::Options;
use crate::figure::Figure;
use crate::stage::{HOT, QUIET, SECOND, Stage, backlog, millis, stop};
use crate::support::eventually;
use crate::support::jobs::Offer;

pub async fn measure(options: Options) -> Vec<Figure> {
    let mut took = Vec::new();
    for _ in 0..options.or_quick(5, 2) {
        took.push(round(options).await);
    }
    let longest = took.iter().max().copied().unwrap_or_default();
    let all: Vec<_> = took.iter().map(|one| millis(*one).round()).collect();
    let what = "another account's marketing job, 1 s after a flood began, to the carrier: longest";
    let note = format!("each: {all:?} ms");
    vec![
        Figure::new(what, millis(longest), "ms")
            .at_most(1_000.0)
            .note(note),
    ]
}

async fn round(options: Options) -> Duration {
    let stage = Stage::new("stranger").await;
    let cluster = stage.start(1, &stage.config()).await;
    let publisher = stage.scene.publisher().await;
    let offers = backlog(options.backlog(), HOT, "marketing");
    let single = async {
        sleep(SECOND).await;
        let offer = [Offer::marketing(QUIET, "single")];
        let left_at = publisher.publish_at(1, &offer).await;
        let arrived = async || stage.scene.stub.first("single").is_some();
        eventually("the single job arrives", 120 * SECOND, arrived).await;
        stage.scene.stub.latencies(&left_at)[0]
    };
    let (flooded, took) = tokio::join!(stage.flood(offers), single);
    println!(
        "  {:.0} ms; the flood took {:.1} s",
        millis(took),
        flooded.as_secs_f64()
    );
    stop(cluster).await;
    took
}
