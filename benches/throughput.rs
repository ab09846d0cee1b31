//! How fast a worker is beside the least that a consumer can do on the same broker.
//!
//! Rounds alternate, because a machine's speed drifts: in each, a bare loop of the same client
//! library (consume, acknowledge with `multiple` per batch) drains a quorum queue, and then a real
//! worker process (unlimited budget, sandbox carrier, no outcome events) drains its transactional
//! queue, both preloaded with the same jobs. Then a worker with the whole chain does the same: a
//! database with 100 accounts and 500,000 opt-outs, quiet hours, a frequency cap, a ceiling of the
//! sender and one of the service for every job, and a row in the ledger for each.
//! Options: `--quick`, `--jobs N`, `--rounds N`, `--only-chain` (to look at the chain with a
//! profiler).
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark reports by panicking, as a test does"
)]

#[path = "../tests/it/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "tests need more of it than this")]
mod support;

#[path = "throughput/chain.rs"]
mod chain;

use std::time::Duration;

use futures_util::StreamExt as _;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicQosOptions, ExchangeDeclareOptions,
    ExchangeDeleteOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, ExchangeKind};
use serde_json::json;
use tokio::time::{Instant, sleep};

use support::jobs::{Offer, Publisher};
use support::queues::Queues;
use support::rabbit::connection;
use support::worker::{Worker, WorkerConfig, declare};
use support::{amqp_url, unique_prefix};

/// Unsettled deliveries per consumer, in all contestants.
const PREFETCH: u16 = 4_000;
/// Calls of the carrier at one time: a job has its slot while the gates and the meter are asked about
/// it, so that fewer would make the worker wait for its own answers.
const MAX_IN_FLIGHT: u16 = 8_000;
/// Deliveries per acknowledgement of the bare loop.
const BARE_BATCH: usize = 100;
/// Between two looks at the worker's counter. Each look costs the worker a page of metrics: at every
/// 5 ms it was a seventh of its work.
const POLL: Duration = Duration::from_millis(20);

struct Options {
    jobs: usize,
    rounds: usize,
    only_chain: bool,
}

impl Options {
    fn read() -> Self {
        let arguments: Vec<String> = std::env::args().collect();
        let quick = arguments.iter().any(|argument| argument == "--quick");
        let number = |name: &str| {
            let place = arguments.iter().position(|argument| argument == name)?;
            Some(arguments.get(place + 1)?.parse().expect("a number"))
        };
        Self {
            jobs: number("--jobs").unwrap_or(if quick { 20_000 } else { 100_000 }),
            rounds: number("--rounds").unwrap_or(3),
            only_chain: arguments.iter().any(|argument| argument == "--only-chain"),
        }
    }
}

#[tokio::main]
async fn main() {
    let options = Options::read();
    let mut bare = Vec::new();
    let mut worker = Vec::new();
    let mut chain = Vec::new();
    let database = chain::database().await;
    if options.only_chain {
        for _ in 0..options.rounds {
            println!("{:.0}", chain::round(&database, options.jobs).await);
        }
        return;
    }
    println!(
        "{:>5} {:>12} {:>12} {:>12}",
        "round", "bare/s", "worker/s", "chain/s"
    );
    for round in 1..=options.rounds {
        bare.push(bare_round(options.jobs).await);
        worker.push(worker_round(options.jobs).await);
        chain.push(chain::round(&database, options.jobs).await);
        println!(
            "{round:>5} {:>12.0} {:>12.0} {:>12.0}",
            bare[round - 1],
            worker[round - 1],
            chain[round - 1],
        );
    }
    report(&options, &bare, &worker, &chain);
}

/// Jobs per second of the bare loop, from its first delivery until the broker has read its last
/// acknowledgement.
async fn bare_round(jobs: usize) -> f64 {
    let queue = unique_prefix("bench-bare");
    let url = amqp_url();
    let connection = connection(&url).await;
    let channel = connection.create_channel().await.unwrap();
    declare_queue(&channel, &queue, false).await;
    bind_exchange(&channel, &queue).await;
    let publisher = Publisher::connect(&url, &queue).await;
    publisher.publish_all(&offers(jobs)).await;

    channel
        .basic_qos(PREFETCH, BasicQosOptions::default())
        .await
        .unwrap();
    let options = BasicConsumeOptions::default();
    let consumer = channel.basic_consume(
        queue.as_str().into(),
        "bare".into(),
        options,
        FieldTable::default(),
    );
    let mut consumer = consumer.await.unwrap();
    let mut start = None;
    for taken in 1..=jobs {
        let delivery = consumer.next().await.unwrap().unwrap();
        start.get_or_insert_with(Instant::now);
        if taken % BARE_BATCH == 0 || taken == jobs {
            let multiple = BasicAckOptions { multiple: true };
            delivery.acker.ack(multiple).await.unwrap();
        }
    }
    // The broker answers in order, so its answer shows that it has read all acknowledgements.
    declare_queue(&channel, &queue, true).await;
    let took = start.expect("at least one job").elapsed();
    remove(&channel, &queue).await;
    per_second(jobs, took)
}

/// Lets the publisher of the tests, which knows only `<prefix>.send`, reach the queue.
async fn bind_exchange(channel: &Channel, queue: &str) {
    let exchange = format!("{queue}.send");
    let options = ExchangeDeclareOptions::default();
    let none = FieldTable::default;
    let declared = channel.exchange_declare(
        exchange.as_str().into(),
        ExchangeKind::Fanout,
        options,
        none(),
    );
    declared.await.unwrap();
    let options = QueueBindOptions::default();
    let bound = channel.queue_bind(queue.into(), exchange.into(), "".into(), options, none());
    bound.await.unwrap();
}

async fn remove(channel: &Channel, queue: &str) {
    let options = QueueDeleteOptions::default();
    channel.queue_delete(queue.into(), options).await.unwrap();
    let exchange = format!("{queue}.send");
    let options = ExchangeDeleteOptions::default();
    channel
        .exchange_delete(exchange.into(), options)
        .await
        .unwrap();
}

async fn declare_queue(channel: &Channel, queue: &str, passive: bool) {
    let mut arguments = FieldTable::default();
    arguments.insert(
        "x-queue-type".into(),
        AMQPValue::LongString("quorum".into()),
    );
    let options = QueueDeclareOptions {
        passive,
        durable: true,
        ..QueueDeclareOptions::default()
    };
    let declared = channel.queue_declare(queue.into(), options, arguments);
    declared.await.unwrap();
}

/// Jobs per second of a worker, from the first dispatch that its counter shows to the last.
async fn worker_round(jobs: usize) -> f64 {
    let prefix = unique_prefix("bench-worker");
    let config = WorkerConfig::new(&prefix)
        .set("LANES__BUDGET_PER_SECOND", 1_000_000_000)
        .set("CARRIERS__DEFAULT__KIND", "sandbox")
        .set("CARRIERS__DEFAULT__MAX_IN_FLIGHT", MAX_IN_FLIGHT)
        .set("AMQP__PREFETCH", PREFETCH)
        .set("OUTCOMES__ENABLED", false);
    declare(&config).await;
    let publisher = Publisher::connect(&amqp_url(), &prefix).await;
    publisher.publish_all(&offers(jobs)).await;
    drained_by_a_worker(&config, &prefix, jobs).await
}

/// Jobs per second of a worker that finds them queued.
async fn drained_by_a_worker(config: &WorkerConfig, prefix: &str, jobs: usize) -> f64 {
    let worker = Worker::spawn(config);
    let (start, already) = first_dispatch(&worker).await;
    let mut dispatched = already;
    while dispatched < jobs {
        sleep(POLL).await;
        dispatched = count_dispatched(&worker).await;
    }
    let took = start.elapsed();
    worker.stop().await;
    let queues = Queues::connect(&amqp_url(), prefix).await;
    assert_eq!(queues.all_ready().await, 0, "everything was acknowledged");
    queues.remove().await;
    per_second(jobs - already, took)
}

/// The instant of the first look that showed dispatches, and how many it showed.
async fn first_dispatch(worker: &Worker) -> (Instant, usize) {
    loop {
        if worker.is_ready().await {
            let dispatched = count_dispatched(worker).await;
            if dispatched > 0 {
                return (Instant::now(), dispatched);
            }
        }
        sleep(POLL).await;
    }
}

async fn count_dispatched(worker: &Worker) -> usize {
    let labels = [("outcome", "dispatched")];
    let count = worker.count("lanekeeper_outcomes_total", &labels).await;
    usize::try_from(count).expect("few enough")
}

fn offers(jobs: usize) -> Vec<Offer> {
    Offer::many(jobs, "job", |id| Offer::otp("bench", id))
}

#[expect(clippy::cast_precision_loss, reason = "a few hundred thousand at most")]
fn per_second(jobs: usize, took: Duration) -> f64 {
    jobs as f64 / took.as_secs_f64()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

fn summary(values: &[f64]) -> serde_json::Value {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    json!({
        "per_second": values.iter().map(|value| value.round()).collect::<Vec<_>>(),
        "median": median(values).round(),
        "least": least.round(),
        "most": most.round(),
        "spread_percent": ((most - least) / median(values) * 100.0).round(),
    })
}

fn report(options: &Options, bare: &[f64], worker: &[f64], chain: &[f64]) {
    for (name, one) in [("the worker", worker), ("the whole chain", chain)] {
        let ratios: Vec<f64> = one.iter().zip(bare).map(|(w, b)| w / b).collect();
        println!(
            "median {:.0} and {:.0}: {name} reaches {:.2} of the bare loop (rounds: {ratios:.2?})",
            median(bare),
            median(one),
            median(one) / median(bare),
        );
    }
    let ratio = |one: &[f64]| (median(one) / median(bare) * 1000.0).round() / 1000.0;
    let body = json!({
        "jobs": options.jobs,
        "rounds": options.rounds,
        "job_bytes": Offer::otp("bench", "job-12345").body().len(),
        "prefetch": PREFETCH,
        "max_in_flight": MAX_IN_FLIGHT,
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "bare": summary(bare),
        "worker": summary(worker),
        "chain": summary(chain),
        "ratio_of_medians": ratio(worker),
        "chain_ratio_of_medians": ratio(chain),
    });
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let folder = std::path::Path::new(&target).join("bench");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("throughput.json");
    std::fs::write(&file, format!("{body:#}\n")).unwrap();
    println!("written to {}", file.display());
}
