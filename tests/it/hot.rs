//! Queues of accounts' own, on real services: how accounts come by them, what is done with them, how
//! they are given up, and that nothing is lost on the way.

mod holding;
mod interleavings;
mod life;
mod stubborn;

use std::time::Duration;

use crate::support::postgres::TestDatabase;
use crate::support::rabbit::Rabbit;
use crate::support::scene::Scene;
use crate::support::{eventually, redis_url};

const SECOND: Duration = Duration::from_secs(1);

/// A broker, a database and settings by which accounts soon get queues of their own, and soon lose
/// them: 40 messages a second, 32 of them marketing.
struct Warm {
    rabbit: Rabbit,
    database: TestDatabase,
    scene: Scene,
}

impl Warm {
    async fn start(name: &str) -> Self {
        let rabbit = Rabbit::start().await;
        let database = TestDatabase::create().await;
        let scene = Scene::on(name, rabbit.url(), redis_url()).await;
        let scene = scene
            .recorded_at(database.url())
            .set("LANES__BUDGET_PER_SECOND", 40)
            .with_own_queues()
            .set("HOT__JOBS", 20)
            .set("HOT__WITHIN_MS", 1_000)
            .set("HOT__IDLE_S", 1)
            .set("HOT__SETTLE_S", 1)
            .set("LOG__LEVEL", "debug");
        Self {
            rabbit,
            database,
            scene,
        }
    }

    /// As [`Warm::start`], but nobody loses a queue within a test's time.
    async fn lasting(name: &str) -> Self {
        let mut warm = Self::start(name).await;
        warm.scene = warm.scene.set("HOT__IDLE_S", 600);
        warm
    }

    /// Accounts' queues: lane, account, number and state, in order of their numbers.
    async fn listed(&self) -> Vec<(String, String, i64, String)> {
        let rows = "SELECT lane, account_id, number, state FROM hot_queues
            WHERE account_id IS NOT NULL ORDER BY number";
        sqlx::query_as(rows)
            .fetch_all(self.database.pool())
            .await
            .unwrap()
    }

    /// Waits for one account's queue to be open and bound; gives its name.
    async fn open_queue(&self, account: &str) -> String {
        let mut name = String::new();
        let is_open = async || {
            let listed = self.listed().await;
            let mut its = listed.iter().filter(|row| row.1 == account);
            let Some((lane, _, number, _)) = its.find(|row| row.3 == "open") else {
                return false;
            };
            name = format!("{lane}.hot.{number}");
            let source = format!("{}.send", self.scene.prefix);
            let columns = ["list_bindings", "destination_name", "source_name"];
            let mut bindings = self.rabbit.list(&columns).await.into_iter();
            bindings.any(|row| row[0].ends_with(&name) && row[1] == source)
        };
        eventually("a queue of its own", 15 * SECOND, is_open).await;
        name
    }

    /// Consumers of a queue.
    async fn consumers(&self, name: &str) -> String {
        let rows = self
            .rabbit
            .list(&["list_queues", "name", "consumers"])
            .await;
        let its = rows.into_iter().find(|row| row[0].ends_with(name));
        its.unwrap()[1].clone()
    }

    /// Queues of this kind that the broker has and that are not written down.
    async fn unlisted(&self) -> Vec<String> {
        let rows = self.rabbit.list(&["list_queues", "name"]).await;
        let listed: Vec<(String, i64)> = sqlx::query_as("SELECT lane, number FROM hot_queues")
            .fetch_all(self.database.pool())
            .await
            .unwrap();
        let name =
            |(lane, number): &(String, i64)| format!("{}.{lane}.hot.{number}", self.scene.prefix);
        let listed: Vec<_> = listed.iter().map(name).collect();
        let names = rows.into_iter().flatten();
        let hot = names.filter(|name| name.contains(".hot."));
        hot.filter(|name| !listed.contains(name)).collect()
    }
}
