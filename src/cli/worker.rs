//! `lanekeeper worker`.

use std::process::ExitCode;

use crate::settings::Settings;

/// Runs a worker until it is told to stop.
///
/// # Errors
/// When it cannot start.
#[expect(clippy::unused_async, reason = "a stand-in")]
pub async fn run(_settings: Settings) -> anyhow::Result<ExitCode> {
    anyhow::bail!("the worker is not wired yet")
}
