//! `lanekeeper enqueue`.

use std::process::ExitCode;

use crate::settings::Settings;

/// What to queue.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Queues jobs.
///
/// # Errors
/// When they cannot be queued.
#[expect(clippy::unused_async, reason = "a stand-in")]
pub async fn run(_settings: Settings, _args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("enqueueing is not wired yet")
}
