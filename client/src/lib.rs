//! Makes jobs and publishes them to Lanekeeper.
//!
//! This crate owns the words that publishers and workers share: identifiers, channels, and the rule
//! that puts a job into a lane. The worker takes them from here.

mod channel;
mod id;
mod lane;

pub use channel::Channel;
pub use id::{AccountId, IdError, JobId};
pub use lane::{Hint, Lane, LaneHints, LaneRule, Origin, Priority, UnrecognisedHints};
