//! Who may not be written to, and when: the gates that every job passes before it is metered.

pub mod phone_zones;
pub mod quiet_hours;
