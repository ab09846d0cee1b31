//! What operators see and use: logs, metrics, health, shutdown. It decides nothing.

pub mod logging;
pub mod metrics;
pub mod panics;
pub mod server;
pub mod shutdown;

pub use metrics::Metrics;
pub use server::{LaneReadiness, Readiness, ReadinessSource, serve};
pub use shutdown::Shutdown;
