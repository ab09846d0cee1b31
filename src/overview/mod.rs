//! How the lanes of one account stand at this moment, for people: what the page at `/`, the route
//! `/api/v1/lanes` and the command `lanekeeper lanes ACCOUNT` show; and every account that has a queue
//! of its own, for `lanekeeper lanes`.
//!
//! It is put together from what is there anyway: the policy from the directory, the counter and the
//! last minute from [`crate::activity`], what waits, what is paused and which accounts have queues of
//! their own from the database, and the lengths of the queues from the broker. A part that cannot be asked is missing and named; the
//! others are shown all the same. Nothing is counted or changed by looking.

mod compose;
mod depths;
mod held;
mod history;
mod hot_accounts;
mod own_queues;
mod sources;
mod view;

pub use depths::{AmqpDepths, Depths, Lengths};
pub use held::{Held, HeldStore, HoldNow, WaitingNow};
pub use history::History;
pub use hot_accounts::{Drain, DrainedBy, HotAccountView, HotView};
pub use own_queues::{OwnList, OwnQueues};
pub use sources::{Look, Sources};
pub use view::{
    LaneSecondView, LaneView, LanesView, LatencyView, MeterView, Missing, PausedView, SecondView,
    ShedView,
};
