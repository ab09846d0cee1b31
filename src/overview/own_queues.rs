//! Which accounts have queues of their own.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::domain::{AccountId, Lane};
use crate::hot::{self, Listed};
use crate::postgres::Database;

/// How long an answer is good enough: so many are asked for, whoever watches.
const GOOD_FOR: Duration = Duration::from_millis(900);

/// How long the database is waited for, whatever its own limit is.
const ASKED_FOR: Duration = Duration::from_secs(1);

/// What is listed, as far as is known.
#[derive(Debug, Clone, Default)]
pub struct OwnList {
    /// The queues: those that were listed last, where nobody says what is listed now.
    pub queues: Arc<[Listed]>,
    /// Whether this is what is listed now.
    pub is_known: bool,
}

impl OwnList {
    /// An account's queue in a lane, if it is known to have one now.
    #[must_use]
    pub fn of(&self, account: &AccountId, lane: Lane) -> Option<&Listed> {
        let mut queues = self.queues.iter();
        let its = |own: &&Listed| own.queue.lane == lane && own.queue.account == *account;
        queues.find(its).filter(|_| self.is_known)
    }
}

/// Where it is written down. All who ask within a moment share one answer.
#[derive(Debug)]
pub struct OwnQueues {
    /// None: there are no such queues without a database.
    database: Option<Database>,
    /// What the names of its queues begin with.
    prefix: String,
    last: Mutex<Option<(Instant, OwnList)>>,
}

impl OwnQueues {
    /// Those of a deployment, by the prefix of its queues' names.
    #[must_use]
    pub fn in_database(database: Database, prefix: &str) -> Self {
        Self {
            database: Some(database),
            prefix: prefix.to_owned(),
            last: Mutex::default(),
        }
    }

    /// Without a database there are none.
    #[must_use]
    pub fn none() -> Self {
        Self {
            database: None,
            prefix: String::new(),
            last: Mutex::default(),
        }
    }

    /// Whether there can be any.
    #[must_use]
    pub const fn are_possible(&self) -> bool {
        self.database.is_some()
    }

    /// Those that are listed now, those of both lanes and in every state.
    pub async fn now(&self) -> OwnList {
        let Some(database) = &self.database else {
            return OwnList {
                is_known: true,
                ..OwnList::default()
            };
        };
        let mut last = self.last.lock().await;
        if let Some((at, list)) = &*last
            && at.elapsed() < GOOD_FOR
        {
            return list.clone();
        }
        let asking = database.ask(async |connection| hot::listed(connection, &self.prefix).await);
        let found = match timeout(ASKED_FOR, asking).await {
            Ok(Ok(queues)) => OwnList {
                queues: queues.into(),
                is_known: true,
            },
            Ok(Err(_)) | Err(_) => OwnList {
                queues: last.take().map(|(_, list)| list.queues).unwrap_or_default(),
                is_known: false,
            },
        };
        *last = Some((Instant::now(), found.clone()));
        found
    }
}
