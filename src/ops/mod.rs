//! What operators see and use: logs, metrics, health, shutdown. It decides nothing.

pub mod logging;
pub mod metrics;
