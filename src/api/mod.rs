//! The HTTP API: a second front door to the same gates, the same meter and the same lanes.

mod app;
mod auth;
pub mod batches;
mod body;
mod error;
mod gather;
mod hearing;
mod limits;
mod openapi;
mod outbox;
mod query;
mod reply;
mod router;
mod seal;
pub mod send;
mod server;
mod store;
mod wrong;

pub use app::App;
pub use auth::Caller;
pub use body::{Json, JsonBytes, MAX_BODY};
pub use error::{ApiError, ApiResult, Code, ErrorBody};
pub use gather::Gather;
pub use limits::RequestLimits;
pub use openapi::document;
pub use outbox::AnyOutbox;
pub use query::Query;
pub use reply::{Envelope, ErrorEnvelope, Meta, Reply};
pub use router::router;
pub use server::{Server, listen, serve};
pub use store::Store;
