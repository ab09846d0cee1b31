//! What the pipeline needs of the outside: a broker, a meter, a carrier, records, a clock.
//!
//! Each port has a real adapter and an embedded one, so that the whole pipeline also runs in one
//! process under paused time.

mod broker;
mod carrier;
mod meter;
mod records;

use jiff::Timestamp;

pub use broker::{Broker, DeadLetter, Delivery, EventBatch, PublishError, Receipt, Requeue, Route};
pub use carrier::{Accepted, Carrier, SendError, SendVerdict};
pub use meter::{
    AccountAnswer, AccountRequest, CapKey, CapRequest, Conclusion, Door, JobRequest, Meter,
    TargetCeiling, TryId, TryResult,
};
pub use records::{
    Admission, Due, Ended, Facts, Gap, Hold, Inquiry, Records, RecordsError, WaitReason, WaitingJob,
};

/// The wall clock. Durations are measured with [`tokio::time::Instant`], which tests can pause; the wall clock
/// only serves instants that come from or go to the outside.
pub trait Clock: Send + Sync + 'static {
    /// The present instant.
    fn now(&self) -> Timestamp;
}
