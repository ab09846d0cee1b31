//! How much of its ceiling an account uses while its backlog drains.

use tokio::time::sleep;

use crate::Options;
use crate::figure::Figure;
use crate::stage::{CEILING, HOT, SECOND, Stage, backlog};
use crate::support::flow::Flow;
use crate::support::watch::Window;
use crate::support::worker::FALLBACKS;

pub async fn measure(options: Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for workers in [1, 4] {
        figures.extend(with(workers, options).await);
    }
    figures
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand at most")]
async fn with(workers: usize, options: Options) -> Vec<Figure> {
    let stage = Stage::new("ceiling").await;
    let cluster = stage.start(workers, &stage.config()).await;
    let offers = backlog(options.backlog(), HOT, "marketing");
    stage.flood_and_settle(offers, &cluster).await;
    let before = (
        cluster.count(FALLBACKS, &[]).await,
        Flow::of(&cluster, "marketing").await,
    );
    let watch = stage.scene.watch_of(HOT).await;
    sleep(options.or_quick(30, 10) * SECOND).await;
    let windows = watch.finish().await;
    let fallbacks = cluster.count(FALLBACKS, &[]).await - before.0;
    let flow = Flow::of(&cluster, "marketing").await - before.1;
    cluster.stop().await;
    // The first may have begun before the watch, and the last goes on after it.
    let whole = &windows[1..windows.len() - 1];
    let used =
        whole.iter().map(|window| window.count).sum::<u64>() as f64 / whole.len() as f64 / CEILING;
    let highest = whole.iter().map(|window| window.count).max();
    let lowest = whole.iter().map(|window| window.count).min();
    let note = format!(
        "{} windows of {:?} to {:?}; {} sheds",
        whole.len(),
        lowest.unwrap_or(0),
        highest.unwrap_or(0),
        flow.sheds
    );
    let name = |what: &str| format!("{what}, {workers} worker(s)");
    vec![
        Figure::new(name("share of the ceiling used per window"), used, "")
            .at_least(0.99)
            .note(note),
        Figure::new(
            name("share of the ceiling used in wall time"),
            in_time(whole),
            "",
        ),
        Figure::new(
            name("highest window over the ceiling"),
            highest.unwrap_or(0) as f64 / CEILING,
            "",
        )
        .at_most(1.0),
        Figure::new(name("decisions without Redis"), fallbacks as f64, "").at_most(0.0),
    ]
}

/// Between windows nothing is counted: how much was, of what seconds that follow each other without
/// a gap would allow.
#[expect(clippy::cast_precision_loss, reason = "a few thousand at most")]
fn in_time(windows: &[Window]) -> f64 {
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
        return 0.0;
    };
    let seconds = last.opened.duration_since(first.opened).as_secs_f64();
    let counted: u64 = windows[..windows.len() - 1]
        .iter()
        .map(|one| one.count)
        .sum();
    counted as f64 / seconds / CEILING
}
