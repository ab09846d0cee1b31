//! Whatever interrupts a replay, each message is in the dead queue or in its lane's.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{LIMIT, Yard, job, references};
use crate::support::eventually;
use crate::support::worker::signal;

const COUNT: usize = 400;

async fn filled(name: &str) -> Yard {
    let yard = Yard::new(name).await;
    for number in 0..COUNT {
        yard.bury(job(&format!("j-{number}")), "undecodable", 5)
            .await;
    }
    yard
}

/// Expects every message to be somewhere, and gives how many are in the lane's queue.
async fn everything_is_there(yard: &Yard) -> (usize, usize) {
    let dead = yard.take_all("dead").await;
    let sent = yard.take_all("marketing").await;
    let all: BTreeSet<_> = dead
        .iter()
        .chain(&sent)
        .map(|taken| taken.body.clone())
        .collect();
    assert_eq!(all.len(), COUNT, "{} dead, {} sent", dead.len(), sent.len());
    (dead.len(), sent.len())
}

#[tokio::test]
async fn a_replay_that_is_killed_again_and_again_loses_nothing() {
    let yard = filled("dead-killed").await;
    for round in 0_u64..8 {
        let mut child = yard.spawn(&["replay", "--all"]);
        // Anywhere between connecting and being done.
        tokio::time::sleep(Duration::from_millis(30 + round * 37)).await;
        child.kill().await.unwrap();
    }
    // What the last one held may return while the next one is at work, which leaves it for later.
    eventually("everything is replayed", LIMIT, async || {
        yard.run(&["replay", "--all"], 0).await;
        yard.queues.ready("dead").await == 0 && yard.list(&[]).await.is_empty()
    })
    .await;
    let (_, sent) = everything_is_there(&yard).await;
    println!("figure: {sent} sent for {COUNT} messages after 8 kills");
    yard.end().await;
}

#[tokio::test]
async fn a_signal_ends_it_between_messages() {
    let yard = filled("dead-signal").await;
    let child = yard.spawn(&["replay", "--all", "--json"]);
    let pid = child.id().unwrap();
    // In the midst of it, on most machines; what must hold holds before and after as well.
    tokio::time::sleep(Duration::from_millis(250)).await;
    signal(pid, "INT");
    let output = tokio::time::timeout(LIMIT, child.wait_with_output()).await;
    let output = output.unwrap().unwrap();
    if let Ok(report) = serde_json::from_slice::<serde_json::Value>(&output.stdout) {
        let done = usize::try_from(report["done"].as_u64().unwrap()).unwrap();
        yard.holds("marketing", done).await;
        yard.holds("dead", COUNT - done).await;
    }
    let (dead, sent) = everything_is_there(&yard).await;
    assert_eq!(dead + sent, COUNT, "none of them twice");
    yard.end().await;
}

#[tokio::test]
async fn two_replays_at_once_send_each_message_once() {
    let yard = filled("dead-both").await;
    let both = [&["replay", "--all"][..], &["replay", "--all"]];
    let both = both.map(|arguments| yard.output(arguments));
    for output in futures_util::future::join_all(both).await {
        assert_eq!(output.status.code(), Some(0));
    }
    assert_eq!(everything_is_there(&yard).await, (0, COUNT));
    yard.end().await;
}

#[tokio::test]
async fn a_replay_whose_exchange_is_gone_keeps_everything_and_says_so() {
    let yard = filled("dead-gone").await;
    let send = format!("{}.send", yard.prefix);
    let options = lapin::options::ExchangeDeleteOptions::default();
    yard.channel
        .exchange_delete(send.into(), options)
        .await
        .unwrap();
    let (out, _) = yard.run(&["replay", "--all"], 1).await;
    assert!(
        out.contains("stopped: ") && out.contains("run it again"),
        "{out}"
    );
    assert_eq!(references(&yard).await.len(), COUNT);
    assert_eq!(everything_is_there(&yard).await, (COUNT, 0));
    yard.end().await;
}
