//! What Redis holds of an account, and counters that stay as they are.

use std::collections::BTreeMap;
use std::time::Duration;

use deadpool_redis::redis::aio::MultiplexedConnection;
use deadpool_redis::redis::{Client, cmd, pipe};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// The life of a counter, and the pause after which it is lengthened.
const WINDOW_MS: u64 = 1_000;
const AGAIN: Duration = Duration::from_millis(100);

/// The keys of one prefix.
pub struct Counters {
    connection: MultiplexedConnection,
    prefix: String,
}

impl Counters {
    pub async fn connect(url: &str, prefix: &str) -> Self {
        let client = Client::open(url).unwrap();
        Self {
            connection: client.get_multiplexed_async_connection().await.unwrap(),
            prefix: prefix.to_owned(),
        }
    }

    /// The name of a key of an account: its `count`, or `number:+44…`.
    pub fn key(&self, account: &str, name: &str) -> String {
        format!("{}:{{{account}}}:{name}", self.prefix)
    }

    /// Everything that is kept of an account and decided by, by the keys' names without the account.
    /// What was counted in each second is only looked at.
    pub async fn of(&self, account: &str) -> BTreeMap<String, String> {
        let mut connection = self.connection.clone();
        let start = self.key(account, "");
        let keys: Vec<String> = cmd("KEYS")
            .arg(format!("{start}*"))
            .query_async(&mut connection)
            .await
            .unwrap();
        let mut kept = BTreeMap::new();
        for key in keys {
            let name = key[start.len()..].to_owned();
            if name.starts_with("second:") {
                continue;
            }
            let value = if name.starts_with("cap:") {
                let members = cmd("ZRANGE").arg(&key).arg(0).arg(-1).to_owned();
                let members: Vec<String> = members.query_async(&mut connection).await.unwrap();
                members.join(",")
            } else {
                let value: Option<String> = cmd("GET")
                    .arg(&key)
                    .query_async(&mut connection)
                    .await
                    .unwrap();
                value.unwrap_or_default()
            };
            kept.insert(name, value);
        }
        kept
    }

    /// Sets these counters, and keeps them from ending: as if other workers went on reaching their
    /// ceilings. Nobody else's counting is undone.
    pub async fn keep(&self, counters: Vec<(String, u32)>) -> KeptCounters {
        let mut connection = self.connection.clone();
        let mut set = pipe();
        for (key, count) in &counters {
            set.cmd("SET").arg(key).arg(count).arg("PX").arg(WINDOW_MS);
        }
        let _: () = set.query_async(&mut connection).await.unwrap();
        let keeping = tokio::spawn(async move {
            let mut lengthen = pipe();
            for (key, _) in &counters {
                lengthen.cmd("PEXPIRE").arg(key).arg(WINDOW_MS);
            }
            loop {
                sleep(AGAIN).await;
                let _: () = lengthen.query_async(&mut connection).await.unwrap();
            }
        });
        KeptCounters(keeping)
    }
}

/// Counters that stay for as long as this does.
pub struct KeptCounters(JoinHandle<()>);

impl Drop for KeptCounters {
    fn drop(&mut self) {
        self.0.abort();
    }
}
