//! What became of messages.

mod list;
mod one;
mod view;

pub use list::{MessageList, list_messages};
pub use one::show_message;
pub use view::{MessageSummary, MessageView};

pub(super) use list::__path_list_messages;
pub(super) use one::__path_show_message;
