//! How fast the API is beside the least that an HTTP handler can do: a bare axum handler that
//! publishes the body it gets and waits for the broker's confirm.
//!
//! Rounds alternate, because a machine's speed drifts. Both servers are processes of their own, are
//! asked by the same client (kept connections, one request at a time on each), and publish to quorum
//! queues of the same broker. The API does all that it does for a message: key, request read into a
//! job, opt-outs (500,000 in the table) and holds in PostgreSQL, one decision in Redis with its claim,
//! a confirmed publish.
//! Options: `--quick`, `--requests N`, `--rounds N`, `--connections N`.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark reports by panicking, as a test does"
)]

#[path = "../tests/it/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "tests need more of it than this")]
mod support;

#[path = "http/bare.rs"]
mod bare;
#[path = "http/client.rs"]
mod client;

use std::time::Duration;

use serde_json::{Value, json};

use client::{Load, Measured};
use support::api::{ApiServer, issue_key};
use support::postgres::TestDatabase;
use support::queues::Queues;
use support::scene::quantile;
use support::worker::{WorkerConfig, declare};
use support::{amqp_url, unique_prefix};

const ACCOUNT: &str = "bench";
const OPT_OUTS: usize = 500_000;

/// Connections for the question how long one answer takes when there is little to do.
const FEW: usize = 2;

struct Options {
    requests: usize,
    rounds: usize,
    connections: usize,
}

impl Options {
    fn read(arguments: &[String]) -> Self {
        let quick = arguments.iter().any(|argument| argument == "--quick");
        let number = |name: &str| {
            let place = arguments.iter().position(|argument| argument == name)?;
            Some(arguments.get(place + 1)?.parse().expect("a number"))
        };
        Self {
            requests: number("--requests").unwrap_or(if quick { 5_000 } else { 40_000 }),
            rounds: number("--rounds").unwrap_or(3),
            connections: number("--connections").unwrap_or(64),
        }
    }
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(place) = arguments.iter().position(|one| one == bare::SERVE) {
        return bare::serve(&arguments[place + 1], &arguments[place + 2]).await;
    }
    let options = Options::read(&arguments);
    let database = database().await;
    let key = issue_key(&database, ACCOUNT).await;
    let mut rounds = Vec::new();
    println!(
        "{:>5} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8}   ({} connections; few: {FEW})",
        "round",
        "bare/s",
        "api/s",
        "bare p99",
        "api p99",
        "few bare",
        "few api",
        options.connections
    );
    for number in 1..=options.rounds {
        let bare = bare_round(&options).await;
        let api = api_round(&options, &database, &key).await;
        println!(
            "{number:>5} {:>10.0} {:>10.0} {:>8.2} {:>8.2} {:>8.2} {:>8.2}   p99 in ms",
            bare[0].per_second(),
            api[0].per_second(),
            millis(bare[0].p99()),
            millis(api[0].p99()),
            millis(bare[1].p99()),
            millis(api[1].p99()),
        );
        rounds.push([bare, api]);
    }
    report(&options, &rounds);
}

/// A database in which every gate has something to look at.
async fn database() -> TestDatabase {
    let database = TestDatabase::create().await;
    let statements = format!(
        "INSERT INTO accounts (account_id, budget_per_second, quiet_hours, time_zone, windows)
         VALUES ('{ACCOUNT}', 1000000000, true, 'Europe/London', '{{\"sms\": \"00:00-24:00\"}}');
         INSERT INTO suppressions (account_id, recipient, scope)
         SELECT '{ACCOUNT}', '+4478' || lpad(n::text, 8, '0'), 'all'
         FROM generate_series(0, {OPT_OUTS} - 1) AS n;
         ANALYZE"
    );
    database.execute(&statements).await;
    database
}

fn message() -> Value {
    json!({
        "to": "+447700900123", "from": "+447700900777", "priority": "high", "campaign_id": "spring",
        "body": "Your code is 123456. It is valid for five minutes.",
        "metadata": {"template": "code-7", "trace": "4bf92f3577b34da6"},
    })
}

async fn bare_round(options: &Options) -> [Measured; 2] {
    let server = bare::Server::start().await;
    let measured = measure(options, &server.address, "").await;
    server.stop().await;
    measured
}

async fn api_round(options: &Options, database: &TestDatabase, key: &str) -> [Measured; 2] {
    let prefix = unique_prefix("bench-api");
    let config = WorkerConfig::new(&prefix)
        .set("DATABASE__URL", database.url())
        .set("API__REQUESTS_PER_SECOND", 0);
    declare(&config).await;
    let server = ApiServer::start(&config).await;
    let measured = measure(options, &server.address, key).await;
    let sent = options.requests + few_requests(options) + client::WARM_UP * 2;
    let queues = Queues::connect(&amqp_url(), &prefix).await;
    assert_eq!(
        queues.ready("transactional.admitted").await,
        sent,
        "everything that was accepted is in the queue"
    );
    server.process.stop().await;
    queues.remove().await;
    measured
}

/// With many connections, and with few.
async fn measure(options: &Options, address: &str, key: &str) -> [Measured; 2] {
    let load = |requests, connections| Load {
        address: address.to_owned(),
        request: client::request(address, key, &message()),
        requests,
        connections,
    };
    let many = load(options.requests, options.connections).run().await;
    let few = load(few_requests(options), FEW).run().await;
    [many, few]
}

fn few_requests(options: &Options) -> usize {
    options.requests / 10
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn report(options: &Options, rounds: &[[[Measured; 2]; 2]]) {
    let of = |server: usize, load: usize, value: fn(&Measured) -> f64| {
        median(rounds.iter().map(|round| value(&round[server][load])))
    };
    let rate = |server| of(server, 0, Measured::per_second);
    let ratio = rate(1) / rate(0);
    println!(
        "median {:.0} and {:.0}: the API reaches {ratio:.2} of the bare handler",
        rate(0),
        rate(1)
    );
    let p = |server, load, share: fn(&Measured) -> f64| {
        (of(server, load, share) * 100.0).round() / 100.0
    };
    let side = |server| {
        json!({
            "per_second": rate(server).round(),
            "p50_ms": p(server, 0, |one| millis(one.p50())),
            "p99_ms": p(server, 0, |one| millis(one.p99())),
            "few_p50_ms": p(server, 1, |one| millis(one.p50())),
            "few_p99_ms": p(server, 1, |one| millis(one.p99())),
        })
    };
    let body = json!({
        "requests": options.requests,
        "rounds": options.rounds,
        "connections": options.connections,
        "few_connections": FEW,
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "bare": side(0),
        "api": side(1),
        "ratio_of_medians": (ratio * 1_000.0).round() / 1_000.0,
    });
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let folder = std::path::Path::new(&target).join("bench");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("http.json");
    std::fs::write(&file, format!("{body:#}\n")).unwrap();
    println!("written to {}", file.display());
}
