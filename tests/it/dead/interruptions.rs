//! Whatever interrupts a replay, each message is in the dead queue or in its lane's.

use std::collections::BTreeSet;

use super::{LIMIT, Yard, references};
use crate::support::eventually;
use crate::support::worker::signal;

/// So many that a replay is not done before somebody can interrupt it.
const MANY: usize = 10_000;

/// Enough where nothing interrupts it.
const SOME: usize = 400;

/// When so many more have arrived in the lane, a replay is in the midst of it.
const BEGUN: usize = 300;

async fn filled(name: &str, count: usize) -> Yard {
    let yard = Yard::new(name).await;
    yard.fill(count, |_| "undecodable").await;
    yard
}

/// Expects every message to be somewhere, and gives how many are in the two queues.
async fn everything_is_there(yard: &Yard, count: usize) -> (usize, usize) {
    let dead = yard.take_all("dead").await;
    let sent = yard.take_all("marketing").await;
    let all: BTreeSet<_> = dead.iter().chain(&sent).map(|taken| &taken.body).collect();
    assert_eq!(all.len(), count, "{} dead, {} sent", dead.len(), sent.len());
    (dead.len(), sent.len())
}

#[tokio::test]
async fn a_replay_that_is_killed_again_and_again_loses_nothing() {
    let yard = filled("dead-killed", MANY).await;
    let mut in_the_middle = 0;
    for _ in 0..5 {
        let before = yard.queues.ready("marketing").await;
        let mut child = yard.spawn(&["replay", "--all"]);
        eventually("it is at work, or done", LIMIT, async || {
            child.try_wait().unwrap().is_some()
                || yard.queues.ready("marketing").await >= before + BEGUN
        })
        .await;
        if child.try_wait().unwrap().is_some() {
            // What the one before held was not back yet, or all of it is replayed.
            continue;
        }
        child.kill().await.unwrap();
        let sent = yard.queues.ready("marketing").await;
        in_the_middle += usize::from((1..MANY).contains(&sent));
    }
    assert!(in_the_middle > 0, "no kill came in the midst of a replay");
    // What the last one held may return while the next one is at work, which leaves it for later.
    eventually("everything is replayed", LIMIT, async || {
        yard.run(&["replay", "--all"], 0).await;
        yard.queues.ready("dead").await == 0 && yard.list(&[]).await.is_empty()
    })
    .await;
    let (_, sent) = everything_is_there(&yard, MANY).await;
    println!("figure: {sent} sent for {MANY} messages, {in_the_middle} kills in the midst");
    yard.end().await;
}

#[tokio::test]
async fn a_signal_ends_it_between_batches_and_the_exit_code_says_which() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let yard = filled("dead-signal", MANY).await;
        let child = yard.spawn(&["replay", "--all", "--json"]);
        eventually("it is at work", LIMIT, async || {
            yard.queues.ready("marketing").await >= BEGUN
        })
        .await;
        signal(child.id().unwrap(), name);
        let output = tokio::time::timeout(LIMIT, child.wait_with_output()).await;
        let output = output.unwrap().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["stopped_by"], "told to stop");
        let done = usize::try_from(report["done"].as_u64().unwrap()).unwrap();
        assert!((1..MANY).contains(&done), "in the middle of it: {report}");
        yard.holds("marketing", done).await;
        yard.holds("dead", MANY - done).await;
        let everywhere = everything_is_there(&yard, MANY).await;
        assert_eq!(everywhere, (MANY - done, done), "none of them twice");
        yard.end().await;
    }
}

#[tokio::test]
async fn two_replays_at_once_send_each_message_once() {
    let yard = filled("dead-both", SOME).await;
    let both = [&["replay", "--all"][..], &["replay", "--all"]];
    let both = both.map(|arguments| yard.output(arguments));
    for output in futures_util::future::join_all(both).await {
        assert_eq!(output.status.code(), Some(0));
    }
    assert_eq!(everything_is_there(&yard, SOME).await, (0, SOME));
    yard.end().await;
}

#[tokio::test]
async fn a_replay_whose_exchange_is_gone_keeps_everything_and_says_so() {
    let yard = filled("dead-gone", SOME).await;
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
    assert_eq!(references(&yard).await.len(), SOME);
    assert_eq!(everything_is_there(&yard, SOME).await, (SOME, 0));
    yard.end().await;
}
