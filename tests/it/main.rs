//! Everything that is tested on real services, in one binary.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a panic in a test is its report"
)]

mod accounts;
mod api;
mod batch_files;
mod carriers;
mod client;
mod database;
mod dead;
mod demo;
mod deploy;
mod enqueue;
mod explain;
mod gates;
mod hot;
mod intake;
mod ledger;
mod meter;
mod migrations;
mod operations;
mod outages;
mod phone_zones;
mod publishing_docs;
mod scenarios;
mod schemas;
mod settings;
mod support;
mod uploads;
mod waiting;
