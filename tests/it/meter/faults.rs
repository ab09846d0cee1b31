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

/// A decision takes less than 50 ms; a busy machine that runs other tests may add as much again.
const IN_TIME: Duration = Duration::from_millis(100);
const BACK_WITHIN: Duration = Duration::from_secs(3);

struct Rig {
    server: RedisServer,
    meter: Failover<RedisStore>,
    telemetry: Telemetry,
    local_decisions: u64,
}

impl Rig {
    async fn new() -> Self {
        let server = RedisServer::start().await;
        let url = server.url();
        let mut rig = Self::over(server, &url);
        rig.until_shared().await;
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
        }
    }

    /// Offers new jobs: how many are admitted, and by whose counter. Every decision is in time.
    async fn offer(&mut self, lane: Lane, count: usize) -> (usize, MeterMode) {
        let start = Instant::now();
        let asked = request("acct", 100, jobs(lane, count));
        let answer = self.meter.admit(vec![asked]).await.remove(0);
        assert!(start.elapsed() < IN_TIME, "took {:?}", start.elapsed());
        if answer.mode == MeterMode::Local {
            self.local_decisions += count as u64;
        }
        (admitted(&answer.verdicts), answer.mode)
    }

    /// Offers far more than the budget for a while: nothing but local decisions, and never more
    /// than one budget in one window.
    async fn endure(&mut self, time: Duration) {
        let end = Instant::now() + time;
        let mut window: Option<(Instant, usize)> = None;
        while Instant::now() < end {
            let before = Instant::now();
            let (count, mode) = self.offer(Transactional, 40).await;
            assert_eq!(mode, MeterMode::Local);
            if count > 0 {
                let (start, sum) = match window {
                    Some((start, sum)) if before < start + Duration::from_millis(900) => {
                        (start, sum)
                    }
                    _ => (before, 0),
                };
                assert!(sum + count <= 100, "{} in one window", sum + count);
                window = Some((start, sum + count));
            }
            sleep(Duration::from_millis(10)).await;
        }
        assert!(window.is_some(), "nothing passed");
    }

    async fn until_shared(&mut self) -> Duration {
        let start = Instant::now();
        while self.offer(Marketing, 1).await.1 != MeterMode::Shared {
            assert!(start.elapsed() < BACK_WITHIN, "not back in time");
            sleep(Duration::from_millis(10)).await;
        }
        start.elapsed()
    }

    /// Back in time, exact, each local decision counted, and no key left that never expires.
    async fn recovers(&mut self) {
        self.until_shared().await;
        let counted = self.fallbacks();
        assert_eq!(counted, self.local_decisions);
        for _ in 0..20 {
            assert_eq!(self.offer(Marketing, 10).await.1, MeterMode::Shared);
        }
        assert_eq!(self.fallbacks(), counted);
        let keys = self
            .server
            .cli(&["--scan", "--pattern", "lanekeeper:*"])
            .await;
        for key in keys.lines() {
            assert_ne!(self.server.cli(&["PTTL", key]).await, "-1", "{key}");
        }
    }

    fn fallbacks(&self) -> u64 {
        let reasons = 0..StoreError::ALL.len();
        let counts = &self.telemetry.counts().fallbacks;
        reasons
            .map(|reason| counts.get(0, reason) + counts.get(1, reason))
            .sum()
    }

    fn saw(&self, why: StoreError) -> bool {
        let counts = &self.telemetry.counts().fallbacks;
        counts.get(0, why as usize) + counts.get(1, why as usize) > 0
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
    rig.until_shared().await;
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
    let before = rig.fallbacks();
    for words in [&["FLUSHALL"][..], &["SCRIPT", "FLUSH"][..]] {
        rig.server.cli(words).await;
        for _ in 0..10 {
            assert_eq!(rig.offer(Marketing, 10).await.1, MeterMode::Shared);
        }
    }
    assert_eq!(rig.fallbacks(), before);
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
