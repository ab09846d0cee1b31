//! The broker adapter on real brokers.

mod faults;
mod flow;
mod publishing;

use std::time::Duration;

use lanekeeper::dispatch::ports::{
    Broker as _, DeadLetter, Delivery, EventBatch, PublishError, Requeue, Route,
};
use lanekeeper::domain::{AccountId, Decoded, Job, JobHeaders, Lane, Payload};
use lanekeeper::intake::{AmqpBroker, AmqpOptions, Intake, Readiness};
use lanekeeper::telemetry::Telemetry;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Connection};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::support::queues::Queues;
use crate::support::rabbit::connection;
use crate::support::{amqp_url, unique_prefix};

/// How long anything that must happen may take.
const LIMIT: Duration = Duration::from_secs(30);

/// A running intake, and a publisher of its own beside it.
struct Rig {
    url: String,
    prefix: String,
    intake: Intake,
    stop: CancellationToken,
    broker: AmqpBroker,
    telemetry: Telemetry,
    deliveries: mpsc::UnboundedReceiver<Vec<Delivery>>,
    outside: Connection,
    channel: Channel,
    queues: Queues,
}

impl Rig {
    /// On the shared broker.
    async fn shared() -> Self {
        Self::on(amqp_url(), |_| {}).await
    }

    /// On any broker, with options changed by `adjust`; ready when this returns.
    async fn on(url: String, adjust: impl FnOnce(&mut AmqpOptions)) -> Self {
        let mut options = AmqpOptions::new(&url);
        options.prefix = unique_prefix("intake");
        adjust(&mut options);
        let prefix = options.prefix.clone();
        let telemetry = Telemetry::unexported();
        let (sender, deliveries) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        let intake = Intake::start(options, telemetry.clone(), sender, stop.clone()).unwrap();
        let outside = connection(&url).await;
        let channel = outside.create_channel().await.unwrap();
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await
            .unwrap();
        let broker = intake.broker();
        let queues = Queues::connect(&url, &prefix).await;
        let rig = Self {
            url,
            prefix,
            intake,
            stop,
            broker,
            telemetry,
            deliveries,
            outside,
            channel,
            queues,
        };
        rig.becomes(Readiness::is_ready).await;
        rig
    }

    fn name(&self, suffix: &str) -> ShortString {
        format!("{}.{suffix}", self.prefix).into()
    }

    /// Waits for a state of readiness.
    async fn becomes(&self, wanted: impl Fn(&Readiness) -> bool) -> Duration {
        self.becomes_within(LIMIT, wanted).await
    }

    async fn becomes_within(
        &self,
        limit: Duration,
        wanted: impl Fn(&Readiness) -> bool,
    ) -> Duration {
        let since = Instant::now();
        while !wanted(&self.broker.readiness()) {
            let readiness = self.broker.readiness();
            assert!(
                since.elapsed() < limit,
                "still {readiness:?} after {limit:?}"
            );
            sleep(Duration::from_millis(20)).await;
        }
        since.elapsed()
    }

    /// Publishes one message from outside, confirmed.
    async fn publish(&self, exchange: &str, key: &str, headers: FieldTable, body: &[u8]) {
        let exchange = match exchange {
            "" => ShortString::default(),
            suffix => self.name(suffix),
        };
        let properties = BasicProperties::default().with_headers(headers);
        let options = BasicPublishOptions::default();
        let confirm = self
            .channel
            .basic_publish(exchange, key.into(), options, body, properties);
        confirm.await.unwrap().await.unwrap();
    }

    /// Publishes jobs `first..first + count` of a lane.
    async fn publish_jobs(&self, lane: Lane, first: usize, count: usize) {
        let key: ShortString = format!("{lane}.acme").into();
        let confirms = (first..first + count).map(|number| {
            let (channel, exchange, key) = (&self.channel, self.name("send"), key.clone());
            async move {
                let options = BasicPublishOptions::default();
                let properties = BasicProperties::default().with_delivery_mode(2);
                let body = job(number, lane);
                let confirm = channel
                    .basic_publish(exchange, key, options, body.as_bytes(), properties)
                    .await;
                confirm.unwrap().await.unwrap();
            }
        });
        futures_util::future::join_all(confirms).await;
    }

    /// The next `count` deliveries.
    async fn take(&mut self, count: usize) -> Vec<Delivery> {
        let deadline = Instant::now() + LIMIT;
        let mut taken = Vec::new();
        while taken.len() < count {
            let batch = timeout_at(deadline, self.deliveries.recv()).await;
            let batch = batch.unwrap_or_else(|_| panic!("{} of {count} deliveries", taken.len()));
            taken.extend(batch.unwrap());
        }
        taken
    }

    async fn take_one(&mut self) -> Delivery {
        let mut taken = self.take(1).await;
        assert_eq!(taken.len(), 1);
        taken.remove(0)
    }

    fn acknowledge(&self, deliveries: &[Delivery]) {
        let receipts = deliveries.iter().map(|delivery| delivery.receipt).collect();
        self.broker.acknowledge(receipts);
    }

    /// Waits for a number of untaken messages.
    async fn awaits_in(&self, suffix: &str, wanted: usize) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let found = self.queues.ready(suffix).await;
            if found == wanted {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{found} in {suffix}, not {wanted}"
            );
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Sends a delivery back over the shed or park exchange.
    async fn requeue(&self, delivery: &Delivery, route: Route) -> Result<(), PublishError> {
        let requeue = requeue_of(delivery, route);
        self.broker.requeue(vec![requeue]).await.remove(0)
    }

    async fn close(self) {
        self.intake.close(Instant::now() + LIMIT).await;
        self.queues.remove().await;
    }
}

fn job(number: usize, lane: Lane) -> String {
    let origin = match lane {
        Lane::Transactional => "api",
        Lane::Marketing => "campaign",
    };
    format!(
        r#"{{"id":"j-{number}","account_id":"acme","channel":"sms","to":"+447700900123","body":"x","origin":"{origin}"}}"#
    )
}

fn job_of(delivery: &Delivery) -> &Job {
    match &delivery.decoded {
        Decoded::Job(job) => job,
        other => panic!("not a job: {other:?}"),
    }
}

fn ids(deliveries: &[Delivery]) -> Vec<String> {
    let mut ids: Vec<_> = deliveries
        .iter()
        .map(|delivery| job_of(delivery).head.id.to_string())
        .collect();
    ids.sort();
    ids
}

fn requeue_of(delivery: &Delivery, route: Route) -> Requeue {
    let job = job_of(delivery);
    Requeue {
        id: job.head.id.clone(),
        account: job.head.account.clone(),
        lane: job.lane(),
        route,
        headers: delivery.headers.after_shed(),
        payload: job.payload.clone(),
    }
}

fn letter(detail: &str) -> DeadLetter {
    DeadLetter {
        reason: "undecodable",
        detail: detail.to_owned(),
        at: jiff::Timestamp::UNIX_EPOCH,
        payload: Payload::new("x"),
    }
}

fn events() -> EventBatch {
    EventBatch {
        account: AccountId::parse("acme").unwrap(),
        outcome: "dispatched",
        body: b"[]".to_vec(),
    }
}
