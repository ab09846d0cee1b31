//! The broker's URL, read as every publisher reads it.

pub use lanekeeper_client::wire::{Endpoint, UrlError};
