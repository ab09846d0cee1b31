//! First stage after a try: its end is recorded in the job's claim, before anything else is done
//! with it, so that no other worker sends a job again whose result is known.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::fleet::Fleet;
use super::in_hand::InHand;
use super::ports::{Accepted, CapKey, Clock, Conclusion, Meter, SendError, SendVerdict, TryResult};
use super::send::{Ending, Finished};
use super::settle::Settlement;
use crate::activity::Tally;
use crate::domain::{Failure, Outcome};

/// The most tries that are recorded in one go.
const BATCH: usize = 512;

/// A job whose try failed in a way that may pass.
#[derive(Debug)]
pub(super) struct TryAgain {
    pub in_hand: InHand,
    /// How long the carrier asked to be left alone.
    pub retry_after: Option<Duration>,
}

/// Where recorded tries go on to.
pub(super) struct Recorder<M, C, K> {
    pub meter: Arc<M>,
    pub fleet: Arc<Fleet<C>>,
    pub clock: Arc<K>,
    pub max_attempts: u32,
    pub tally: Tally,
    pub settle: mpsc::UnboundedSender<Settlement>,
}

impl<M: Meter, C: Send + Sync + 'static, K: Clock> Recorder<M, C, K> {
    /// Runs until the sending side is closed and everything is recorded.
    pub async fn run<E: From<TryAgain>>(
        self,
        mut finished: mpsc::UnboundedReceiver<Vec<Finished>>,
        again: mpsc::UnboundedSender<E>,
    ) {
        while let Some(mut batch) = finished.recv().await {
            while batch.len() < BATCH {
                let Ok(more) = finished.try_recv() else { break };
                batch.extend(more);
            }
            self.count(&batch);
            self.meter
                .conclude(batch.iter().map(|one| self.conclusion(one)).collect())
                .await;
            for one in batch {
                self.pass_on(one, &again);
            }
        }
    }

    /// Counts what carriers have taken, for those who watch an account.
    fn count(&self, batch: &[Finished]) {
        let Some(mut page) = self.tally.page() else {
            return;
        };
        let (wall, now) = (self.clock.now(), Instant::now());
        for Finished { attempt, result } in batch {
            let in_hand = &attempt.in_hand;
            if matches!(result, Ending::Tried(Ok(_)))
                && let Some(second) = page.of(in_hand.account())
            {
                let lane = second.lane_mut(in_hand.lane());
                lane.dispatched(in_hand.waited(wall, now));
            }
        }
    }

    fn conclusion(&self, finished: &Finished) -> Conclusion {
        let head = &finished.attempt.in_hand.job.head;
        let result = match &finished.result {
            Ending::Unsent(_) => TryResult::NotSent,
            Ending::Tried(Ok(accepted)) => TryResult::Sent {
                carrier: Arc::clone(&self.fleet.at(finished.attempt.in_hand.carrier).name),
                carrier_ref: accepted.carrier_ref.clone(),
            },
            Ending::Tried(Err(error)) => match error.verdict {
                SendVerdict::Rejected | SendVerdict::Throttled | SendVerdict::NotSent => {
                    TryResult::NotSent
                }
                SendVerdict::Unknown => TryResult::Unknown,
            },
        };
        Conclusion {
            account: head.account.clone(),
            id: head.id.clone(),
            try_id: finished.attempt.try_id,
            result,
            frees: self.frees(finished),
        }
    }

    /// The counts of frequency caps that a job gives up, because it ends here and is not sent.
    fn frees(&self, finished: &Finished) -> Vec<CapKey> {
        let in_hand = &finished.attempt.in_hand;
        let ends = match &finished.result {
            Ending::Unsent(_) => true,
            Ending::Tried(Ok(_)) => false,
            Ending::Tried(Err(error)) => {
                error.verdict == SendVerdict::Rejected
                    || in_hand.attempts.saturating_add(1) >= self.max_attempts
            }
        };
        if ends {
            in_hand.caps.clone()
        } else {
            Vec::new()
        }
    }

    fn pass_on<E: From<TryAgain>>(&self, finished: Finished, again: &mpsc::UnboundedSender<E>) {
        let mut in_hand = finished.attempt.in_hand;
        let result = match finished.result {
            Ending::Tried(result) => result,
            Ending::Unsent(end) => {
                let unsent = Settlement::unsent(in_hand, end, self.clock.now());
                let _ = self.settle.send(unsent);
                return;
            }
        };
        in_hand.attempts = in_hand.attempts.saturating_add(1);
        // A receiver that is gone means that the worker is stopping: the job stays with the broker.
        match result {
            Ok(accepted) => {
                let _ = self.settle.send(self.dispatched(in_hand, accepted));
            }
            Err(error) if error.verdict == SendVerdict::Rejected => {
                let _ =
                    self.settle
                        .send(self.failed(in_hand, Failure::CarrierRejected, error.detail));
            }
            Err(error) if in_hand.attempts >= self.max_attempts => {
                let _ = self.settle.send(self.failed(
                    in_hand,
                    Failure::AttemptsExhausted,
                    error.detail,
                ));
            }
            Err(SendError {
                retry_after,
                verdict,
                ..
            }) => {
                in_hand.maybe_sent |= verdict == SendVerdict::Unknown;
                let _ = again.send(E::from(TryAgain {
                    in_hand,
                    retry_after,
                }));
            }
        }
    }

    fn dispatched(&self, in_hand: InHand, accepted: Accepted) -> Settlement {
        let carrier = Arc::clone(&self.fleet.at(in_hand.carrier).name);
        let mut settlement = Settlement::of(in_hand, Outcome::Dispatched, self.clock.now());
        settlement.ended.carrier = Some(carrier);
        settlement.ended.carrier_ref = accepted.carrier_ref;
        settlement
    }

    fn failed(&self, in_hand: InHand, failure: Failure, detail: Cow<'static, str>) -> Settlement {
        let carrier = Arc::clone(&self.fleet.at(in_hand.carrier).name);
        let mut settlement = Settlement::of(in_hand, Outcome::Failed(failure), self.clock.now());
        settlement.ended.carrier = Some(carrier);
        settlement.ended.detail = Some(detail);
        settlement
    }
}
