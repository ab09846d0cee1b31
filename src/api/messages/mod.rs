//! What became of messages.

mod list;
mod one;
mod view;

pub use list::*;
pub use one::*;
