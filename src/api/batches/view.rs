//! What is told of batches.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::counting::Counted;
use super::store::Figures;
use crate::batch::RowError;
use crate::enqueueing::Mark;
use crate::uploads::Upload;

/// A batch whose good rows are all queued.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct QueuedBatch {
    /// Its name. The message of the row N has the id `<batch_id>-N`.
    pub batch_id: String,
    /// Always `queued`.
    pub status: QueuedStatus,
    /// Rows that were read; blank ones are none.
    pub rows: u64,
    /// Rows whose messages are queued.
    pub accepted: u64,
    /// Those of them that an earlier upload of the same had queued already.
    pub already_queued: u64,
    /// Rows that were left out, because an earlier row has the same recipient.
    pub duplicates: u64,
    /// Rows that are no messages.
    pub rejected: u64,
    /// The row up to which all this is said: the last one.
    pub complete_to_row: u64,
    /// The first hundred of the rejected rows.
    pub rejections: Vec<Rejection>,
    /// Whether there are more: `GET /api/v1/batches/{batch_id}/rejections` lists all.
    pub more_rejections: bool,
}

/// That all is queued.
#[derive(Debug, Clone, Copy, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueuedStatus {
    /// Every good row is in a queue.
    Queued,
}

/// A row that is no message. Nothing of its values is repeated: recipients and texts are among them.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Rejection {
    /// The line of the file on which the row starts, from 1, the header line included; in a JSON
    /// array the item's place, from 1.
    pub row: u64,
    /// The field that is wrong; `row` where it is the whole.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

impl From<RowError> for Rejection {
    fn from(error: RowError) -> Self {
        Self {
            row: error.line,
            field: error.field,
            reason: error.reason,
        }
    }
}

impl QueuedBatch {
    /// The most rejections that stand in the answer to an upload.
    pub(super) const LISTED: u32 = 100;

    /// `rejections` are the first ones, one more than is listed if there are so many.
    pub(super) fn new(
        batch: &str,
        mark: Mark,
        already_queued: u64,
        rejections: Vec<RowError>,
    ) -> Self {
        let most = Self::LISTED as usize;
        let more_rejections = rejections.len() > most;
        let rejections = rejections.into_iter().take(most);
        Self {
            batch_id: batch.to_owned(),
            status: QueuedStatus::Queued,
            rows: mark.counts.rows(),
            accepted: mark.counts.good(),
            already_queued,
            duplicates: mark.counts.duplicates,
            rejected: mark.counts.rejected,
            complete_to_row: mark.line,
            rejections: rejections.map(Rejection::from).collect(),
            more_rejections,
        }
    }
}

/// How far a batch has come.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct BatchView {
    /// Its name.
    pub batch_id: String,
    /// How far it has come.
    pub status: BatchStatus,
    /// When it was first uploaded.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When something was last noted of its upload.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// When every good row was queued; null before.
    #[schema(format = DateTime)]
    pub queued_at: Option<String>,
    /// Rows that were settled so far.
    pub rows: u64,
    /// Rows whose messages are queued.
    pub accepted: u64,
    /// Rows that were left out, because an earlier row has the same recipient.
    pub duplicates: u64,
    /// Rows that are no messages: `GET /api/v1/batches/{batch_id}/rejections` lists them.
    pub rejected: u64,
    /// The row up to which everything is settled. The same upload again goes on behind it.
    pub complete_to_row: u64,
    /// What became of the accepted messages; null where counting them takes too long just now.
    pub outcomes: Option<BatchOutcomes>,
    /// Whether the ledger may not know all of them: it forgets what is older than
    /// `ledger.retention_days`, has an end more than once, or could not be told of jobs of the account
    /// while the batch was on its way. Where `outcomes` is null it says nothing of the last two.
    pub incomplete: bool,
}

/// How far a batch has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BatchStatus {
    /// Its rows are being queued.
    Queueing,
    /// Its upload ended before its rows did: the same upload again goes on.
    Stopped,
    /// Every good row is queued.
    Queued,
    /// Every accepted message has ended.
    Ended,
}

/// What became of a batch's messages.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct BatchOutcomes {
    /// Handed to a carrier.
    pub dispatched: u64,
    /// Refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Failed, by reason.
    pub failed: BTreeMap<String, u64>,
    /// Past their `expires_at` before they could be sent.
    pub expired: u64,
    /// Cancelled, with the account, campaign, journey or batch.
    pub cancelled: u64,
    /// Waiting in the database, for an hour or a decision.
    pub waiting: u64,
    /// The same by reason.
    pub waiting_for: BTreeMap<String, u64>,
    /// Accepted, and neither ended nor waiting: in the queues, or in a worker's hands.
    pub pending: u64,
    /// When this was counted.
    #[schema(format = DateTime)]
    pub counted_at: String,
}

impl BatchView {
    /// `has_faded`: the ledger has begun to forget what is as old as the batch.
    pub(super) fn new(
        batch: &str,
        upload: &Upload,
        counted: Option<&Counted>,
        has_faded: bool,
    ) -> Self {
        let counts = upload.counts();
        let accepted = counts.good();
        let is_settled = upload.finished_at.is_some();
        let settled = is_settled.then_some(accepted);
        let has_ended = counted.is_some_and(|it| it.figures.ended() >= accepted);
        Self {
            batch_id: batch.to_owned(),
            status: match (is_settled, upload.busy_for) {
                (true, _) if has_ended => BatchStatus::Ended,
                (true, _) => BatchStatus::Queued,
                (false, Some(_)) => BatchStatus::Queueing,
                (false, None) => BatchStatus::Stopped,
            },
            created_at: shown(upload.created_at),
            updated_at: shown(upload.updated_at),
            queued_at: upload.finished_at.map(shown),
            rows: counts.rows(),
            accepted,
            duplicates: counts.duplicates,
            rejected: counts.rejected,
            complete_to_row: upload.mark().line,
            outcomes: counted.map(|it| outcomes(&it.figures, accepted, it.at)),
            incomplete: has_faded || counted.is_some_and(|it| is_doubtful(&it.figures, settled)),
        }
    }
}

/// Whether some of a batch's jobs may be missing from the figures, or be there twice. `settled`: how
/// many there are, once all are queued; before, some may have ended that were not yet noted as queued.
fn is_doubtful(figures: &Figures, settled: Option<u64>) -> bool {
    let known = figures.ended() + figures.waits();
    match settled {
        Some(accepted) => known > accepted || figures.has_gap && known < accepted,
        None => figures.has_gap,
    }
}

fn outcomes(figures: &Figures, accepted: u64, at: Timestamp) -> BatchOutcomes {
    let known = figures.ended() + figures.waits();
    BatchOutcomes {
        dispatched: figures.dispatched,
        refused: figures.refused.clone(),
        failed: figures.failed.clone(),
        expired: figures.expired,
        cancelled: figures.cancelled,
        waiting: figures.waits(),
        waiting_for: figures.waiting.clone(),
        pending: accepted.saturating_sub(known),
        counted_at: shown(at),
    }
}

pub(super) fn shown(instant: Timestamp) -> String {
    format!("{instant:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gap is of no account where everything is known all the same.
    #[test]
    fn figures_are_doubtful_where_a_gap_may_hold_what_is_missing() {
        let figures = |dispatched, waiting, has_gap| Figures {
            dispatched,
            waiting: [("paused".to_owned(), waiting)].into(),
            has_gap,
            ..Figures::default()
        };
        for (dispatched, waiting, has_gap, settled, expected) in [
            (7, 2, false, Some(10), false),
            (7, 2, true, Some(10), true),
            (8, 2, true, Some(10), false),
            (9, 2, false, Some(10), true),
            (9, 2, false, None, false),
            (0, 0, true, None, true),
        ] {
            let figures = figures(dispatched, waiting, has_gap);
            assert_eq!(is_doubtful(&figures, settled), expected, "{figures:?}");
        }
    }
}
