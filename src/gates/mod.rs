//! Who may not be written to, and when: the gates that every job passes before it is metered.

mod chain;
pub mod phone_zones;
mod quiet_details;
pub mod quiet_hours;

pub use chain::{Case, Gate, TurnedAway, turned_away};
pub use quiet_details::{QuietDetails, QuietReason, Receiver, preview, quiet_details};
