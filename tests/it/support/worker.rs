//! Real worker processes.

use std::fmt::Display;
use std::fs::File;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::{amqp_url, redis_url};

/// A worker must be ready within this; a machine that compiles at the same time is slow.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// How a worker is started: settings by their environment names.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    settings: Vec<(String, String)>,
    /// How many file descriptors it may have open.
    descriptors: Option<u32>,
}

impl WorkerConfig {
    /// On the shared services, everything under `prefix`, and the sandbox carrier.
    pub fn new(prefix: &str) -> Self {
        Self {
            settings: Vec::new(),
            descriptors: None,
        }
        .set("AMQP__URL", &amqp_url())
        .set("AMQP__PREFIX", prefix)
        .set("REDIS__URL", &redis_url())
        .set("REDIS__PREFIX", prefix)
        .set("LOG__FORMAT", "json")
        // Spare queues would pile up in the shared broker; tests that want some say so.
        .set("HOT__MOST", 0)
    }

    /// The settings as a program's environment.
    pub fn environment(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.settings.iter();
        pairs.map(|(name, value)| (&**name, &**value))
    }

    /// With the HTTP carrier.
    pub fn carrier(self, url: &str) -> Self {
        self.set("CARRIERS__DEFAULT__KIND", "http")
            .set("CARRIERS__DEFAULT__URL", url)
    }

    /// With `LANEKEEPER__<name>` set; a later value replaces an earlier one.
    pub fn set(mut self, name: &str, value: impl Display + Copy) -> Self {
        let name = format!("LANEKEEPER__{name}");
        self.settings.retain(|(known, _)| *known != name);
        self.settings.push((name, value.to_string()));
        self
    }

    /// With so many file descriptors at most.
    pub fn descriptors(mut self, most: u32) -> Self {
        self.descriptors = Some(most);
        self
    }

    /// The program, yet without its arguments.
    fn program(&self) -> Command {
        let program = env!("CARGO_BIN_EXE_lanekeeper");
        let Some(most) = self.descriptors else {
            return Command::new(program);
        };
        let mut shell = Command::new("/bin/sh");
        shell.args([
            "-c",
            &format!("ulimit -n {most}; exec \"$0\" \"$@\""),
            program,
        ]);
        shell
    }
}

/// One worker process, killed when dropped.
pub struct Worker {
    child: Child,
    pid: u32,
    ops: String,
    client: reqwest::Client,
    logs: TempDir,
}

impl Worker {
    /// Starts a worker and waits until it is ready.
    pub async fn start(config: &WorkerConfig) -> Self {
        let mut worker = Self::spawn(config);
        worker.await_ready(READY_WITHIN).await;
        worker
    }

    /// Starts a worker without waiting for anything.
    pub fn spawn(config: &WorkerConfig) -> Self {
        Self::spawn_as("worker", config)
    }

    /// Starts another command that runs until it is stopped.
    pub fn spawn_as(command: &str, config: &WorkerConfig) -> Self {
        let logs = TempDir::new().unwrap();
        let port = free_port();
        let ops = format!("127.0.0.1:{port}");
        let log = |name: &str| Stdio::from(File::create(logs.path().join(name)).unwrap());
        let child = config
            .program()
            .arg(command)
            .env_clear()
            .envs(config.settings.iter().map(|(name, value)| (name, value)))
            .env("LANEKEEPER__OPS__LISTEN", &ops)
            .env("RUST_BACKTRACE", "1")
            .stdin(Stdio::null())
            .stdout(log("stdout"))
            .stderr(log("stderr"))
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            pid: child.id().unwrap(),
            child,
            ops: format!("http://{ops}"),
            client: ops_client(),
            logs,
        }
    }

    /// Waits until it listens at an address, for a command without an ops server.
    pub async fn await_listening(&mut self, address: &str, limit: Duration) {
        let deadline = Instant::now() + limit;
        while tokio::net::TcpStream::connect(address).await.is_err() {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("it ended with {status}:\n{}", self.log());
            }
            assert!(
                Instant::now() < deadline,
                "it does not listen:\n{}",
                self.log()
            );
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until the worker says that it is ready.
    pub async fn await_ready(&mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while !self.is_ready().await {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the worker ended with {status}:\n{}", self.log());
            }
            let late = Instant::now() > deadline;
            assert!(!late, "the worker is not ready:\n{}", self.log());
            sleep(Duration::from_millis(25)).await;
        }
    }

    /// Whether `/readyz` says yes now.
    pub async fn is_ready(&self) -> bool {
        let answer = self.client.get(format!("{}/readyz", self.ops)).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// Where its ops server listens: address and port.
    pub fn ops_address(&self) -> &str {
        self.ops.trim_start_matches("http://")
    }

    /// The answer of one path of the ops server.
    pub async fn ops(&self, path: &str) -> String {
        let url = format!("{}{path}", self.ops);
        let answer = self.client.get(url).send().await.unwrap();
        answer.text().await.unwrap()
    }

    /// The sum of a metric's samples that have all these labels.
    pub async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        sum_of_samples(&self.ops("/metrics").await, name, labels)
    }

    /// The same of a metric whose values are whole numbers.
    pub async fn count(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        whole(self.metric(name, labels).await)
    }

    /// Everything that it has written so far.
    pub fn log(&self) -> String {
        let read = |name| std::fs::read_to_string(self.logs.path().join(name)).unwrap();
        read("stdout") + &read("stderr")
    }

    /// What it has written to standard error so far: its log.
    pub fn errors(&self) -> String {
        std::fs::read_to_string(self.logs.path().join("stderr")).unwrap()
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Asks it to stop.
    pub fn sigterm(&self) {
        self.signal("TERM");
    }

    /// Kills it on the spot.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Sends a signal by its name, such as `STOP`.
    pub fn signal(&self, name: &str) {
        signal(self.pid, name);
    }

    /// Waits for its end.
    pub async fn wait_exit(&mut self, limit: Duration) -> ExitStatus {
        let ended = timeout(limit, self.child.wait()).await;
        let Ok(status) = ended else {
            panic!("still running after {limit:?}:\n{}", self.log());
        };
        status.unwrap()
    }

    /// Stops it and expects it to go in order.
    pub async fn stop(mut self) {
        self.sigterm();
        let status = self.wait_exit(Duration::from_secs(30)).await;
        assert!(status.success(), "ended with {status}:\n{}", self.log());
    }

    /// The processor time that it has used so far.
    pub fn cpu(&self) -> Duration {
        processor_time(self.pid)
    }

    /// Its resident memory.
    pub fn rss_bytes(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most resident memory that it has had.
    pub fn peak_rss_bytes(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, what: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = status.lines().find(|line| line.starts_with(what));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
        kilobytes.unwrap().parse::<u64>().unwrap() * 1024
    }
}

/// Several workers with the same settings.
pub struct Cluster {
    pub workers: Vec<Worker>,
}

impl Cluster {
    /// Starts them together and waits until all are ready. One goes first, so that the others find
    /// the queues declared.
    pub async fn start(count: usize, config: &WorkerConfig) -> Self {
        let mut workers = vec![Worker::start(config).await];
        workers.extend((1..count).map(|_| Worker::spawn(config)));
        for worker in &mut workers {
            worker.await_ready(READY_WITHIN).await;
        }
        Self { workers }
    }

    /// The sum over all workers of a metric whose values are whole numbers.
    pub async fn count(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let mut sum = 0;
        for worker in &self.workers {
            sum += worker.count(name, labels).await;
        }
        sum
    }

    /// Asks all of them to stop, and waits for their orderly end.
    pub async fn stop(self) {
        self.workers.iter().for_each(Worker::sigterm);
        for worker in self.workers {
            worker.stop().await;
        }
    }
}

/// Declares the queues of a configuration by running a worker for a moment.
pub async fn declare(config: &WorkerConfig) {
    Worker::start(config).await.stop().await;
}

/// Decisions made without the shared counter.
pub const FALLBACKS: &str = "devotel_messaging_rate_limiter_fallback_total";

pub(super) fn ops_client() -> reqwest::Client {
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(5));
    client.build().unwrap()
}

/// A port below those that the system hands out by itself, so that no outgoing connection takes it.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let base = 20_000 + (std::process::id() % 100) as u16 * 100;
    loop {
        let port = base + NEXT.fetch_add(1, Relaxed) % 100;
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return port,
            Err(error) => assert_eq!(error.kind(), ErrorKind::AddrInUse),
        }
    }
}

/// The processor time that a process has used so far, in the kernel's ticks of 10 ms.
pub fn processor_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // After the program's name, which may have spaces in it; then user and system time.
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let ticks = rest.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(10 * ticks)
}

/// The shell's own `kill`: bare systems have no other.
pub fn signal(pid: u32, name: &str) {
    let command = format!("kill -{name} {pid}");
    let status = std::process::Command::new("sh")
        .args(["-c", &command])
        .status();
    assert!(status.unwrap().success(), "{command}");
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counters are small and never negative"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

fn sum_of_samples(text: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
    let samples = text.lines().filter_map(|line| line.strip_prefix(name));
    samples
        .filter(|rest| rest.starts_with(['{', ' ']))
        .filter(|rest| {
            let has =
                |(label, value): &(&str, &str)| rest.contains(&format!("{label}=\"{value}\""));
            labels.iter().all(has)
        })
        .filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

#[test]
fn samples_are_summed_by_name_and_labels() {
    let text = "# HELP a b\na_total{lane=\"x\",kind=\"p\"} 2\na_total{lane=\"y\"} 3\na_total_more 9\nb 4\n";
    assert_eq!(whole(sum_of_samples(text, "a_total", &[])), 5);
    assert_eq!(whole(sum_of_samples(text, "a_total", &[("lane", "x")])), 2);
    assert_eq!(whole(sum_of_samples(text, "b", &[])), 4);
}
