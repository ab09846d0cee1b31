//! For writing only: not committed.
#![allow(clippy::unwrap_used, missing_docs, dead_code)]
#[path = "it/support/mod.rs"]
mod support;
#[path = "it/gates"]
mod gates {
    mod chain;
    mod deferral;
    mod entries;
    mod suppression;
}
#[path = "it/scenarios"]
mod scenarios {
    mod caps;
    mod deferral;
    mod holds;
    mod opt_out;
    mod targets;
}
#[path = "it/outages"]
mod outages {
    use crate::support::jobs::{Offer, Publisher};
    use std::{collections::HashMap, time::Duration};
    use tokio::time::Instant;
    const SECOND: Duration = Duration::from_secs(1);
    fn otp(id: String) -> Offer {
        Offer::otp("acme", id)
    }
    fn marketing(id: String) -> Offer {
        Offer::marketing("acme", id)
    }
    fn spawn_passwords(
        publisher: Publisher,
        per_second: u32,
        count: usize,
    ) -> tokio::task::JoinHandle<HashMap<String, Instant>> {
        tokio::spawn(async move {
            let codes = Offer::many(count, "code", otp);
            publisher.publish_at(per_second, &codes).await
        })
    }
    mod database;
    mod ledger;
}
