//! What the tests stand on: private services, worker processes, a stub carrier.

pub mod rabbit;
pub mod redis;
pub mod stub;
pub mod worker;
