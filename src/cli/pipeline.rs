//! What the settings say about the pipeline, for every command that runs one.

use std::sync::Arc;

use crate::dispatch::{FleetCarrier, PipelineOptions, PolicyOf, RetryPolicy};
use crate::domain::Lane;
use crate::meter::FailoverOptions;
use crate::settings::{Carrier, Settings};

/// How a worker takes, sheds and tries again. `try_seed` tells its tries from those of others.
pub(super) fn options(settings: &Settings, policy: PolicyOf, try_seed: u64) -> PipelineOptions {
    PipelineOptions {
        prefetch: usize::from(settings.amqp.prefetch),
        sheds_per_second: Lane::ALL.map(|lane| settings.lanes.sheds_per_second(lane)),
        retry: RetryPolicy {
            max_attempts: settings.jobs.max_attempts,
            base: settings.jobs.retry_base,
            longest_here: settings.jobs.park_above,
        },
        announce_outcomes: settings.outcomes.enabled,
        claim_life: settings.claims.life.unwrap_or_default(),
        policy,
        pressure: None,
        try_seed,
    }
}

/// How a worker does without the shared counter.
pub(super) fn failover(settings: &Settings) -> FailoverOptions {
    FailoverOptions {
        claim_life: settings.claims.life.unwrap_or_default(),
        ..FailoverOptions::default()
    }
}

/// One carrier of a worker's fleet.
pub(super) fn carrier<C>(name: &Arc<str>, settings: &Carrier, adapter: C) -> FleetCarrier<C> {
    FleetCarrier {
        name: Arc::clone(name),
        adapter: Arc::new(adapter),
        max_in_flight: usize::from(settings.max_in_flight),
        timeout: settings.timeout,
        breaker: settings.breaker,
    }
}
