//! One job that waits.

use crate::dispatch::ports::{Requeue, Route};
use crate::domain::{JobHeaders, JobId, Payload};

use super::line::Line;

/// A job that waits, as far as its publish needs it.
pub(super) struct Row {
    /// What it is deleted by.
    pub number: i64,
    pub id: String,
    pub job: Vec<u8>,
    pub attempts: i32,
    pub sheds: i32,
    pub enqueued_ms: Option<i64>,
}

impl Row {
    /// The job on its way back to its lane's queue. An admission that it once had is long over.
    ///
    /// # Errors
    /// When the row's id is none, which the table does not allow.
    pub(super) fn into_requeue(self, line: &Line) -> Result<Requeue, sqlx::Error> {
        let id = JobId::parse(&self.id);
        Ok(Requeue {
            id: id.map_err(|error| sqlx::Error::Decode(error.into()))?,
            account: line.account.clone(),
            lane: line.lane,
            route: Route::Queue,
            headers: JobHeaders {
                attempts: u32::try_from(self.attempts).unwrap_or(0),
                sheds: u32::try_from(self.sheds).unwrap_or(0),
                enqueued_ms: self
                    .enqueued_ms
                    .and_then(|millis| u64::try_from(millis).ok()),
                admitted_ms: None,
            },
            payload: Payload::new(self.job),
        })
    }
}
