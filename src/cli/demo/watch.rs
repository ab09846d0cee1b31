//! Ports of the pipeline that also keep the tally.

use tokio::time::Instant;

use super::tally::Tally;
use crate::carrier::AnyCarrier;
use crate::dispatch::ports::{
    Accepted, AccountAnswer, AccountRequest, Carrier, Conclusion, Meter, SendError,
};
use crate::domain::{Job, Lane, Verdict};

/// A meter whose every decision is noted, as the pipeline gets it.
pub struct WatchedMeter<M> {
    /// The meter.
    pub meter: M,
    /// Where it is noted.
    pub tally: Tally,
}

impl<M: Meter> Meter for WatchedMeter<M> {
    async fn admit(&self, requests: Vec<AccountRequest>) -> Vec<AccountAnswer> {
        let lanes = |request: &AccountRequest| -> Vec<Lane> {
            request.jobs.iter().map(|job| job.lane).collect()
        };
        let asked: Vec<_> = requests.iter().map(lanes).collect();
        let answers = self.meter.admit(requests).await;
        let now = Instant::now();
        for (lanes, answer) in asked.iter().zip(&answers) {
            self.tally
                .metered(answer.counter, admitted(lanes, answer), now);
        }
        answers
    }

    async fn conclude(&self, conclusions: Vec<Conclusion>) {
        self.meter.conclude(conclusions).await;
    }
}

/// How many jobs of each lane an answer admits.
fn admitted(lanes: &[Lane], answer: &AccountAnswer) -> [u32; 2] {
    let mut admitted = [0; 2];
    for (lane, verdict) in lanes.iter().zip(&answer.verdicts) {
        if matches!(verdict, Verdict::Admitted { .. }) {
            admitted[lane.index()] += 1;
        }
    }
    admitted
}

/// A worker's way to the carrier, whose every acceptance is noted.
pub struct WatchedCarrier {
    /// The carrier.
    pub carrier: AnyCarrier,
    /// Where it is noted.
    pub tally: Tally,
    /// The worker's number, from 0.
    pub worker: usize,
}

impl Carrier for WatchedCarrier {
    async fn send(&self, job: &Job, attempt: u32) -> Result<Accepted, SendError> {
        let accepted = self.carrier.send(job, attempt).await?;
        self.tally
            .accepted(&job.head.id, self.worker, Instant::now());
        Ok(accepted)
    }
}
