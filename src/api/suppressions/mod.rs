//! Who must not be written to.

mod inbound;
mod list;
mod one;
mod scope;
mod store;
mod view;

pub use inbound::{InboundMessage, InboundView, take_inbound};
pub use list::{SuppressionList, add_suppression, list_suppressions};
pub use one::{Chosen, remove_suppression, show_suppression};
pub use view::{NewSuppression, RemovedView, SuppressionView};

pub(super) use inbound::__path_take_inbound;
pub(super) use list::{__path_add_suppression, __path_list_suppressions};
pub(super) use one::{__path_remove_suppression, __path_show_suppression};
