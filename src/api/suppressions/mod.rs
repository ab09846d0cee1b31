//! Who must not be written to.

mod inbound;
mod list;
mod one;
mod scope;
mod store;
mod view;

pub use inbound::*;
pub use list::*;
pub use one::*;
