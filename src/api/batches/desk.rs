//! What batches need, beside what every request needs.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::counting::Counting;
use crate::api::error::{ApiError, ApiResult, Code};
use crate::api::outbox::AnyOutbox;
use crate::api::places::{Full, Place, Places};
use crate::api::store::Store;
use crate::domain::AccountId;
use crate::uploads::Uploads;

/// How soon to ask again where no upload is taken for now, in seconds.
const FULL_FOR: u64 = 10;

/// What is taken of batches.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// The largest upload, in bytes.
    pub largest: u64,
    /// Uploads under way at one time.
    pub uploads: usize,
    /// Those of one account among them.
    pub uploads_per_account: usize,
    /// After what time without an upload a batch is forgotten; `None`: never.
    pub life: Option<Duration>,
}

/// What batches need.
#[derive(Debug)]
pub struct BatchDesk {
    pub(super) uploads: Uploads,
    /// Over a connection of its own: no single message has to wait behind a batch.
    pub(super) outlet: AnyOutbox,
    /// Where it is kept what became of their jobs.
    pub(super) store: Store,
    pub(super) limits: BatchLimits,
    pub(super) counting: Counting,
    places: Arc<Places<AccountId>>,
}

impl BatchDesk {
    /// A desk that keeps how far uploads have come in `uploads`, puts their jobs into `outlet`, and
    /// asks `store` what became of them.
    #[must_use]
    pub fn new(uploads: Uploads, outlet: AnyOutbox, store: Store, limits: BatchLimits) -> Self {
        Self {
            uploads,
            outlet,
            store,
            limits,
            counting: Counting::default(),
            places: Places::new(limits.uploads, limits.uploads_per_account),
        }
    }

    /// Takes leave of the broker, by `deadline` at the latest.
    pub async fn close(&self, deadline: Instant) {
        self.outlet.close(deadline).await;
    }

    /// A place for one upload of an account.
    ///
    /// # Errors
    /// When there is none for now.
    pub(super) fn place(&self, account: &AccountId) -> ApiResult<Place<AccountId>> {
        self.places
            .take(account.clone())
            .map_err(|full| match full {
                Full::Holder(limit) => {
                    let message = format!("{limit} uploads of this account are under way already");
                    ApiError::new(Code::RateLimitExceeded, message)
                        .retry_after(FULL_FOR)
                        .detail("limit", limit)
                        .detail("limit_type", "uploads")
                }
                Full::Process(limit) => {
                    let message = format!("{limit} uploads are under way already: try again later");
                    ApiError::unavailable(message).retry_after(FULL_FOR)
                }
            })
    }
}
