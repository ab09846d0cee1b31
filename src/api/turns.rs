//! Turns at the database: what one account reads keeps nobody else waiting.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::app::App;
use super::auth::Caller;
use crate::domain::AccountId;

/// Requests of one account that read at one time: fewer than half of the connections that there are for
/// reading. Further ones wait for their turn, as long as an answer may take.
const READ_AT_ONCE: usize = 2;

/// Accounts up to which nothing is swept.
const SWEEP_ABOVE: usize = 1024;

/// The turns of each account.
#[derive(Debug, Default)]
pub struct Turns(Mutex<HashMap<AccountId, Arc<Semaphore>>>);

impl Turns {
    async fn take(&self, account: &AccountId) -> Option<OwnedSemaphorePermit> {
        self.of(account).acquire_owned().await.ok()
    }

    fn of(&self, account: &AccountId) -> Arc<Semaphore> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() > SWEEP_ABOVE {
            // Whoever waits or reads holds one as well.
            turns.retain(|_, turns| Arc::strong_count(turns) > 1);
        }
        let turns = turns.entry(account.clone());
        Arc::clone(turns.or_insert_with(|| Arc::new(Semaphore::new(READ_AT_ONCE))))
    }
}

/// Lets an account's reading requests pass so many at a time.
pub(super) async fn in_turn(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Caller>();
    let reader = caller.filter(|_| matches!(*request.method(), Method::GET | Method::HEAD));
    let Some(account) = reader.map(|caller| caller.account.clone()) else {
        return next.run(request).await;
    };
    let _turn = app.turns.take(&account).await;
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn an_account_waits_for_itself_alone() {
        let turns = Turns::default();
        let account = |name| AccountId::parse(name).unwrap();
        let (acme, other) = (account("acme"), account("other"));
        let mut reading: Vec<_> = (0..READ_AT_ONCE)
            .map(|_| turns.take(&acme).now_or_never().flatten().unwrap())
            .collect();
        assert!(turns.take(&acme).now_or_never().is_none());
        assert!(turns.take(&other).now_or_never().flatten().is_some());
        reading.pop();
        assert!(turns.take(&acme).now_or_never().flatten().is_some());
    }
}
