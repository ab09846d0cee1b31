//! The carriers: where messages leave for the outside world.

pub mod breaker;
