//! How many deliveries a job of a long backlog takes until it is sent.

use tokio::time::{Instant, sleep_until};

use crate::Options;
use crate::figure::Figure;
use crate::stage::{HOT, SECOND, Stage, backlog, per_second, stop};
use crate::support::flow::Flow;
use crate::support::worker::Cluster;

const LANE: &str = "marketing";

pub async fn measure(options: Options) -> Vec<Figure> {
    let before = before(options).await;
    let minute = options.or_quick(60, 20);
    let stage = Stage::new("deliveries").await;
    let cluster = stage.start(1, &stage.config()).await;
    let began = Instant::now();
    let offers = backlog(options.backlog(), HOT, LANE);
    let jobs = offers.len();
    let rate = per_second(jobs, stage.flood(offers).await);
    sleep_until(began + minute * SECOND).await;
    let first = Flow::of(&cluster, LANE).await;
    sleep_until(began + 2 * minute * SECOND).await;
    let second = Flow::of(&cluster, LANE).await - first;
    stop(cluster).await;
    let note = |flow: Flow| {
        format!(
            "{} deliveries, {} sent, {} sheds",
            flow.deliveries, flow.dispatched, flow.sheds
        )
    };
    let note_of_first = format!("{}; published at {rate:.0}/s", note(first));
    let (one, two) = (
        format!("deliveries per sent job, first {minute} s of {jobs} jobs"),
        format!("deliveries per sent job, next {minute} s"),
    );
    vec![
        before,
        Figure::new(one, per_job(first), "")
            .at_most(1.4)
            .note(note_of_first),
        Figure::new(two, per_job(second), "")
            .at_most(1.02)
            .note(note(second)),
    ]
}

/// As it was without queues of accounts' own.
async fn before(options: Options) -> Figure {
    let seconds = options.or_quick(20, 10);
    let stage = Stage::new("shared").await;
    let config = stage.config().set("HOT__MOST", 0);
    let cluster = Cluster::start(1, &config).await;
    let began = Instant::now();
    stage.flood(backlog(options.backlog(), HOT, LANE)).await;
    sleep_until(began + seconds * SECOND).await;
    let flow = Flow::of(&cluster, LANE).await;
    stop(cluster).await;
    let what = format!("deliveries per sent job without queues of their own, {seconds} s");
    Figure::new(what, per_job(flow), "")
}

/// How many deliveries each dispatched job took.
#[expect(clippy::cast_precision_loss, reason = "a few million at most")]
fn per_job(flow: Flow) -> f64 {
    flow.deliveries as f64 / flow.dispatched.max(1) as f64
}
