//! Where an account's figures come from.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::compose::Answers;
use super::depths::{Depths, Lengths};
use super::held::{Held, HeldStore};
use super::history::History;
use super::own_queues::{OwnList, OwnQueues};
use super::view::LanesView;
use crate::accounts::Directory;
use crate::activity::{Store, WindowNow};
use crate::dispatch::ports::Clock;
use crate::domain::{AccountId, MeterMode};

/// How long what the database said is good enough.
const GOOD_FOR: Duration = Duration::from_secs(2);

/// How long the database is waited for, whatever its own limit is.
const ASKED_FOR: Duration = Duration::from_millis(1_500);

/// Everybody who is asked.
pub struct Sources {
    /// The ceilings.
    pub directory: Arc<Directory>,
    /// The counter and the last minute.
    pub store: Arc<Store>,
    /// What waits, and what is paused.
    pub held: HeldStore,
    /// Which accounts have queues of their own.
    pub own: OwnQueues,
    /// The lengths of the broker's queues.
    pub depths: Depths,
    /// The clock of this process.
    pub clock: Arc<dyn Clock>,
    /// Whose counter this process itself decides by.
    pub mode: Arc<dyn Fn() -> MeterMode + Send + Sync>,
}

/// A look at an account.
#[derive(Debug, Clone)]
pub struct Look {
    /// How its lanes stand.
    pub lanes: LanesView,
    /// Whether the store of the last minute answered, so that the history is up to date.
    pub is_fresh: bool,
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

impl Sources {
    /// How an account's lanes stand. Ends within the longest of the sources' own time limits; those of
    /// the list of own queues and of the broker, which come one after the other, count together.
    pub async fn look(&self, account: &AccountId, history: &mut History) -> Look {
        let seconds = history.to_read(self.store.now_ms());
        let known = history.held.take();
        let (read, held, (own, lengths)) = tokio::join!(
            self.store.read(account, seconds.clone()),
            self.held(account, known),
            self.queues(),
        );
        let mut window: Option<WindowNow> = None;
        if let Ok(reading) = read {
            window = Some(reading.window);
            history.take_in(&seconds, reading.seconds);
        }
        history.held.clone_from(&held);
        let policy = self.directory.policy(account);
        let is_shared = window.is_some() && self.store.takes_writes();
        let lanes = Answers {
            account,
            now: self.clock.now(),
            ceilings: policy.map(|policy| policy.ceilings),
            mode: if is_shared {
                (self.mode)()
            } else {
                MeterMode::Local
            },
            window,
            history,
            held: held.map(|(_, held)| held),
            lengths: lengths.as_deref(),
            own: &own,
        };
        Look {
            lanes: lanes.view(),
            is_fresh: window.is_some(),
        }
    }

    /// Which accounts have queues of their own, and how long all queues are.
    pub(super) async fn queues(&self) -> (OwnList, Option<Arc<Lengths>>) {
        let own = self.own.now().await;
        let lengths = self.depths.now(&own.queues).await;
        (own, lengths)
    }

    async fn held(
        &self,
        account: &AccountId,
        known: Option<(Instant, Held)>,
    ) -> Option<(Instant, Held)> {
        let good = known.filter(|(at, _)| at.elapsed() < GOOD_FOR);
        if good.is_some() {
            return good;
        }
        let asked = timeout(ASKED_FOR, self.held.of(account)).await;
        let held = asked.ok()?.ok()?;
        Some((Instant::now(), held))
    }
}
