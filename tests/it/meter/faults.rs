//! A real Redis goes away in every way that it can, and comes back.

use std::sync::Arc;
use std::time::Duration;

use lanekeeper::dispatch::ports::{Meter, TryResult};
use lanekeeper::domain::{Lane, MeterMode, Verdict};
use lanekeeper::meter::{Failover, FailoverOptions, RedisOptions, RedisStore, StoreError};
use lanekeeper::telemetry::Telemetry;
use tokio::time::{Instant, sleep};

use super::world::*;
use crate::support::redis::RedisServer;

/// A decision takes less than 50 ms, as the tests under paused time show to the millisecond. Here a
/// busy machine may add as much again, and now and then a stall.
const IN_TIME: Duration = Duration::from_millis(100);
const STALL: Duration = Duration::from_millis(400);
/// So many decisions in a row are shared again.
const EXACT: usize = 20;
const BACK_WITHIN: Duration = Duration::from_secs(3);

/// The window that this process has last admitted something in.
#[derive(Clone, Copy)]
struct Window {
    mode: MeterMode,
    ends: Instant,
    passed: usize,
}

struct Rig {
    server: RedisServer,
    meter: Failover<RedisStore>,
    telemetry: Telemetry,
    local_decisions: u64,
    took: Vec<Duration>,
    window: Option<Window>,
}

impl Rig {
    async fn new() -> Self {
        let server = RedisServer::start().await;
        let url = server.url();
        let mut rig = Self::over(server, &url);
        rig.until_exact().await;
        rig
    }

    fn over(server: RedisServer, url: &str) -> Self {
        let telemetry = Telemetry::unexported();
        let meter = Failover::new(
            RedisStore::new(RedisOptions::at(url)).unwrap(),
            FailoverOptions::default(),
            Arc::new(WallClock),
            telemetry.clone(),
        );
        Self {
            server,
            meter,
            telemetry,
            local_decisions: 0,
            took: Vec::new(),
            window: None,
        }
    }

    /// Offers new jobs: how many are admitted, and by whose counter.
    async fn offer(&mut self, lane: Lane, count: usize) -> (usize, MeterMode) {
        let start = Instant::now();
        let asked = request("acct", 100, jobs(lane, count));
        let answer = self.meter.admit(vec![asked]).await.remove(0);
        self.took.push(start.elapsed());
        if answer.mode == MeterMode::Local {
            self.local_decisions += count as u64;
        }
        let passed = admitted(&answer.verdicts);
        if passed > 0 {
            self.note_window(Window {
                mode: answer.mode,
                ends: Instant::now() + answer.counter.window_left,
                passed,
            });
        }
        (passed, answer.mode)
    }

    /// No window holds more than one budget, none of the same counter begins before the last one
    /// has ended, and no local one is left before its end.
    fn note_window(&mut self, mut new: Window) {
        if let Some(last) = self.window {
            let left_local = last.mode == MeterMode::Local && new.mode == MeterMode::Shared;
            if left_local {
                assert!(Instant::now() + STALL > last.ends, "left a local window");
            } else if new.ends < last.ends + Duration::from_millis(500) {
                new.passed += last.passed;
            } else {
                let begins = new.ends.checked_sub(Duration::from_secs(1)).unwrap();
                assert!(begins + STALL > last.ends, "windows overlap");
            }
        }
        assert!(new.passed <= 100, "{} in one window", new.passed);
        self.window = Some(new);
    }

    /// Offers far more than the budget for a while: nothing but local decisions.
    async fn endure(&mut self, time: Duration) {
        let end = Instant::now() + time;
        let mut passed = 0;
        while Instant::now() < end {
            let (count, mode) = self.offer(Transactional, 40).await;
            assert_eq!(mode, MeterMode::Local);
            passed += count;
            sleep(Duration::from_millis(10)).await;
        }
        assert!(passed > 0, "nothing passed");
    }

    /// Offers until decisions are shared, and stay so.
    async fn until_exact(&mut self) {
        let start = Instant::now();
        let mut in_a_row = 0;
        while in_a_row < EXACT {
            let (_, mode) = self.offer(Marketing, 1).await;
            in_a_row = if mode == MeterMode::Shared {
                in_a_row + 1
            } else {
                0
            };
            assert!(
                start.elapsed() < BACK_WITHIN,
                "not back: {:?}",
                self.reasons()
            );
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Back in time, each local decision counted, all decisions in time, and no key left that never
    /// expires.
    async fn recovers(&mut self) {
        self.until_exact().await;
        assert_eq!(self.fallbacks(), self.local_decisions);
        self.took.sort();
        let most = self.took[self.took.len() * 95 / 100];
        assert!(most < IN_TIME, "took {most:?}");
        let longest = self.took.last().unwrap();
        assert!(*longest < STALL, "took {longest:?}");
        let keys = self
            .server
            .cli(&["--scan", "--pattern", "lanekeeper:*"])
            .await;
        for key in keys.lines() {
            assert_ne!(self.server.cli(&["PTTL", key]).await, "-1", "{key}");
        }
    }

    fn fallbacks(&self) -> u64 {
        self.reasons().iter().map(|(_, count)| count).sum()
    }

    /// How many decisions fell open, by reason.
    fn reasons(&self) -> Vec<(&'static str, u64)> {
        let counts = &self.telemetry.counts().fallbacks;
        let count = |why: StoreError| counts.get(0, why as usize) + counts.get(1, why as usize);
        StoreError::ALL
            .map(|why| (why.as_str(), count(why)))
            .to_vec()
    }

    fn saw(&self, why: StoreError) -> bool {
        !self.reasons().contains(&(why.as_str(), 0))
    }
}

#[tokio::test]
async fn stopped_and_started_again() {
    let mut rig = Rig::new().await;
    rig.server.stop().await;
    rig.endure(Duration::from_millis(1_500)).await;
    assert!(rig.saw(StoreError::Unreachable));
    rig.server.restart().await;
    rig.recovers().await;
}

#[tokio::test]
async fn away_from_the_very_start() {
    let mut server = RedisServer::start().await;
    let url = server.url();
    server.stop().await;
    let mut rig = Rig::over(server, &url);
    rig.endure(Duration::from_millis(1_200)).await;
    rig.server.restart().await;
    rig.recovers().await;
}

#[tokio::test]
async fn frozen_and_thawed() {
    let mut rig = Rig::new().await;
    rig.server.freeze();
    rig.endure(Duration::from_millis(1_500)).await;
    assert!(rig.saw(StoreError::TimedOut));
    rig.server.thaw();
    rig.recovers().await;
}

#[tokio::test]
async fn a_replica_for_a_while() {
    let mut rig = Rig::new().await;
    rig.server.cli(&["REPLICAOF", "127.0.0.1", "1"]).await;
    rig.endure(Duration::from_millis(1_200)).await;
    assert!(rig.saw(StoreError::ReadOnly));
    rig.server.cli(&["REPLICAOF", "NO", "ONE"]).await;
    rig.recovers().await;
}

#[tokio::test]
async fn out_of_memory() {
    let mut rig = Rig::new().await;
    rig.server.cli(&["CONFIG", "SET", "maxmemory", "1"]).await;
    rig.endure(Duration::from_millis(1_200)).await;
    assert!(rig.saw(StoreError::ReadOnly));
    rig.server.cli(&["CONFIG", "SET", "maxmemory", "0"]).await;
    rig.recovers().await;
}

#[tokio::test]
async fn a_wrong_password_at_the_start() {
    for credentials in ["", ":wrong@", "nobody:wrong@"] {
        let server = RedisServer::start_with(&["--requirepass", "right"]).await;
        let url = format!("redis://{credentials}127.0.0.1:{}", server.port());
        let mut rig = Rig::over(server, &url);
        rig.endure(Duration::from_millis(600)).await;
        assert!(rig.saw(StoreError::Denied), "{credentials}");
    }
}

#[tokio::test]
async fn a_password_set_and_lifted_while_running() {
    let mut rig = Rig::new().await;
    rig.server
        .cli(&["CONFIG", "SET", "requirepass", "later"])
        .await;
    rig.server
        .cli(&["-a", "later", "CLIENT", "KILL", "TYPE", "normal"])
        .await;
    rig.endure(Duration::from_millis(1_200)).await;
    assert!(rig.saw(StoreError::Denied));
    rig.server
        .cli(&["-a", "later", "CONFIG", "SET", "requirepass", ""])
        .await;
    rig.recovers().await;
}

#[tokio::test]
async fn a_missing_right() {
    let server = RedisServer::start().await;
    server
        .cli(&[
            "ACL", "SETUSER", "keeper", "on", ">pass", "~*", "+@all", "-psetex", "-set",
        ])
        .await;
    let url = format!("redis://keeper:pass@127.0.0.1:{}", server.port());
    let mut rig = Rig::over(server, &url);
    rig.endure(Duration::from_millis(600)).await;
    assert!(rig.saw(StoreError::Denied));
    rig.server.cli(&["ACL", "SETUSER", "keeper", "+@all"]).await;
    rig.recovers().await;
}

#[tokio::test]
async fn loading_its_data() {
    let loading = [
        "--enable-debug-command",
        "yes",
        "--loading-process-events-interval-bytes",
        "1024",
    ];
    let server = RedisServer::start_with(&loading).await;
    server.cli(&["DEBUG", "POPULATE", "20000"]).await;
    server
        .cli(&["CONFIG", "SET", "key-load-delay", "100"])
        .await;
    let url = server.url();
    let mut rig = Rig::over(server, &url);
    rig.until_exact().await;
    // Reads its own data back, with a delay for each key: about two seconds.
    let port = rig.server.port().to_string();
    let mut reload = tokio::process::Command::new("redis-cli")
        .args(["-p", &port, "DEBUG", "RELOAD"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    sleep(Duration::from_millis(300)).await;
    rig.endure(Duration::from_millis(500)).await;
    assert!(rig.saw(StoreError::Failed) || rig.saw(StoreError::TimedOut));
    assert!(reload.wait().await.unwrap().success());
    rig.recovers().await;
}

#[tokio::test]
async fn losing_its_memory_or_its_scripts_is_no_outage() {
    let mut rig = Rig::new().await;
    for words in [&["FLUSHALL"][..], &["SCRIPT", "FLUSH"][..]] {
        rig.server.cli(words).await;
        // A server that has lost its memory forgets one window.
        rig.window = None;
        for _ in 0..10 {
            rig.offer(Marketing, 10).await;
        }
    }
    // A busy machine may let a decision time out; an error would be another matter.
    let errors = rig
        .reasons()
        .into_iter()
        .filter(|(why, _)| *why != "timed_out");
    assert_eq!(errors.map(|(_, count)| count).sum::<u64>(), 0);
}

#[tokio::test]
async fn what_was_sent_meanwhile_is_known_everywhere_afterwards() {
    let mut rig = Rig::new().await;
    let tried = jobs(Transactional, 3);
    let answer = rig
        .meter
        .admit(vec![request("acct", 100, tried.clone())])
        .await
        .remove(0);
    assert_eq!(admitted(&answer.verdicts), 3);
    rig.server.freeze();
    let ends = vec![
        conclusion(&tried[0], sent(Some("ref"))),
        conclusion(&tried[1], TryResult::NotSent),
    ];
    rig.meter.conclude(ends).await;
    rig.endure(Duration::from_millis(600)).await;
    rig.server.thaw();
    rig.recovers().await;

    sleep(Duration::from_secs(1)).await;
    let other = RedisStore::new(RedisOptions::at(&rig.server.url())).unwrap();
    let copies: Vec<_> = tried.iter().map(again).collect();
    let (verdicts, _) = admit(&other, &copies).await;
    assert!(matches!(verdicts[0], Verdict::Duplicate(_)));
    assert_eq!(verdicts[1..], [PASSES, CLAIMED]);
}

#[tokio::test]
async fn a_slow_redis_costs_few_decisions_their_time_out() {
    let mut rig = Rig::new().await;
    rig.server.freeze();
    let start = Instant::now();
    for _ in 0..200 {
        rig.offer(Marketing, 1).await;
    }
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "took {:?}",
        start.elapsed()
    );
    rig.server.thaw();
    rig.recovers().await;
}
