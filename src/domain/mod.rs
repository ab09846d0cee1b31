//! The words of the trade: jobs, lanes, budgets, verdicts and outcomes.
//!
//! Everything here is pure: no I/O, no clock, no runtime, no logging. What a rule needs to know
//! (the time, a store's answer) is passed in, so each rule can be tested by itself.

mod budget;
mod channel;
mod event;
mod headers;
mod id;
mod job;
mod lane;
mod outcome;
mod phone;
mod verdict;

pub use budget::{Budget, BudgetError, Ceilings, Reserve};
pub use channel::Channel;
pub use event::OutcomeEvent;
pub use headers::JobHeaders;
pub use id::{AccountId, IdError, JobId};
pub use job::{Content, Decoded, Job, JobHead, Payload};
pub use lane::{Hint, Lane, LaneHints, LaneRule, Origin, Priority, UnrecognisedHints};
pub use outcome::{Failure, Field, Outcome, Refusal};
pub use phone::{PhoneError, Region, normalise_number, normalise_sender};
pub use verdict::{Counter, Limit, MeterMode, SentRecord, Verdict};
