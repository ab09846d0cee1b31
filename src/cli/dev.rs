//! `lanekeeper dev`: the API and a worker in one process, without any service.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::accounts::Directory;
use crate::accounts::keys::{
    ApiKey, KeyGrant, KeyRing, KeyScope, KeyScopes, LiveKeyRing, StoredKey,
};
use crate::activity::{self, MemorySeconds, Store as Seconds, Tally};
use crate::api::send::{FirstAnswers, Notes};
use crate::api::{
    AnyOutbox, App, AppParts, PageDoor, Server, Store, Watches, listen, router, serve,
};
use crate::clock::SystemClock;
use crate::dispatch::Pipeline;
use crate::domain::{AccountId, Origin};
use crate::embedded::{Delays, EmbeddedQueues, MemoryRecords};
use crate::meter::{AnyMeter, Failover, MemoryStore};
use crate::ops::Shutdown;
use crate::overview::{Depths, HeldStore, OwnQueues, Sources};
use crate::records::AnyRecords;
use crate::settings::Settings;
use crate::telemetry::Telemetry;

/// The one key of `dev`. It is no secret, and opens nothing anywhere else: servers with a database
/// know only the keys that are in it.
const KEY: &str = "lk_devdevdevdev_notasecretnotasecretnotasecretnotasecret";

/// The account that the key belongs to.
const ACCOUNT: &str = "demo";

/// How often it is looked for waiting messages that are due.
const LOOK_FOR_DUE: Duration = Duration::from_millis(50);

/// How long the worker may take to finish what it has begun.
const FINISH_WITHIN: Duration = Duration::from_secs(3);

/// Serves until told to stop.
///
/// # Errors
/// When it cannot start.
pub async fn run(settings: Settings) -> anyhow::Result<ExitCode> {
    let address = settings.api.listen;
    if !address.ip().is_loopback() {
        bail!(
            "`lanekeeper dev` has a key that everybody knows and listens on this machine alone: \
             set LANEKEEPER__API__LISTEN to 127.0.0.1 and a port, not {address}"
        );
    }
    let shutdown = Shutdown::listen(settings.worker.grace).context("cannot listen for signals")?;
    let listener = listen(address).with_context(|| {
        format!("cannot listen on {address}: choose another one by LANEKEEPER__API__LISTEN")
    })?;
    let stage = Stage::new(&settings);
    let app = Arc::new(stage.app(&settings, shutdown.soft.clone())?);
    let mut working = stage.start_worker(&settings, &shutdown)?;
    let telling = activity::report(
        stage.telemetry.tally().clone(),
        Arc::clone(&stage.seconds),
        shutdown.soft.clone(),
    );
    tokio::spawn(telling);
    tokio::spawn(release(stage, shutdown.soft.clone()));
    print!("{}", greeting(listener.local_addr().unwrap_or(address)));
    let server = Server {
        max_connections: settings.api.max_connections,
        stop: shutdown.soft.clone(),
    };
    serve(
        server,
        listener,
        router(Arc::clone(&app)),
        shutdown.hard.clone(),
    )
    .await;
    app.tasks.close();
    app.tasks.wait().await;
    if timeout(FINISH_WITHIN, &mut working).await.is_err() {
        working.abort();
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything outside API and pipeline, in memory.
#[derive(Clone)]
struct Stage {
    queues: EmbeddedQueues,
    records: MemoryRecords,
    any_records: Arc<AnyRecords>,
    directory: Arc<Directory>,
    meter: Arc<AnyMeter>,
    seconds: Arc<Seconds>,
    telemetry: Telemetry,
}

impl Stage {
    fn new(settings: &Settings) -> Self {
        let clock = Arc::new(SystemClock);
        let records = MemoryRecords::new(clock.clone());
        let failover = super::pipeline::failover(settings);
        let telemetry = Telemetry::unexported().with_tally(Tally::counting());
        let store = MemoryStore::new(failover.claim_life, clock.clone());
        let seconds = MemorySeconds::beside(store.clone(), clock.clone());
        let meter = Failover::new(store, failover, clock, telemetry.clone());
        Self {
            queues: EmbeddedQueues::new(Delays {
                shed: settings.lanes.shed_delay,
                ..Delays::default()
            }),
            any_records: Arc::new(AnyRecords::Memory(records.clone())),
            records,
            directory: Arc::new(Directory::from_settings(settings)),
            meter: Arc::new(AnyMeter::Memory(meter)),
            seconds: Arc::new(Seconds::Memory(seconds)),
            telemetry,
        }
    }

    fn app(&self, settings: &Settings, stop: CancellationToken) -> anyhow::Result<App> {
        let parts = AppParts {
            keys: Arc::new(LiveKeyRing::fixed(ring()?)),
            directory: Arc::clone(&self.directory),
            records: Arc::clone(&self.any_records),
            meter: Arc::clone(&self.meter),
            broker: Arc::new(AnyOutbox::Embedded(self.queues.clone())),
            store: Store::Memory(self.records.clone()),
            first_answers: FirstAnswers::Memory(Notes::new(settings.api.idempotency_life)),
            lanes: Arc::new(Watches::new(self.sources())),
            page: PageDoor::of_dev(settings.api.listen, AccountId::parse(ACCOUNT)?),
            batches: super::batches::in_memory(settings, self.queues.clone(), self.records.clone()),
            telemetry: self.telemetry.clone(),
            stop,
        };
        Ok(App::new(settings, parts))
    }

    /// What the lanes page shows.
    fn sources(&self) -> Sources {
        Sources {
            directory: Arc::clone(&self.directory),
            store: Arc::clone(&self.seconds),
            held: HeldStore::Memory(self.records.clone()),
            own: OwnQueues::none(),
            depths: Depths::Embedded(self.queues.clone()),
            clock: Arc::new(SystemClock),
            mode: super::lanes::mode_of(&self.telemetry),
        }
    }

    fn start_worker(
        &self,
        settings: &Settings,
        shutdown: &Shutdown,
    ) -> anyhow::Result<tokio::task::JoinHandle<()>> {
        let clock = Arc::new(SystemClock);
        let directory = Arc::clone(&self.directory);
        let policy = Arc::new(move |account: &AccountId| directory.policy(account));
        let options = super::pipeline::options(settings, policy, fastrand::u64(..));
        let (session, deliveries) = self.queues.connect(options.prefetch);
        let pipeline = Pipeline::new(
            Arc::new(session),
            Arc::clone(&self.meter),
            super::worker::fleet(settings, &clock)?,
            clock,
            Arc::clone(&self.any_records),
            self.telemetry.clone(),
            options,
        )?;
        let run = pipeline.run(deliveries, shutdown.soft.clone(), shutdown.hard.clone());
        Ok(tokio::spawn(run))
    }
}

/// Gives waiting messages back to the queues when they are due, and forgets what nobody listens to.
async fn release(stage: Stage, stop: CancellationToken) {
    let mut look = interval(LOOK_FOR_DUE);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let releasing = async {
        loop {
            look.tick().await;
            stage.queues.requeue(&stage.records.take_due());
            drop(stage.queues.take_told());
        }
    };
    stop.run_until_cancelled(releasing).await;
}

fn ring() -> anyhow::Result<KeyRing> {
    let key = ApiKey::parse(KEY.as_bytes())?;
    let grant = KeyGrant {
        key: key.id(),
        account: AccountId::parse(ACCOUNT)?,
        scopes: KeyScopes::from_iter(KeyScope::ALL),
        origin: Origin::Api,
    };
    Ok(KeyRing::from_iter([StoredKey::new(&key, grant)]))
}

fn greeting(address: std::net::SocketAddr) -> String {
    format!(
        "Lanekeeper for development: the HTTP API and a worker, in memory, sending nothing. The key is of the
account {ACCOUNT}.

  http://{address}/       the lanes, live
  http://{address}/docs   the reference

A one-time password goes by the transactional lane:

  curl -sS http://{address}/api/v1/messages/sms \\
    -H 'X-API-Key: {KEY}' \\
    -H 'Content-Type: application/json' \\
    -d '{{\"to\":\"+447700900123\",\"body\":\"Your code is 482913\",\"priority\":\"high\"}}'

Ctrl-C ends it.
"
    )
}
