//! Over a real broker.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use lanekeeper::dispatch::ports::{Broker as _, Delivery};
use lanekeeper::domain::{Decoded, JobHeaders, Lane, Payload};
use lanekeeper::intake::{AmqpOptions, Intake};
use lanekeeper::telemetry::Telemetry;
use lanekeeper::waiting::Releaser;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{CONFIRM_TIMEOUT, LIMIT, becomes_empty, ceiling, due_job, keep_all};
use crate::support::postgres::TestDatabase;
use crate::support::queues::Queues;
use crate::support::{amqp_url, eventually, unique_prefix};

#[tokio::test]
async fn released_jobs_are_delivered_from_their_lanes_queue() {
    let database = TestDatabase::create().await;
    let mut options = AmqpOptions::new(amqp_url());
    options.prefix = unique_prefix("waiting");
    let queues = Queues::connect(&amqp_url(), &options.prefix).await;
    let (sender, mut deliveries) = mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let telemetry = Telemetry::unexported();
    let intake = Intake::start(options, telemetry.clone(), sender, stop.clone()).unwrap();
    let broker = intake.broker();
    eventually("the broker is there", LIMIT, async || {
        broker.readiness().is_ready()
    })
    .await;

    let mut jobs = Vec::new();
    for lane in Lane::ALL {
        for number in 0..300 {
            let mut job = due_job(&format!("{lane}-{number}"));
            job.lane = lane;
            job.headers = JobHeaders {
                sheds: 3,
                ..JobHeaders::default()
            };
            job.payload = Payload::new(format!(
                r#"{{"id":"{lane}-{number}","account_id":"acme","channel":"sms",
                    "to":"+447700900123","body":"x","metadata":{{"traffic_lane":"{lane}"}}}}"#
            ));
            jobs.push(job);
        }
    }
    keep_all(&database, &jobs).await;
    let releaser = Releaser::new(
        database.pool().clone(),
        Arc::new(broker.clone()),
        ceiling(10_000),
        CONFIRM_TIMEOUT,
        telemetry,
        Rng::new(),
    );
    let releasing = tokio::spawn(releaser.run(stop.clone()));
    let mut seen = BTreeSet::new();
    while seen.len() < jobs.len() {
        let batch = timeout(LIMIT, deliveries.recv()).await;
        for delivery in batch.expect("all are delivered").unwrap() {
            assert!(seen.insert(checked(&delivery)), "each of them once");
            broker.acknowledge(vec![delivery.receipt]);
        }
    }
    becomes_empty(&database).await;
    stop.cancel();
    timeout(Duration::from_secs(1), releasing)
        .await
        .unwrap()
        .unwrap();
    intake.close(Instant::now() + LIMIT).await;
    queues.remove().await;
}

/// The job's id, if everything about it is as it was.
fn checked(delivery: &Delivery) -> String {
    let Decoded::Job(job) = &delivery.decoded else {
        panic!("not a job");
    };
    assert_eq!(job.lane(), delivery.source_lane);
    assert_eq!(delivery.headers.sheds, 3);
    job.head.id.to_string()
}
