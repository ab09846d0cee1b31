//! What the settings say about the broker, as the AMQP side takes it.

use std::num::NonZeroU16;

use anyhow::Context;

use crate::intake::AmqpOptions;
use crate::settings::Settings;

/// The AMQP side's options.
///
/// # Errors
/// When the prefetch is zero, which the settings do not allow.
pub fn options(settings: &Settings) -> anyhow::Result<AmqpOptions> {
    let amqp = &settings.amqp;
    let host_name = std::env::var("HOSTNAME").unwrap_or_else(|_| std::process::id().to_string());
    Ok(AmqpOptions {
        prefix: amqp.prefix.to_string(),
        prefetch: NonZeroU16::new(amqp.prefetch).context("amqp.prefetch must not be 0")?,
        shed_delay: settings.lanes.shed_delay,
        confirm_timeout: amqp.confirm_timeout,
        heartbeat: amqp.heartbeat,
        connect_timeout: amqp.connect_timeout,
        host_name,
        default_region: settings.jobs.default_region,
        ..AmqpOptions::new(amqp.url.expose().as_str())
    })
}
