//! The pipeline: take, slot, meter, send, settle.
//!
//! A delivery becomes a job [in hand](in_hand), stands in its [lane's queue](lane_queue) until the
//! [dispatcher] takes it in drain order together with a [slot](slots) of its carrier, and is then
//! metered. What is admitted is [sent](send), its result [recorded](record), its outcome
//! [announced and acknowledged](settle). What is not admitted is held, or [departs](depart) to a
//! queue that brings it back.

mod books;
mod ceilings;
mod depart;
mod dispatcher;
mod fleet;
mod gaps;
mod in_hand;
mod lane_queue;
mod options;
mod pace;
mod pauses;
mod pipeline;
pub mod ports;
mod pressure;
mod record;
mod retry;
mod send;
mod settle;
#[cfg(test)]
mod simulation;
mod slots;
#[cfg(test)]
mod test_support;
mod waiting;

pub(crate) use dispatcher::{facts_of_each, job_request};
pub use fleet::{Fleet, FleetCarrier};
pub use options::{HasOwnQueue, PipelineOptions, PolicyOf, PressureWatch};
pub use pipeline::Pipeline;
pub use pressure::{Pressed, PressureOptions};
pub use retry::{Retry, RetryPolicy};
pub use slots::{Slots, TooFewSlots};
