//! What every step for accounts' own queues needs.

use std::sync::Arc;

use sqlx::PgPool;

use super::list::HotList;
use super::options::HotOptions;
use crate::intake::HotBroker;
use crate::telemetry::Telemetry;

/// What every step for accounts' own queues needs; clones are the same keeper.
#[derive(Clone)]
pub struct HotKeeper {
    /// Where the queues are written down.
    pub pool: PgPool,
    /// What is written, as far as is known here.
    pub list: Arc<HotList>,
    /// Where the queues are.
    pub broker: HotBroker,
    /// When they are made and given up.
    pub options: HotOptions,
    /// What is told of it.
    pub telemetry: Telemetry,
}
