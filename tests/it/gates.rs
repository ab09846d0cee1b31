//! The gates on a real worker, with real services behind it.
//!
//! What loads the machine or measures times is under `scenarios` and `outages`.

mod chain;
mod deferral;
mod entries;
mod operator;
mod suppression;
