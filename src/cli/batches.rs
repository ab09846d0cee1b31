//! What the HTTP API needs for batches, with and without services.

use std::sync::Arc;

use super::amqp;
use crate::api::batches::{BatchDesk, BatchLimits};
use crate::api::{AnyOutbox, Store};
use crate::clock::SystemClock;
use crate::embedded::{EmbeddedQueues, MemoryRecords};
use crate::intake::Outbox;
use crate::postgres::Database;
use crate::settings::Settings;
use crate::telemetry::Telemetry;
use crate::uploads::{MemoryUploads, PgUploads, Uploads};

/// On PostgreSQL and RabbitMQ, over a connection of its own to the broker: no single message has to
/// wait behind a million rows.
///
/// # Errors
/// When a URL cannot be used.
pub(super) fn on_services(
    settings: &Settings,
    database: Database,
    telemetry: &Telemetry,
) -> anyhow::Result<BatchDesk> {
    let outbox = Outbox::start(amqp::options(settings)?, telemetry.clone())?;
    Ok(BatchDesk::new(
        Uploads::Postgres(PgUploads::new(database.clone())),
        AnyOutbox::Amqp(outbox),
        Store::Postgres(database),
        limits(settings),
    ))
}

/// In this process.
pub(super) fn in_memory(
    settings: &Settings,
    queues: EmbeddedQueues,
    records: MemoryRecords,
) -> BatchDesk {
    BatchDesk::new(
        Uploads::Memory(MemoryUploads::new(Arc::new(SystemClock))),
        AnyOutbox::Embedded(queues),
        Store::Memory(records),
        limits(settings),
    )
}

/// A batch is known for as long as what became of it.
fn limits(settings: &Settings) -> BatchLimits {
    BatchLimits {
        largest: settings.api.batch_largest,
        uploads: settings.api.batch_uploads,
        uploads_per_account: settings.api.batch_uploads_per_account,
        life: settings.ledger.retention,
    }
}
