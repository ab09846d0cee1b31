//! Who looks at which account.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::accounts::keys::KeyId;
use crate::api::places::Places;
use crate::domain::AccountId;
use crate::overview::{History, LanesView, SecondView, Sources};

/// In which part of a second, by the clock that all processes share, it is looked: when every process
/// has told what it did in the second before.
const LOOK_AT_MS: u64 = 250;

/// Streams at one time in this process.
const STREAMS: usize = 64;

/// Of these with one key, or without any.
const STREAMS_PER_KEY: usize = 8;

/// A look at an account, as all who watch it share it.
#[derive(Debug)]
pub(super) struct Tick {
    /// How its lanes stand.
    pub lanes: LanesView,
    /// Its last minute.
    pub minute: Vec<SecondView>,
    /// Of that, what may be new.
    pub news: Vec<SecondView>,
}

/// The newest look; nothing before the first one.
type Newest = watch::Receiver<Option<Arc<Tick>>>;

/// Looks at accounts for as long as somebody watches them.
#[derive(Debug)]
pub struct Watches {
    sources: Sources,
    watched: Mutex<HashMap<AccountId, Newest>>,
    pub(super) streams: Arc<Places<Option<KeyId>>>,
}

impl Watches {
    /// Looks by these sources.
    #[must_use]
    pub fn new(sources: Sources) -> Self {
        Self {
            sources,
            watched: Mutex::default(),
            streams: Places::new(STREAMS, STREAMS_PER_KEY),
        }
    }

    /// How an account's lanes stand: what those who watch it see, or have all asked for within the same
    /// second; `None` when whoever looks has broken down.
    pub async fn now(self: &Arc<Self>, account: &AccountId) -> Option<LanesView> {
        let mut newest = self.watch(account);
        let tick = newest.wait_for(Option::is_some).await.ok()?.clone();
        tick.map(|tick| tick.lanes.clone())
    }

    /// The looks at an account from now on.
    pub(super) fn watch(self: &Arc<Self>, account: &AccountId) -> Newest {
        let mut watched = self.watched();
        // Unless whoever looked has broken down.
        let newest = watched
            .get(account)
            .filter(|newest| newest.has_changed().is_ok());
        if let Some(newest) = newest {
            return newest.clone();
        }
        let (sender, newest) = watch::channel(None);
        watched.insert(account.clone(), newest.clone());
        let (looker, account) = (Arc::clone(self), account.clone());
        tokio::spawn(async move { looker.look_on(account, sender).await });
        newest
    }

    /// Looks once a second until nobody watches.
    async fn look_on(&self, account: AccountId, sender: watch::Sender<Option<Arc<Tick>>>) {
        let mut history = History::default();
        loop {
            let lanes = self.sources.look(&account, &mut history).await.lanes;
            sender.send_replace(Some(Arc::new(Tick {
                lanes,
                minute: history.minute(),
                news: history.news(),
            })));
            let past = self.sources.store.now_ms() % 1_000;
            sleep(Duration::from_millis(
                (1_000 + LOOK_AT_MS - past - 1) % 1_000 + 1,
            ))
            .await;
            let mut watched = self.watched();
            // The one in the map is a receiver as well.
            if sender.receiver_count() <= 1 {
                watched.remove(&account);
                return;
            }
        }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<AccountId, Newest>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
