//! The carrier of a simulated run.

use std::time::Duration;

use tokio::time::Instant;

use super::{Call, Outside};
use crate::dispatch::ports::{Accepted, Carrier, SendError, SendVerdict};
use crate::dispatch::simulation::plan::Kind;
use crate::domain::{Job, Lane};

/// How long after a carrier's wish calls that were under way may still come.
const SLACK: Duration = Duration::from_millis(100);

/// How long after a look-up began a job may still reach its carrier.
const LOOK_UP_HOLDS: Duration = Duration::from_millis(150);

/// The carrier, as one worker reaches it.
pub struct UnsureCarrier {
    pub outside: Outside,
    pub worker: usize,
}

struct InFlight<'a>(&'a UnsureCarrier, Lane);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        *self
            .0
            .outside
            .seen()
            .in_flight
            .entry((self.0.worker, self.1))
            .or_default() -= 1;
    }
}

/// Rule 8: a job goes out only if its look-up has just been made, and began before any opt-out.
fn is_checked(looked_up: Option<Instant>, outside: &Outside, job: &Job, now: Instant) -> bool {
    let opt_out = outside.opt_out_of(job.head.id.as_str());
    looked_up.is_some_and(|began| {
        now.duration_since(began) <= LOOK_UP_HOLDS && opt_out.is_none_or(|at| began < at)
    })
}

impl UnsureCarrier {
    fn enter(&self, job: &Job) -> InFlight<'_> {
        let mut seen = self.outside.seen();
        let lane = job.lane();
        *seen.in_flight.entry((self.worker, lane)).or_default() += 1;
        let of = |lane| {
            seen.in_flight
                .get(&(self.worker, lane))
                .copied()
                .unwrap_or(0)
        };
        let (transactional, marketing) = (of(Lane::Transactional), of(Lane::Marketing));
        let slots = self.outside.plan.slots;
        if transactional + marketing > slots || marketing > slots - slots.div_ceil(5) {
            seen.overfull
                .push(format!("{transactional} + {marketing} of {slots}"));
        }
        let now = Instant::now();
        let wait = seen
            .waits
            .get(&(self.worker, job.head.account.clone(), lane));
        if wait.is_some_and(|(from, until)| now > *from + SLACK && now < *until) {
            seen.impatient.push(job.head.id.to_string());
        }
        if let Some(admitted) = seen.admitted_at.get(job.head.id.as_str()) {
            let wait = admitted.elapsed();
            seen.latest_start = seen.latest_start.max(wait);
        }
        let looked_up = seen.looked_up.get(job.head.id.as_str()).copied();
        if self.outside.plan.records && !is_checked(looked_up, &self.outside, job, now) {
            seen.unchecked.push(job.head.id.to_string());
        }
        drop(seen);
        InFlight(self, lane)
    }

    fn write_down(&self, job: &Job, attempt: u32, accepted: bool) {
        let id = job.head.id.to_string();
        let (account, lane, at) = (job.head.account.clone(), job.lane(), Instant::now());
        self.outside.seen().calls.push(Call {
            at,
            account,
            id,
            lane,
            attempt,
            accepted,
        });
    }

    /// Refuses a job for now, and now and then says for how long.
    fn throttle(&self, job: &Job) -> Result<Accepted, SendError> {
        let wait = Duration::from_millis(self.outside.rng.lock().unwrap().u64(0..8_000));
        if wait > Duration::from_secs(2) {
            let now = Instant::now();
            let key = (self.worker, job.head.account.clone(), job.lane());
            let mut seen = self.outside.seen();
            let known = seen.waits.entry(key).or_insert((now, now + wait));
            // A wait that goes on from an earlier one has been known for as long as that.
            let from = if known.1 > now { known.0 } else { now };
            *known = (from, known.1.max(now + wait));
        }
        Err(SendError {
            verdict: SendVerdict::Throttled,
            retry_after: Some(wait),
            detail: "simulated".into(),
        })
    }
}

fn error(verdict: SendVerdict) -> Result<Accepted, SendError> {
    Err(SendError {
        verdict,
        retry_after: None,
        detail: "simulated".into(),
    })
}

impl Carrier for UnsureCarrier {
    async fn send(&self, job: &Job, attempt: u32) -> Result<Accepted, SendError> {
        let _in_flight = self.enter(job);
        let faults = self.outside.plan.faults;
        let fate = |percent| self.outside.happens(percent);
        let rejected = self.outside.kind_of(job.head.id.as_str()) == Kind::Rejected;
        let (fails, lost, hangs) = (
            fate(faults.carrier_fails)
                || self.outside.is_within(&self.outside.plan.carrier_outages),
            fate(faults.carrier_reply_lost),
            fate(faults.carrier_hangs),
        );
        self.write_down(job, attempt, !rejected && (lost || !fails && !hangs));
        if hangs {
            std::future::pending::<()>().await;
        }
        self.outside.pass(self.outside.plan.carrier_ms).await;
        match (rejected, lost, fails) {
            (true, ..) => error(SendVerdict::Rejected),
            (_, true, _) => error(SendVerdict::Unknown),
            (.., true) if self.outside.happens(30) => self.throttle(job),
            (.., true) => error(SendVerdict::NotSent),
            _ => Ok(Accepted {
                carrier_ref: Some("ref".into()),
            }),
        }
    }
}
