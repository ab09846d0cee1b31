//! A real Prometheus looks at a real worker and its broker with the files in deploy/: every query of
//! the dashboard, the alerts and the autoscaler finds what it asks for.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use lapin::BasicProperties;
use lapin::options::{BasicPublishOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use serde_json::Value;
use tokio::time::Instant;

use super::selectors::selectors;
use super::{project, text};
use crate::support::eventually;
use crate::support::jobs::{Offer, Publisher};
use crate::support::prometheus::{Prometheus, promtool};
use crate::support::rabbit::{Rabbit, connection};
use crate::support::redis::RedisServer;
use crate::support::scene::ACCOUNT;
use crate::support::stub::{Reply, Stub};
use crate::support::worker::{Worker, WorkerConfig};

/// The prefix that the alerts are written for. The broker is the test's own.
const PREFIX: &str = "lanekeeper";

/// The budget of the test's account, small enough to be reached.
const BUDGET: usize = 50;

/// For the broker to update its queues' figures, which it does every five seconds, and for the
/// second scrape that a rate needs. A busy machine is late.
const SEEN_WITHIN: Duration = Duration::from_secs(60);

/// A worker at work, and Prometheus looking on.
struct World {
    rabbit: Rabbit,
    redis: RedisServer,
    stub: Stub,
    worker: Worker,
    prometheus: Prometheus,
    _configuration: tempfile::TempDir,
}

impl World {
    async fn start() -> Self {
        let ((rabbit, broker_metrics), redis, stub) = tokio::join!(
            Rabbit::start_with_metrics(),
            RedisServer::start(),
            Stub::start()
        );
        let config = WorkerConfig::new(PREFIX)
            .set("AMQP__URL", &rabbit.url())
            .set("REDIS__URL", &redis.url())
            .set("LANES__BUDGET_PER_SECOND", BUDGET)
            .carrier(&stub.url);
        let worker = Worker::start(&config).await;
        let configuration = tempfile::tempdir().unwrap();
        let broker_metrics = format!("127.0.0.1:{broker_metrics}");
        configure(configuration.path(), worker.ops_address(), &broker_metrics);
        let prometheus = Prometheus::start(&configuration.path().join("prometheus.yaml")).await;
        Self {
            rabbit,
            redis,
            stub,
            worker,
            prometheus,
            _configuration: configuration,
        }
    }

    /// Waits until a query gives something.
    async fn await_data(&self, query: &str, deadline: Instant) {
        let limit = deadline.saturating_duration_since(Instant::now());
        let data = async || {
            let values = self.prometheus.query(query).await;
            values.iter().any(|value| !value.is_nan())
        };
        eventually(query, limit, data).await;
    }

    /// Jobs that are dispatched, shed, tried again and dead, and decisions without Redis. All are
    /// seen from their start: a counter that was never seen lower has not grown.
    async fn work(&mut self) {
        let deadline = Instant::now() + SEEN_WITHIN;
        self.await_data("lanekeeper_meter_mode", deadline).await;
        self.stub.set_script(|id, attempt| match (id, attempt) {
            ("otp-0", 1) => Reply::Status(503),
            _ => Reply::Accept,
        });
        let publisher = Publisher::connect(&self.rabbit.url(), PREFIX).await;
        let otp = |id| Offer::otp(ACCOUNT, id);
        let campaign = Offer::many(3 * BUDGET, "campaign", |id| Offer::marketing(ACCOUNT, id));
        publisher.publish_all(&campaign).await;
        publish_undecodable(&self.rabbit).await;
        declare_own_queues(&self.rabbit).await;
        // Longer than two scrapes, so that the rates of their waits are none of nothing.
        let steady = Offer::many(BUDGET, "otp", otp);
        publisher.publish_at(10, &steady).await;
        self.redis.stop().await;
        let unmetered = Offer::many(BUDGET / 5, "unmetered", otp);
        publisher.publish_all(&unmetered).await;
        let sent = campaign.len() + steady.len() + unmetered.len();
        self.stub.wait_for(sent, Duration::from_secs(20)).await;
    }
}

/// The project's configuration and alerts for this worker and broker, looking each second.
fn configure(directory: &Path, worker: &str, broker: &str) {
    let mut configuration = text("deploy/prometheus/prometheus.yaml");
    for (theirs, ours) in [
        ("worker.example:9464", worker),
        ("rabbitmq.example:15692", broker),
        (": 15s", ": 1s"),
    ] {
        assert!(configuration.contains(theirs), "{theirs}");
        configuration = configuration.replace(theirs, ours);
    }
    std::fs::write(directory.join("prometheus.yaml"), configuration).unwrap();
    let alerts = text("deploy/prometheus/alerts.yaml");
    std::fs::write(directory.join("alerts.yaml"), alerts).unwrap();
}

async fn publish_undecodable(rabbit: &Rabbit) {
    let connection = connection(&rabbit.url()).await;
    let channel = connection.create_channel().await.unwrap();
    let exchange = format!("{PREFIX}.send");
    let published = channel.basic_publish(
        exchange.into(),
        "transactional.acme".into(),
        BasicPublishOptions::default(),
        b"no JSON",
        BasicProperties::default(),
    );
    published.await.unwrap();
    connection.close(200, "done".into()).await.unwrap();
}

/// Queues such as a worker with a database gives accounts that keep meeting their limits.
async fn declare_own_queues(rabbit: &Rabbit) {
    let connection = connection(&rabbit.url()).await;
    let channel = connection.create_channel().await.unwrap();
    let durable = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    for (number, lane) in ["transactional", "marketing"].into_iter().enumerate() {
        let name = format!("{PREFIX}.{lane}.hot.busy.{number}");
        let declared = channel.queue_declare(name.into(), durable, FieldTable::default());
        declared.await.unwrap();
    }
    connection.close(200, "done".into()).await.unwrap();
}

/// The dashboard's queries, as Grafana would send them.
fn dashboard() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&text("deploy/grafana/lanekeeper.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array());
    let queries = targets
        .flatten()
        .map(|target| target["expr"].as_str().unwrap());
    let filled = queries.map(|query| {
        query
            .replace("$__rate_interval", "1m")
            .replace("$job", ".*")
            .replace("$prefix", PREFIX)
    });
    filled.collect()
}

/// The autoscaler's query for Prometheus: a folded text, which ends where the indentation does.
fn autoscaler() -> String {
    let manifest = text("deploy/kubernetes/scaledobject.yaml");
    let (_, query) = manifest.split_once("query: >-\n").unwrap();
    let lines = query
        .lines()
        .take_while(|line| line.starts_with("          "));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The quantile of nothing is no number. The autoscaler must not see one there.
async fn an_idle_worker_is_no_need(prometheus: &Prometheus, query: &str) {
    let soon = query.replace("[2m]", "[4s]");
    let (quantile, _) = soon.split_once(" >= 0)").expect("the quantile is compared");
    let quantile = quantile.strip_prefix('(').expect("in brackets");
    eventually("the worker is idle", SEEN_WITHIN, async || {
        let values = prometheus.query(quantile).await;
        values.iter().any(|value| value.is_nan())
    })
    .await;
    assert_eq!(prometheus.query(&soon).await, Vec::<f64>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn dashboard_alerts_and_autoscaler_find_what_they_ask_for() {
    let mut world = World::start().await;
    world.work().await;
    let deadline = Instant::now() + SEEN_WITHIN;
    let dashboard = dashboard();
    assert!(dashboard.len() >= 20, "{dashboard:?}");
    for query in &dashboard {
        assert!(!query.contains('$'), "{query}");
        world.await_data(query, deadline).await;
    }
    // An alert's comparison rightly gives nothing while all is well, and so does the autoscaler's
    // `unless` while jobs are shed. What they compare must be there.
    let alerts = world.prometheus.alerts().await;
    let autoscaler = autoscaler();
    let queries = alerts.iter().map(|alert| &alert.expression);
    for query in queries.chain([&autoscaler]) {
        world.prometheus.query(query).await;
        let selectors = selectors(query);
        assert!(!selectors.is_empty(), "{query}");
        for selector in selectors {
            world.await_data(selector, deadline).await;
        }
    }
    an_idle_worker_is_no_need(&world.prometheus, &autoscaler).await;
    for name in ["LanekeeperDeadLetters", "LanekeeperFallingOpen"] {
        let raised = async || !inactive(&world.prometheus).await.contains(name);
        eventually(name, SEEN_WITHIN, raised).await;
    }
    let inactive = inactive(&world.prometheus).await;
    for name in [
        "LanekeeperDown",
        "LanekeeperAbsent",
        "LanekeeperLaneWithoutConsumer",
        "LanekeeperQueuesUnseen",
        "LanekeeperPublishFailing",
    ] {
        assert!(inactive.contains(name), "{name} of {inactive:?}");
    }
    world.worker.stop().await;
}

/// The alerts that have no cause now, by name.
async fn inactive(prometheus: &Prometheus) -> HashSet<String> {
    let alerts = prometheus.alerts().await.into_iter();
    let alerts = alerts.filter(|alert| alert.state == "inactive");
    alerts.map(|alert| alert.name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_alert_says_how_bad_it_is_and_where_to_read_on() {
    let directory = tempfile::tempdir().unwrap();
    configure(directory.path(), "127.0.0.1:1", "127.0.0.1:1");
    let prometheus = Prometheus::start(&directory.path().join("prometheus.yaml")).await;
    let alerts = prometheus.alerts().await;
    assert!(!alerts.is_empty());
    let operations = text("docs/OPERATIONS.md");
    for alert in alerts {
        let severities = ["critical", "warning", "info"];
        assert!(severities.contains(&alert.severity.as_str()), "{alert:?}");
        let said = |name: &str| alert.annotations[name].as_str().unwrap_or_default();
        assert!(
            !said("summary").is_empty() && !said("description").is_empty(),
            "{alert:?}"
        );
        let section = format!("docs/OPERATIONS.md#{}", alert.name.to_lowercase());
        assert_eq!(said("runbook"), section);
        let heading = format!("\n### {}\n", alert.name);
        assert!(
            operations.contains(&heading),
            "{heading} is missing in docs/OPERATIONS.md"
        );
    }
}

#[test]
fn rules_and_their_unit_tests_pass() {
    let directory = project().join("deploy/prometheus");
    promtool(&directory, &["check", "config", "prometheus.yaml"]);
    promtool(&directory, &["check", "rules", "alerts.yaml"]);
    promtool(&directory, &["test", "rules", "alerts_test.yaml"]);
}

/// Each alert has a unit test that sees it fire and one that sees it silent.
#[test]
fn every_alert_has_unit_tests() {
    let tests = text("deploy/prometheus/alerts_test.yaml");
    let alerts = text("deploy/prometheus/alerts.yaml");
    let names = super::values_of(&alerts, "- alert:");
    assert!(!names.is_empty());
    for name in names {
        let asked = format!("ALERTS{{alertname=\"{name}\",alertstate=\"firing\"}}'");
        let asked = tests.matches(&asked).count();
        assert_eq!(asked, 2, "{name}");
        let fires = format!("labels: 'ALERTS{{alertname=\"{name}\"");
        assert_eq!(tests.matches(&fires).count(), 1, "{name}");
    }
}
