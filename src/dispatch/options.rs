//! What an operator can set about the pipeline.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::pressure::{Pressed, PressureOptions};
use super::retry::RetryPolicy;
use crate::accounts::AccountPolicy;
use crate::domain::{AccountId, Ceilings, Lane};

/// Looks an account's policy up; `None` when it is unknown and unknown accounts are refused.
pub type PolicyOf = Arc<dyn Fn(&AccountId) -> Option<Arc<AccountPolicy>> + Send + Sync>;

/// Whether an account has a queue of its own in a lane.
pub type HasOwnQueue = Arc<dyn Fn(Lane, &AccountId) -> bool + Send + Sync>;

/// Who wants to know which accounts are under pressure, and from when on.
#[derive(Clone)]
pub struct PressureWatch {
    /// When one is.
    pub options: PressureOptions,
    /// Which accounts have been helped: what they still have in the queues that are shared goes over
    /// to their own.
    pub has_own_queue: HasOwnQueue,
    /// Where it is told, time and again.
    pub tell: mpsc::UnboundedSender<Pressed>,
}

/// The pipeline's settings.
#[derive(Clone)]
pub struct PipelineOptions {
    /// Messages that each lane's queue may have delivered and unsettled here.
    pub prefetch: usize,
    /// Jobs per second that may go back to the queues, by lane in drain order.
    pub sheds_per_second: [u32; 2],
    /// When jobs are tried again.
    pub retry: RetryPolicy,
    /// Whether outcome events are published.
    pub announce_outcomes: bool,
    /// How long a claim tells that a job was sent; of older jobs the ledger is asked.
    pub claim_life: Duration,
    /// The accounts.
    pub policy: PolicyOf,
    /// Whom to tell of accounts under pressure; nobody where they cannot have queues of their own.
    pub pressure: Option<PressureWatch>,
    /// What makes try ids differ from those of other workers.
    pub try_seed: u64,
}

impl PipelineOptions {
    /// The longest that a transactional job is held for its account's window.
    pub const LONGEST_HOLD: Duration = Duration::from_millis(1200);

    /// The account's ceilings; `None` when its jobs are refused.
    #[must_use]
    pub fn ceilings(&self, account: &AccountId) -> Option<Ceilings> {
        (self.policy)(account).map(|policy| policy.ceilings)
    }

    /// How many transactional jobs are held at once: a quarter of the prefetch.
    #[must_use]
    pub fn most_held(&self) -> usize {
        (self.prefetch / 4).max(1)
    }
}

impl fmt::Debug for PipelineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineOptions")
            .field("prefetch", &self.prefetch)
            .field("sheds_per_second", &self.sheds_per_second)
            .field("retry", &self.retry)
            .field("announce_outcomes", &self.announce_outcomes)
            .finish_non_exhaustive()
    }
}
