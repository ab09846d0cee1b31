//! Lanekeeper: a dispatch worker for outbound messages with two traffic lanes and one budget.

pub mod accounts;
pub mod activity;
pub mod api;
pub mod backoff;
pub mod batch;
pub mod carrier;
pub mod cli;
pub mod clock;
pub mod digest;
pub mod dispatch;
pub mod domain;
pub mod embedded;
pub mod enqueueing;
pub mod gates;
pub mod intake;
pub mod judgement;
pub mod ledger;
pub mod meter;
pub mod ops;
pub mod overview;
pub mod postgres;
pub mod records;
pub mod settings;
pub mod telemetry;
pub mod uploads;
pub mod waiting;
