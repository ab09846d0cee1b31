//! How often one recipient may be written to.

mod list;
mod one;
mod store;
mod view;

pub use list::*;
pub use one::*;
