//! Who may not be written to, and when: the gates that every job passes before it is metered.

mod chain;
pub mod phone_zones;
pub mod quiet_hours;

pub use chain::{Case, Gate, TurnedAway, turned_away};
