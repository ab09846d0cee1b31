//! The whole chain of gates and limits, in both lanes: what becomes of a job that each of them turns
//! away, in which order they decide, and that what one of them turns away has used nothing of
//! another. The same table as in the simulation, in one worker, each case with an account of its own.

mod cases;
mod world;

use std::time::Duration;

use tokio::time::sleep;

use crate::support::eventually;
use cases::cases;
use world::World;

const RECIPIENT: &str = "+447700900001";
const SENDER: &str = "+447700900777";
const LANES: [&str; 2] = ["transactional", "marketing"];
const PATIENCE: Duration = Duration::from_secs(20);

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
