//! `lanekeeper enqueue` as a user runs it, on a real broker.

mod corpus;
mod desk;
mod faults;
mod rows;
mod scenarios;
mod state;

pub use desk::Desk;
