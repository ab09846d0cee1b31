//! Watches an account's counter in Redis: every window, and how far it was pushed.

use std::time::Duration;

use deadpool_redis::redis::aio::MultiplexedConnection;
use deadpool_redis::redis::{Client, pipe};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// Between two looks: far shorter than a window.
const EVERY: Duration = Duration::from_millis(1);

/// One window of the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// When it was first seen.
    pub opened: Instant,
    /// When it was last seen.
    pub seen: Instant,
    /// The count that was last seen.
    pub count: u64,
    /// How long it still lasted then.
    pub left: Duration,
}

/// The watch over one counter.
pub struct CounterWatch {
    current: watch::Receiver<Option<Window>>,
    stop: watch::Sender<bool>,
    task: JoinHandle<Vec<Window>>,
}

impl CounterWatch {
    /// The counter's key of an account under a prefix.
    pub fn key(prefix: &str, account: &str) -> String {
        format!("{prefix}:{{{account}}}:count")
    }

    /// Watches from now on.
    pub async fn start(url: &str, prefix: &str, account: &str) -> Self {
        Self::of_key(url, Self::key(prefix, account)).await
    }

    /// The same for another counter, such as that of a sender number.
    pub async fn of_key(url: &str, key: String) -> Self {
        let client = Client::open(url).unwrap();
        let connection = client.get_multiplexed_async_connection().await.unwrap();
        let (stop, stopped) = watch::channel(false);
        let (report, current) = watch::channel(None);
        let task = tokio::spawn(run(connection, key, stopped, report));
        Self {
            current,
            stop,
            task,
        }
    }

    /// The window that is open now.
    pub fn current(&self) -> Option<Window> {
        *self.current.borrow()
    }

    /// Ends the watch; every window, in order.
    pub async fn finish(self) -> Vec<Window> {
        self.stop.send(true).unwrap();
        self.task.await.unwrap()
    }
}

async fn run(
    mut connection: MultiplexedConnection,
    key: String,
    stopped: watch::Receiver<bool>,
    report: watch::Sender<Option<Window>>,
) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    let mut open = false;
    while !*stopped.borrow() {
        let (count, left) = look(&mut connection, &key).await;
        let now = Instant::now();
        match (count, windows.last_mut()) {
            (None, _) => open = false,
            // A window's remaining time only falls, and so does no count.
            (Some(count), Some(last)) if open && left <= last.left && count >= last.count => {
                (last.seen, last.count, last.left) = (now, count, left);
            }
            (Some(count), _) => {
                open = true;
                windows.push(Window {
                    opened: now,
                    seen: now,
                    count,
                    left,
                });
            }
        }
        report.send_replace(windows.last().copied().filter(|_| open));
        sleep(EVERY).await;
    }
    windows
}

async fn look(connection: &mut MultiplexedConnection, key: &str) -> (Option<u64>, Duration) {
    let mut both = pipe();
    both.atomic().cmd("GET").arg(key).cmd("PTTL").arg(key);
    let answer: (Option<u64>, i64) = both.query_async(connection).await.unwrap();
    let left = u64::try_from(answer.1).unwrap_or(0);
    (answer.0, Duration::from_millis(left))
}

#[tokio::test]
async fn windows_are_told_apart() {
    let prefix = super::unique_prefix("watch");
    let url = super::redis_url();
    let watch = CounterWatch::start(&url, &prefix, "a").await;
    let client = Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let key = CounterWatch::key(&prefix, "a");
    for count in [3, 5] {
        let mut window = pipe();
        window.cmd("SET").arg(&key).arg(1).arg("PX").arg(150);
        window.cmd("INCRBY").arg(&key).arg(count - 1);
        let _: () = window.query_async(&mut connection).await.unwrap();
        sleep(Duration::from_millis(160)).await;
    }
    let counts: Vec<u64> = watch.finish().await.iter().map(|w| w.count).collect();
    assert_eq!(counts, [3, 5]);
}
