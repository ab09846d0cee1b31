//! Everything that is tested on real services, in one binary.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a panic in a test is its report"
)]

mod carriers;
mod dead;
mod enqueue;
mod intake;
mod meter;
mod operations;
mod outages;
mod scenarios;
mod settings;
mod support;
