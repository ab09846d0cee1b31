#![doc = include_str!("../README.md")]

mod address;
mod channel;
mod error;
mod id;
mod job;
mod lane;
mod link;
mod names;
mod options;
mod publisher;
mod shared_link;
#[doc(hidden)]
pub mod wire;

pub use address::{AddressError, normalise_address};
pub use channel::Channel;
pub use error::{ConnectError, PublishError, Verdict};
pub use id::{AccountId, IdError, JobId};
pub use job::{Job, JobError, MAX_GROUP_ID_BYTES, MAX_JOB_BYTES, MAX_RECIPIENT_BYTES};
pub use lane::{
    Hint, Lane, LaneHints, LaneRule, Origin, Priority, TRAFFIC_LANE, UnrecognisedHints,
};
pub use names::{Prefix, PrefixError, routing_key};
pub use options::Options;
pub use publisher::Publisher;
pub use wire::UrlError;

pub use jiff::Timestamp;
