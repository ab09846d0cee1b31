//! The meter: what every store of counters does, and what happens when Redis does not.

#[path = "meter/behaviour.rs"]
mod behaviour;
#[path = "meter/caps.rs"]
mod caps;
#[path = "meter/doors.rs"]
mod doors;
#[path = "meter/faults.rs"]
mod faults;
#[path = "meter/keys.rs"]
mod keys;
#[path = "meter/model.rs"]
mod model;
#[path = "meter/reference.rs"]
mod reference;
#[path = "meter/sets.rs"]
mod sets;
#[path = "meter/targets.rs"]
mod targets;
#[path = "meter/world.rs"]
mod world;
