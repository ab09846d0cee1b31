//! The HTTP API: a second front door to the same gates, the same meter and the same lanes.

mod app;
mod auth;
mod body;
mod error;
mod gather;
mod lanes;
mod limits;
mod openapi;
mod outbox;
mod page;
mod query;
mod reply;
mod router;
mod seal;
pub mod send;
mod server;
mod store;

pub use app::App;
pub use auth::Caller;
pub use body::{Json, JsonBytes, MAX_BODY};
pub use error::{ApiError, ApiResult, Code, ErrorBody};
pub use gather::Gather;
pub use lanes::Watches;
pub use limits::RequestLimits;
pub use openapi::document;
pub use outbox::AnyOutbox;
pub use page::PageDoor;
pub use query::Query;
pub use reply::{Envelope, ErrorEnvelope, Meta, Reply};
pub use router::router;
pub use server::{Server, serve};
pub use store::Store;
