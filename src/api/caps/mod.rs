//! How often one recipient may be written to.

mod list;
mod one;
mod store;
mod view;

pub use list::{CapList, list_caps};
pub use one::{put_cap, remove_cap, show_cap};
pub use view::{CapTerms, CapView};

pub(super) use list::__path_list_caps;
pub(super) use one::{__path_put_cap, __path_remove_cap, __path_show_cap};
