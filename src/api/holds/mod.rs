//! What is paused or cancelled.

mod list;
mod one;
mod store;
mod view;

pub use list::{HoldList, add_hold, list_holds};
pub use one::{Resuming, resume};
pub use view::{HoldView, NewHold, ResumedView};

pub(super) use list::{__path_add_hold, __path_list_holds};
pub(super) use one::__path_resume;
