//! Accounts' own queues, where there is a database to write them down in.

use std::num::NonZeroU16;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::records::Memory;
use crate::dispatch::{PressureOptions, PressureWatch};
use crate::domain::{AccountId, Lane};
use crate::hot::{self, HotKeeper, HotList, HotOptions, Merger, Splitter};
use crate::intake::HotBroker;
use crate::settings::Settings;
use crate::telemetry::Telemetry;

/// Starts what looks after accounts' own queues, until `stop`; gives where the pipeline tells which
/// accounts are under pressure.
pub(super) fn start(
    settings: &Settings,
    memory: &Memory,
    broker: HotBroker,
    telemetry: &Telemetry,
    keepers: &mut JoinSet<()>,
    stop: &CancellationToken,
) -> Option<PressureWatch> {
    let pool = memory.beside()?.pool().clone();
    let list = Arc::new(HotList::new(&settings.amqp.prefix.to_string()));
    let options = HotOptions {
        most: settings.hot.most,
        spare: settings.hot.spare,
        idle: settings.hot.idle,
        settle: settings.hot.settle,
    };
    if settings.hot.settle < settings.amqp.heartbeat * 2 {
        tracing::warn!(
            "hot.settle_s is less than twice amqp.heartbeat_s: a worker that stands still for a moment may be \
             late with what it does for an account's own queue; raise hot.settle_s"
        );
    }
    let (tell, pressed) = mpsc::unbounded_channel();
    let keeper = HotKeeper {
        pool: pool.clone(),
        list: Arc::clone(&list),
        broker: broker.clone(),
        options,
        telemetry: telemetry.clone(),
    };
    keepers.spawn(Splitter::new(keeper.clone()).run(pressed, stop.clone()));
    keepers.spawn(Merger::new(keeper).run(stop.clone()));
    let directory = Arc::clone(&memory.directory);
    let ceiling = Arc::new(move |account: &AccountId, lane: Lane| {
        let policy = directory.policy(account)?;
        Some(policy.ceilings.of_lane(lane))
    });
    let most = NonZeroU16::new(settings.amqp.prefetch).unwrap_or(NonZeroU16::MIN);
    let consumed = hot::consume(
        Arc::clone(&list),
        broker,
        ceiling,
        most,
        telemetry.clone(),
        stop.clone(),
    );
    keepers.spawn(consumed);
    let known = Arc::clone(&list);
    let stop = stop.clone();
    keepers.spawn(async move { hot::follow(list, &pool, stop).await });
    Some(PressureWatch {
        has_own_queue: Arc::new(move |lane, account| known.is_open(lane, account)),
        options: PressureOptions {
            jobs: settings.hot.jobs,
            within: settings.hot.within,
        },
        tell,
    })
}
