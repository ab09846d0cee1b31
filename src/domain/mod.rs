//! The words of the trade: jobs, lanes, budgets, verdicts and outcomes.
//!
//! Everything here is pure: no I/O, no clock, no runtime, no logging. What a rule needs to know
//! (the time, a store's answer) is passed in, so each rule can be tested by itself.
//!
//! The words that publishers use as well (identifiers, channels, lanes and the rule that chooses
//! one) live in `lanekeeper-client`, so that they are written once; they are just as pure.

mod budget;
mod event;
mod headers;
mod hot_queue;
mod inbound;
mod job;
mod outcome;
mod phone;
mod recipient;
mod verdict;

pub use budget::{Budget, BudgetError, Ceilings, Reserve};
pub use event::OutcomeEvent;
pub use headers::JobHeaders;
pub use hot_queue::HotQueue;
pub use inbound::{Keywords, Wish};
pub use job::{Content, Decoded, Job, JobHead, Payload};
pub use lanekeeper_client::{
    AccountId, AddressError, Channel, Hint, IdError, JobId, Lane, LaneHints, LaneRule, Origin,
    Priority, TRAFFIC_LANE, UnrecognisedHints, normalise_address,
};
pub use outcome::{Failure, Field, Outcome, Refusal};
pub use phone::{PhoneError, Region, normalise_number, normalise_sender};
pub use recipient::{
    RecipientError, Scope, check_recipient, recipient_digest, recipient_key, typed_recipient_key,
};
pub use verdict::{Capped, Counter, Limit, MeterMode, SentRecord, Verdict};
