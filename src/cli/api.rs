//! `lanekeeper api`: puts an API server together and takes it apart again.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::records::{Memory, migration_failure};
use crate::accounts::keys::{self, LiveKeyRing};
use crate::activity::{self, Tally};
use crate::api::batches::BatchDesk;
use crate::api::send::{Desk, DeskParts, FirstAnswers, forget_old};
use crate::api::{
    AnyOutbox, App, PageDoor, RequestLimits, Server, Store, Watches, listen, router, serve,
};
use crate::clock::SystemClock;
use crate::intake::Outbox;
use crate::meter::AnyMeter;
use crate::ops::{self, LaneReadiness, Metrics, Readiness, Shutdown};
use crate::overview::HeldStore;
use crate::postgres::Database;
use crate::settings::Settings;
use crate::telemetry::Telemetry;

/// How long taking leave of the broker and of Redis may take.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// Serves HTTP until told to stop.
///
/// # Errors
/// When it cannot start.
pub async fn run(settings: Settings) -> anyhow::Result<ExitCode> {
    let shutdown = Shutdown::listen(settings.worker.grace).context("cannot listen for signals")?;
    let metrics = Metrics::new()?;
    let telemetry = Telemetry::new(&metrics.meter()).with_tally(Tally::counting());
    metrics.observe(&telemetry);
    let ops_listener = bind(settings.ops.listen, "LANEKEEPER__OPS__LISTEN")?;
    let listener = bind(settings.api.listen, "LANEKEEPER__API__LISTEN")?;
    let memory = super::records::open(&settings)?;
    let (Some(beside), Some(database)) = (memory.beside(), &settings.database) else {
        bail!(
            "the API needs a database: set LANEKEEPER__DATABASE__URL (keys live there; \
             `lanekeeper dev` does without any service)"
        );
    };
    let meter = super::worker::meter(&settings, telemetry.clone()).await?;
    let meter = Arc::new(AnyMeter::Redis(meter));
    let mut amqp = super::amqp::options(&settings)?;
    amqp.confirm_timeout = settings.api.confirm_timeout;
    let outbox = Arc::new(AnyOutbox::Amqp(Outbox::start(amqp, telemetry.clone())?));
    let batches = super::batches::on_services(&settings, database, &telemetry)?;
    let keys = Arc::new(LiveKeyRing::of_database());
    let mut keepers = memory.follow(&shutdown.soft);
    let (ring, pool, stop) = (
        Arc::clone(&keys),
        beside.pool().clone(),
        shutdown.soft.clone(),
    );
    keepers.spawn(async move { keys::keep(ring, &pool, stop).await });
    let life = settings.api.idempotency_life;
    keepers.spawn(forget_old(
        beside.pool().clone(),
        life,
        shutdown.soft.clone(),
    ));

    let counted = CancellationToken::new();
    let seconds = super::lanes::tell(&settings, &telemetry, &mut keepers, &counted)?;
    let watches = watches(&settings, &memory, beside, seconds, &telemetry)?;
    let app = Arc::new(app(
        &settings,
        &memory,
        beside,
        Parts {
            keys,
            meter,
            outbox,
            batches,
            watches,
            telemetry,
            stop: shutdown.soft.clone(),
        },
    ));
    let ops_stop = CancellationToken::new();
    let readiness = Arc::new(readiness_of(Arc::clone(&app)));
    tokio::spawn(ops::serve(
        ops_listener,
        metrics,
        readiness,
        ops_stop.clone(),
    ));
    let address = listener.local_addr().unwrap_or(settings.api.listen);
    tracing::info!(%address, prefix = %settings.amqp.prefix, ops = %settings.ops.listen, "the API server has started");
    let server = Server {
        max_connections: settings.api.max_connections,
        stop: shutdown.soft.clone(),
    };
    let serving = serve(
        server,
        listener,
        router(Arc::clone(&app)),
        shutdown.hard.clone(),
    );
    tokio::pin!(serving);
    let gave_up = tokio::select! {
        () = &mut serving => None,
        error = migration_failure(&settings) => Some(error.to_string()),
    };
    if gave_up.is_some() {
        shutdown.soft.cancel();
        serving.await;
    }
    counted.cancel();
    leave(app, &shutdown).await;
    let kept = async { while keepers.join_next().await.is_some() {} };
    let _ = timeout_at(Instant::now() + LEAVE_WITHIN, kept).await;
    ops_stop.cancel();
    if let Some(error) = gave_up {
        tracing::error!(
            error,
            "the API server cannot go on: somebody has to mend this first"
        );
        return Ok(ExitCode::FAILURE);
    }
    tracing::info!("the API server has stopped");
    Ok(ExitCode::SUCCESS)
}

fn bind(address: std::net::SocketAddr, variable: &str) -> anyhow::Result<TcpListener> {
    let bound = listen(address);
    bound.with_context(|| format!("cannot listen on {address}: choose another one by {variable}"))
}

fn watches(
    settings: &Settings,
    memory: &Memory,
    beside: &Database,
    seconds: Arc<activity::Store>,
    telemetry: &Telemetry,
) -> anyhow::Result<Arc<Watches>> {
    let directory = Arc::clone(&memory.directory);
    let held = HeldStore::Postgres(beside.clone());
    let sources = super::lanes::sources(settings, directory, held, seconds, telemetry)?;
    Ok(Arc::new(Watches::new(sources)))
}

struct Parts {
    keys: Arc<LiveKeyRing>,
    meter: Arc<AnyMeter>,
    outbox: Arc<AnyOutbox>,
    batches: BatchDesk,
    watches: Arc<Watches>,
    telemetry: Telemetry,
    stop: CancellationToken,
}

fn app(settings: &Settings, memory: &Memory, beside: &Database, parts: Parts) -> App {
    let clock = Arc::new(SystemClock);
    let first_answers = FirstAnswers::Postgres {
        database: beside.clone(),
        life: settings.api.idempotency_life,
    };
    let desk = Desk::new(DeskParts {
        directory: Arc::clone(&memory.directory),
        records: Arc::clone(&memory.records),
        meter: Arc::clone(&parts.meter),
        outbox: Arc::clone(&parts.outbox),
        clock: clock.clone(),
        first_answers,
    });
    App {
        keys: parts.keys,
        directory: Arc::clone(&memory.directory),
        records: Arc::clone(&memory.records),
        meter: parts.meter,
        broker: parts.outbox,
        clock,
        store: Store::Postgres(beside.clone()),
        limits: RequestLimits::new(settings.api.requests_per_second),
        lanes: parts.watches,
        page: PageDoor::Key,
        desk: Arc::new(desk),
        batches: parts.batches,
        default_region: settings.jobs.default_region,
        keywords: Arc::clone(&settings.inbound.keywords),
        tasks: TaskTracker::new(),
        stop: parts.stop,
        telemetry: parts.telemetry,
    }
}

/// Lets what was begun go on to its end, and takes leave of everybody.
async fn leave(app: Arc<App>, shutdown: &Shutdown) {
    app.tasks.close();
    tokio::select! {
        () = app.tasks.wait() => {}
        () = shutdown.hard.cancelled() => {}
    }
    let leave_by = Instant::now() + LEAVE_WITHIN;
    if let AnyMeter::Redis(meter) = &*app.meter
        && !matches!(timeout_at(leave_by, meter.flush()).await, Ok(Ok(())))
    {
        tracing::warn!("some decisions could not be recorded in Redis");
    }
    app.broker.close(leave_by).await;
    app.batches.close(leave_by).await;
}

/// It is ready when it can accept messages.
fn readiness_of(app: Arc<App>) -> impl Fn() -> Readiness {
    move || {
        let keys = app.keys.ring().is_none();
        let keys = keys.then(|| "the API keys have not been read from the database yet".to_owned());
        let directory = !app.directory.is_loaded();
        let directory =
            directory.then(|| "the accounts have not been read from the database yet".to_owned());
        let reason = keys.or(directory).or_else(|| app.broker.trouble());
        let lane = LaneReadiness {
            lane: "api",
            ready: reason.is_none(),
            reason,
        };
        Readiness { lanes: vec![lane] }
    }
}
