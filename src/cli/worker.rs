//! `lanekeeper worker`: puts the parts together and takes them apart again.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::records::{Memory, migration_failure};
use crate::activity::Tally;
use crate::carrier::AnyCarrier;
use crate::clock::SystemClock;
use crate::dispatch::ports::{Broker as _, Records as _};
use crate::dispatch::{Fleet, Pipeline, PipelineOptions, PressureWatch};
use crate::domain::{AccountId, Lane};
use crate::intake::{AmqpBroker, Intake};
use crate::meter::{CounterStore, Failover, RedisOptions, RedisStore};
use crate::ops::{self, LaneReadiness, Metrics, Readiness, Shutdown};
use crate::records::AnyRecords;
use crate::settings::Settings;
use crate::telemetry::Telemetry;

/// How long taking leave of the broker may take when there is no hurry.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// How long starting waits for Redis.
const FIRST_CONTACT: Duration = Duration::from_secs(1);

/// Runs a worker until it is told to stop.
///
/// # Errors
/// When it cannot start, or finds the broker in a state that only a person can mend.
pub async fn run(settings: Settings) -> anyhow::Result<ExitCode> {
    let shutdown = Shutdown::listen(settings.worker.grace).context("cannot listen for signals")?;
    let metrics = Metrics::new()?;
    let telemetry = Telemetry::new(&metrics.meter()).with_tally(Tally::counting());
    metrics.observe(&telemetry);
    let listener = TcpListener::bind(settings.ops.listen)
        .await
        .with_context(|| {
            let address = settings.ops.listen;
            format!("cannot listen on {address}: choose another one by LANEKEEPER__OPS__LISTEN")
        })?;
    let memory = super::records::open(&settings)?;
    let meter = Arc::new(meter(&settings, telemetry.clone()).await?);

    let (deliveries_in, deliveries) = mpsc::unbounded_channel();
    let mut intake = Intake::start(
        super::amqp::options(&settings)?,
        telemetry.clone(),
        deliveries_in,
        shutdown.soft.clone(),
    )?;
    let broker = Arc::new(intake.broker());
    if memory.records.exist() {
        // Not before it is known whom not to write to.
        for lane in Lane::ALL {
            broker.take(lane, false);
        }
    }
    let mut keepers = memory.keep(&settings, Arc::clone(&broker), &telemetry, &shutdown.soft);
    let pressure = super::hot::start(
        &settings,
        &memory,
        intake.hot(),
        &telemetry,
        &mut keepers,
        &shutdown.soft,
    );
    let counted = CancellationToken::new();
    super::lanes::tell(&settings, &telemetry, &mut keepers, &counted)?;
    let pipeline = pipeline(
        &settings,
        &memory,
        broker,
        Arc::clone(&meter),
        telemetry.clone(),
        pressure,
    )?;
    let ops_stop = CancellationToken::new();
    let readiness = Arc::new(readiness_of(intake.broker(), telemetry.clone()));
    tokio::spawn(ops::serve(listener, metrics, readiness, ops_stop.clone()));
    tracing::info!(prefix = %settings.amqp.prefix, ops = %settings.ops.listen, "the worker has started");

    let running = pipeline.run(deliveries, shutdown.soft.clone(), shutdown.hard.clone());
    tokio::pin!(running);
    let gave_up = tokio::select! {
        () = &mut running => None,
        error = intake.gave_up() => Some(error.to_string()),
        error = migration_failure(&settings) => Some(error.to_string()),
    };
    if gave_up.is_some() {
        shutdown.soft.cancel();
        running.await;
    }
    counted.cancel();
    let leave_by = leave_by(&shutdown);
    let kept = async { while keepers.join_next().await.is_some() {} };
    let _ = timeout_at(leave_by, kept).await;
    if !matches!(timeout_at(leave_by, meter.flush()).await, Ok(Ok(()))) {
        tracing::warn!("some results of sends could not be recorded: their jobs may be sent again");
    }
    intake.close(leave_by).await;
    ops_stop.cancel();
    if let Some(error) = gave_up {
        tracing::error!(
            error,
            "the worker cannot go on: somebody has to mend this first"
        );
        return Ok(ExitCode::FAILURE);
    }
    tracing::info!("the worker has stopped");
    Ok(ExitCode::SUCCESS)
}

/// In a hurry, what the broker has not heard by then it finds out by itself.
fn leave_by(shutdown: &Shutdown) -> Instant {
    let within = if shutdown.hard.is_cancelled() {
        LEAVE_WITHIN / 4
    } else {
        LEAVE_WITHIN
    };
    Instant::now() + within
}

type WorkerPipeline =
    Pipeline<AmqpBroker, Failover<RedisStore>, AnyCarrier, SystemClock, AnyRecords>;

pub(super) async fn meter(
    settings: &Settings,
    telemetry: Telemetry,
) -> anyhow::Result<Failover<RedisStore>> {
    let options = super::pipeline::failover(settings);
    let store = RedisStore::new(RedisOptions {
        prefix: format!("{}:", settings.redis.prefix),
        timeout: settings.redis.timeout,
        connect_timeout: settings.redis.connect_timeout,
        claim_life: options.claim_life,
        ..RedisOptions::at(settings.redis.url.expose().as_str())
    })?;
    // The first connection takes longer than a decision may. If there is none yet, that is no
    // reason not to start.
    let _ = timeout(FIRST_CONTACT, store.probe()).await;
    Ok(Failover::new(
        store,
        options,
        Arc::new(SystemClock),
        telemetry,
    ))
}

fn pipeline(
    settings: &Settings,
    memory: &Memory,
    broker: Arc<AmqpBroker>,
    meter: Arc<Failover<RedisStore>>,
    telemetry: Telemetry,
    pressure: Option<PressureWatch>,
) -> anyhow::Result<WorkerPipeline> {
    let clock = Arc::new(SystemClock);
    let fleet = fleet(settings, &clock)?;
    let directory = Arc::clone(&memory.directory);
    let policy = Arc::new(move |account: &AccountId| directory.policy(account));
    let options = PipelineOptions {
        pressure,
        ..super::pipeline::options(settings, policy, fastrand::u64(..))
    };
    Ok(Pipeline::new(
        broker,
        meter,
        fleet,
        clock,
        Arc::clone(&memory.records),
        telemetry,
        options,
    )?)
}

pub(super) fn fleet(
    settings: &Settings,
    clock: &Arc<SystemClock>,
) -> anyhow::Result<Fleet<AnyCarrier>> {
    let mut carriers = Vec::new();
    for (name, carrier) in settings.carriers.iter() {
        let clock = Arc::clone(clock) as Arc<_>;
        let cap = settings.jobs.retry_after_cap;
        let adapter = AnyCarrier::open(name, carrier, cap, clock, fastrand::Rng::new())?;
        carriers.push(super::pipeline::carrier(name, carrier, adapter));
    }
    let names: Vec<_> = carriers
        .iter()
        .map(|carrier| Arc::clone(&carrier.name))
        .collect();
    Ok(Fleet::new(carriers, |channel| {
        let name = settings.carriers.for_channel(channel);
        names.iter().position(|other| other == name).unwrap_or(0)
    }))
}

fn readiness_of(broker: AmqpBroker, telemetry: Telemetry) -> impl Fn() -> Readiness {
    move || {
        let state = broker.readiness();
        let lane = |lane: Lane| {
            let ready = state.consuming[lane.index()];
            let reason = (!ready).then(|| {
                let closed = telemetry.closed(lane).map(str::to_owned);
                let why = closed.or_else(|| state.last_error.clone());
                why.unwrap_or_else(|| "not connected to the broker yet".to_owned())
            });
            LaneReadiness {
                lane: lane.as_str(),
                ready,
                reason,
            }
        };
        Readiness {
            lanes: Lane::ALL.map(lane).to_vec(),
        }
    }
}
