//! What is paused or cancelled.

mod list;
mod one;
mod store;
mod view;

pub use list::*;
pub use one::*;
