//! Handing admitted jobs to their carriers.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::fleet::Fleet;
use super::in_hand::Try;
use super::ports::{Accepted, Carrier, SendError, SendVerdict};
use super::settle::Unsent;
use crate::telemetry::Telemetry;

/// How long past its time-out a carrier call is waited for; well within the claim's second.
const GRACE: Duration = Duration::from_millis(250);

/// What became of an admitted job.
#[derive(Debug)]
pub(super) enum Ending {
    /// A carrier was asked.
    Tried(Result<Accepted, SendError>),
    /// It ends without a carrier being asked.
    Unsent(Unsent),
}

/// A try and how it ended.
#[derive(Debug)]
pub(super) struct Finished {
    pub attempt: Try,
    pub result: Ending,
}

/// Starts all tries at once and reports each as soon as it ends, together with the others that
/// have ended by then.
pub(super) async fn send_all<C: Carrier, E: From<Vec<Finished>>>(
    fleet: Arc<Fleet<C>>,
    tries: Vec<Try>,
    telemetry: Telemetry,
    report: mpsc::UnboundedSender<E>,
) {
    let mut running: FuturesUnordered<_> = tries
        .into_iter()
        .map(|attempt| send_one(&fleet, attempt, &telemetry))
        .collect();
    while let Some(first) = running.next().await {
        let mut finished = vec![first];
        while let Some(Some(next)) = running.next().now_or_never() {
            finished.push(next);
        }
        if report.send(E::from(finished)).is_err() {
            return;
        }
    }
}

async fn send_one<C: Carrier>(fleet: &Fleet<C>, attempt: Try, telemetry: &Telemetry) -> Finished {
    let carrier = fleet.at(attempt.in_hand.carrier);
    let started = Instant::now();
    // The adapter's own time-out knows more: this one is for an adapter that does not keep it.
    let limit = carrier.timeout + GRACE;
    let call = carrier
        .adapter
        .send(&attempt.in_hand.job, attempt.in_hand.attempts + 1);
    let result = timeout(limit, call)
        .await
        .unwrap_or_else(|_| Err(timed_out(carrier.timeout)));
    telemetry.called(&carrier.name, started.elapsed());
    Finished {
        attempt,
        result: Ending::Tried(result),
    }
}

/// The carrier may have taken the job before it fell silent.
fn timed_out(after: Duration) -> SendError {
    SendError {
        verdict: SendVerdict::Unknown,
        retry_after: None,
        detail: Cow::Owned(format!("no answer within {} ms", after.as_millis())),
    }
}
