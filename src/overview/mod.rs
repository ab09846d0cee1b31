//! How the lanes of one account stand at this moment, for people: what the page at `/`, the route
//! `/api/v1/lanes` and the command `lanekeeper lanes` show.
//!
//! It is put together from what is there anyway: the policy from the directory, the counter and the
//! last minute from [`crate::activity`], what waits and what is paused from the database, and the
//! lengths of the queues from the broker. A part that cannot be asked is missing and named; the
//! others are shown all the same. Nothing is counted or changed by looking.

mod compose;
mod depths;
mod held;
mod history;
mod sources;
mod view;

pub use depths::{AmqpDepths, Depths};
pub use held::{Held, HeldStore, HoldNow, WaitingNow};
pub use history::History;
pub use sources::{Look, Sources};
pub use view::{
    LaneSecondView, LaneView, LanesView, LatencyView, MeterView, Missing, PausedView, SecondView,
    ShedView,
};
