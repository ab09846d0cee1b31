//! `lanekeeper api`: puts an API server together and takes it apart again.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::lanes::Tables;
use super::records::{Memory, migration_failure};
use crate::accounts::keys::{self, LiveKeyRing};
use crate::activity::{self, Tally};
use crate::api::send::{FirstAnswers, forget_old};
use crate::api::{
    AnyOutbox, App, AppParts, PageDoor, Server, Store, Watches, listen, router, serve,
};
use crate::intake::Outbox;
use crate::meter::AnyMeter;
use crate::ops::{self, LaneReadiness, Metrics, Readiness, Shutdown};
use crate::postgres::Database;
use crate::settings::Settings;
use crate::telemetry::Telemetry;
use crate::uploads::{self, PgUploads};

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
    let mut keepers = memory.follow(&shutdown.soft);
    // It tells what was counted until nothing counts any more.
    let counted = CancellationToken::new();
    let seconds = super::lanes::tell(&settings, &telemetry, &mut keepers, &counted)?;
    let parts = parts(&settings, &memory, seconds, telemetry, &shutdown.soft).await?;
    look_after(&settings, &parts, &mut keepers);
    let app = Arc::new(App::new(&settings, parts));
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
    let gave_up = serve_until_told(&settings, listener, &app, &shutdown).await;
    counted.cancel();
    leave(app, &shutdown).await;
    let kept = async { while keepers.join_next().await.is_some() {} };
    let _ = timeout_at(Instant::now() + LEAVE_WITHIN, kept).await;
    ops_stop.cancel();
    Ok(ended(gave_up))
}

/// What the server is made of, on services.
async fn parts(
    settings: &Settings,
    memory: &Memory,
    seconds: Arc<activity::Store>,
    telemetry: Telemetry,
    stop: &CancellationToken,
) -> anyhow::Result<AppParts> {
    let (Some(beside), Some(database)) = (memory.beside(), &settings.database) else {
        bail!(
            "the API needs a database: set LANEKEEPER__DATABASE__URL (keys live there; \
             `lanekeeper dev` does without any service)"
        );
    };
    let meter = super::worker::meter(settings, telemetry.clone()).await?;
    let mut amqp = super::amqp::options(settings)?;
    amqp.confirm_timeout = settings.api.confirm_timeout;
    // Neither a list, nor a count, nor a batch of a million rows keeps a message waiting.
    let apart = super::records::beside(database)?;
    let first_answers = FirstAnswers::Postgres {
        database: beside.clone(),
        life: settings.api.idempotency_life,
    };
    Ok(AppParts {
        keys: Arc::new(LiveKeyRing::of_database()),
        directory: Arc::clone(&memory.directory),
        records: Arc::clone(&memory.records),
        meter: Arc::new(AnyMeter::Redis(meter)),
        broker: Arc::new(AnyOutbox::Amqp(Outbox::start(amqp, telemetry.clone())?)),
        store: Store::Postgres(apart.clone()),
        first_answers,
        lanes: watches(settings, memory, beside, seconds, &telemetry)?,
        page: PageDoor::Key,
        batches: super::batches::on_services(settings, apart, &telemetry)?,
        telemetry,
        stop: stop.clone(),
    })
}

/// Keeps the keys fresh, and forgets old answers and batches.
fn look_after(settings: &Settings, parts: &AppParts, keepers: &mut JoinSet<()>) {
    let FirstAnswers::Postgres { database, .. } = &parts.first_answers else {
        return;
    };
    let (keys, pool, stop) = (
        Arc::clone(&parts.keys),
        database.pool().clone(),
        parts.stop.clone(),
    );
    let life = settings.api.idempotency_life;
    keepers.spawn(forget_old(pool.clone(), life, stop.clone()));
    if let Some(life) = settings.ledger.retention {
        let uploads = PgUploads::new(database.clone());
        keepers.spawn(uploads::forget_old(uploads, life, stop.clone()));
    }
    keepers.spawn(async move { keys::keep(keys, &pool, stop).await });
}

/// Serves until told to stop, or until there is something that only people can mend.
async fn serve_until_told(
    settings: &Settings,
    listener: TcpListener,
    app: &Arc<App>,
    shutdown: &Shutdown,
) -> Option<String> {
    let server = Server {
        max_connections: settings.api.max_connections,
        stop: shutdown.soft.clone(),
    };
    let serving = serve(
        server,
        listener,
        router(Arc::clone(app)),
        shutdown.hard.clone(),
    );
    tokio::pin!(serving);
    let error = tokio::select! {
        () = &mut serving => return None,
        error = migration_failure(settings) => error.to_string(),
    };
    shutdown.soft.cancel();
    serving.await;
    Some(error)
}

fn ended(gave_up: Option<String>) -> ExitCode {
    if let Some(error) = gave_up {
        tracing::error!(
            error,
            "the API server cannot go on: somebody has to mend this first"
        );
        return ExitCode::FAILURE;
    }
    tracing::info!("the API server has stopped");
    ExitCode::SUCCESS
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
    let tables = Tables::in_database(settings, directory, beside.clone());
    let sources = super::lanes::sources(settings, tables, seconds, telemetry)?;
    Ok(Arc::new(Watches::new(sources)))
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
