//! A worker with everything that a database brings.

use deadpool_redis::redis::{Client, cmd};
use serde_json::json;

use crate::support::postgres::TestDatabase;
use crate::support::worker::{WorkerConfig, declare};
use crate::support::{redis_url, unique_prefix};
use crate::{MAX_IN_FLIGHT, PREFETCH, drained_by_a_worker, publish};

const ACCOUNTS: usize = 100;
const OPT_OUTS: usize = 500_000;

/// A database in which every gate has something to look at, and none turns a job away.
pub async fn database() -> TestDatabase {
    let database = TestDatabase::create().await;
    let statements = format!(
        "INSERT INTO accounts (account_id, budget_per_second, quiet_hours, time_zone, windows)
         SELECT 'bench-' || n, 1000000000, true, 'Europe/London', '{{\"sms\": \"00:00-24:00\"}}'
         FROM generate_series(0, {ACCOUNTS} - 1) AS n;
         INSERT INTO frequency_caps (account_id, name, channel, category, max_messages, window_seconds)
         SELECT account_id, 'daily', 'sms', 'offers', 10000, 86400 FROM accounts;
         INSERT INTO ceilings (account_id, kind, target, per_second)
         SELECT account_id, kind, target, 1000000000 FROM accounts,
             (VALUES ('number', '+447700900777'), ('service', 'svc')) AS one (kind, target);
         INSERT INTO holds (account_id, kind, target, state)
         SELECT account_id, 'campaign', 'paused-' || n, 'paused'
         FROM accounts, generate_series(0, 9) AS n;
         INSERT INTO suppressions (account_id, recipient, scope)
         SELECT 'bench-' || n % {ACCOUNTS}, '+4478' || lpad(n::text, 8, '0'), 'all'
         FROM generate_series(0, {OPT_OUTS} - 1) AS n;
         ANALYZE"
    );
    database.execute(&statements).await;
    database
}

/// Jobs per second of a worker with the whole chain.
pub async fn round(database: &TestDatabase, jobs: usize) -> f64 {
    let prefix = unique_prefix("bench-chain");
    let config = WorkerConfig::new(&prefix)
        .set("LANES__BUDGET_PER_SECOND", 1_000_000_000)
        .set("CARRIERS__DEFAULT__KIND", "sandbox")
        .set("CARRIERS__DEFAULT__MAX_IN_FLIGHT", MAX_IN_FLIGHT)
        .set("AMQP__PREFETCH", PREFETCH)
        .set("OUTCOMES__ENABLED", false)
        .set("DATABASE__URL", database.url());
    declare(&config).await;
    let key = |place| format!("transactional.{}", account(place));
    publish(&format!("{prefix}.send"), &bodies(jobs), key).await;
    let rate = drained_by_a_worker(&config, &prefix, jobs).await;
    let entered: i64 = sqlx::query_scalar("SELECT count(*) FROM ledger")
        .fetch_one(database.pool())
        .await
        .unwrap();
    assert_eq!(
        usize::try_from(entered).unwrap(),
        jobs,
        "one row for each job"
    );
    database.execute("TRUNCATE ledger").await;
    remove_keys(&prefix).await;
    rate
}

/// Caps count for a day: what a round leaves behind would make the next ones, and whoever lists the
/// server's keys, slower.
async fn remove_keys(prefix: &str) {
    let client = Client::open(redis_url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut cursor = 0_u64;
    loop {
        let mut scan = cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(format!("{prefix}*"));
        scan.arg("COUNT").arg(5_000);
        let (next, keys): (u64, Vec<String>) = scan.query_async(&mut connection).await.unwrap();
        if !keys.is_empty() {
            let mut unlink = cmd("UNLINK");
            unlink.arg(keys);
            unlink.query_async::<()>(&mut connection).await.unwrap();
        }
        if next == 0 {
            return;
        }
        cursor = next;
    }
}

/// The chain's jobs: every gate has something to look at.
pub fn bodies(jobs: usize) -> Vec<Vec<u8>> {
    (0..jobs)
        .map(|place| body(place, &account(place)))
        .collect()
}

fn account(place: usize) -> String {
    format!("bench-{}", place % ACCOUNTS)
}

fn body(place: usize, account: &str) -> Vec<u8> {
    let job = json!({
        "id": format!("job-{place}"), "account_id": account, "channel": "sms", "origin": "api",
        "to": format!("+4477{:08}", 900_000 + place), "from": "+447700900777", "service_id": "svc",
        "category": "offers", "campaign_id": format!("spring-{}", place % 7),
        "enqueued_at": jiff::Timestamp::now().to_string(),
        "body": "Your code is 123456. It is valid for five minutes.",
        "metadata": {"template": "code-7", "trace": "4bf92f3577b34da6"},
    });
    serde_json::to_vec(&job).unwrap()
}
