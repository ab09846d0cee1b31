//! The tally: what happened to each job, and to all of them in each second.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::windows::{Window, Windows};
use crate::domain::{Counter, JobId, Lane};

/// A count for each lane, by [`Lane::index`].
pub type ByLane = [u64; 2];

/// What happened in one second.
#[derive(Debug, Clone)]
pub struct Second {
    /// Which one, from 1.
    pub number: u32,
    /// Messages published.
    pub offered: ByLane,
    /// Messages that the carrier accepted.
    pub dispatched: ByLane,
    /// Times that a job was sent back because its ceiling was reached.
    pub shed: ByLane,
    /// Messages published and not dispatched, at its end.
    pub waiting: ByLane,
    /// The fullest window that was counted in.
    pub window: Option<Window>,
    /// From publishing to acceptance, of the transactional jobs accepted.
    pub latency: Option<Latency>,
}

/// How long jobs took from being published to being accepted by the carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// Half of them took no longer.
    pub median: Duration,
    /// None of them took longer.
    pub max: Duration,
}

impl Latency {
    /// Of these; none of none.
    #[must_use]
    pub fn of(mut each: Vec<Duration>) -> Option<Self> {
        each.sort_unstable();
        Some(Self {
            median: *each.get(each.len().saturating_sub(1) / 2)?,
            max: *each.last()?,
        })
    }
}

/// How one job stands.
#[derive(Debug)]
struct Fate {
    lane: Lane,
    offered_at: Instant,
    accepted: u32,
    took: Option<Duration>,
    /// It ended without being dispatched.
    ended: bool,
}

#[derive(Debug, Default)]
struct State {
    jobs: HashMap<JobId, Fate>,
    strangers: u64,
    windows: Windows,
    by_worker: Vec<u64>,
    offered: ByLane,
    dispatched: ByLane,
    ended: ByLane,
    second: InThisSecond,
}

/// What the present second has seen so far.
#[derive(Debug, Default)]
struct InThisSecond {
    offered: ByLane,
    dispatched: ByLane,
    window: Option<Window>,
    latencies: Vec<Duration>,
}

/// What is known when all is over.
#[derive(Debug, Clone)]
pub struct Record {
    /// Messages published.
    pub offered: ByLane,
    /// Messages dispatched.
    pub dispatched: ByLane,
    /// Messages that ended otherwise, such as expired ones.
    pub ended: ByLane,
    /// Messages that the queues still hold.
    pub waiting: ByLane,
    /// Messages that are nowhere.
    pub lost: u64,
    /// Messages that were sent twice, or sent and still queued, or queued twice.
    pub doubled: u64,
    /// Messages sent that nobody has offered.
    pub strangers: u64,
    /// Transactional jobs that took longer than promised, or did not leave although there was time.
    pub late: u64,
    /// From publishing to acceptance, of all transactional jobs dispatched.
    pub latency: Option<Latency>,
    /// The counter's windows.
    pub windows: Windows,
    /// Messages dispatched, by worker.
    pub by_worker: Vec<u64>,
}

/// Keeps the tally; clones keep the same one.
#[derive(Debug, Clone, Default)]
pub struct Tally(Arc<Mutex<State>>);

impl Tally {
    /// A worker joins in; workers are numbered from 0.
    pub fn joined(&self) {
        self.lock().by_worker.push(0);
    }

    /// A job is being published.
    pub fn offered(&self, id: &JobId, lane: Lane, now: Instant) {
        let mut state = self.lock();
        state.offered[lane.index()] += 1;
        state.second.offered[lane.index()] += 1;
        let fate = Fate {
            lane,
            offered_at: now,
            accepted: 0,
            took: None,
            ended: false,
        };
        state.jobs.insert(id.clone(), fate);
    }

    /// The meter has answered: its counter, and how many jobs of each lane it admitted.
    pub fn metered(&self, counter: Counter, admitted: [u32; 2], now: Instant) {
        let mut state = self.lock();
        let Some(window) = state.windows.note(counter, admitted, now) else {
            return;
        };
        let fullest = &mut state.second.window;
        if fullest.is_none_or(|known| known.counted <= window.counted) {
            *fullest = Some(window);
        }
    }

    /// The carrier has accepted a job from a worker, numbered from 0.
    pub fn accepted(&self, id: &JobId, worker: usize, now: Instant) {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(fate) = state.jobs.get_mut(id) else {
            state.strangers += 1;
            return;
        };
        fate.accepted += 1;
        if fate.accepted > 1 {
            return;
        }
        let took = now - fate.offered_at;
        fate.took = Some(took);
        state.dispatched[fate.lane.index()] += 1;
        state.second.dispatched[fate.lane.index()] += 1;
        if fate.lane == Lane::Transactional {
            state.second.latencies.push(took);
        }
        if let Some(sent) = state.by_worker.get_mut(worker) {
            *sent += 1;
        }
    }

    /// A job has ended without being dispatched.
    pub fn ended(&self, id: &JobId) {
        let mut state = self.lock();
        let state = &mut *state;
        if let Some(fate) = state.jobs.get_mut(id) {
            fate.ended = true;
            state.ended[fate.lane.index()] += 1;
        }
    }

    /// Messages published and not yet at their end.
    #[must_use]
    pub fn waiting(&self) -> ByLane {
        self.lock().waiting()
    }

    /// Ends a second at `now` and begins the next one; `shed` is what was shed in it.
    #[must_use]
    pub fn close_second(&self, number: u32, shed: ByLane, now: Instant) -> Second {
        let mut state = self.lock();
        let seen = std::mem::take(&mut state.second);
        // What is counted at the turn of a second is dispatched in the next one.
        state.second.window = state.windows.just_opened(now);
        Second {
            number,
            offered: seen.offered,
            dispatched: seen.dispatched,
            shed,
            waiting: state.waiting(),
            window: seen.window,
            latency: Latency::of(seen.latencies),
        }
    }

    /// What is known at the end, `now`, when the queues still hold the jobs in `left`. A
    /// transactional job is late when it took longer than `within`, or has not left by then.
    #[must_use]
    pub fn record(&self, left: &[JobId], within: Duration, now: Instant) -> Record {
        let state = self.lock();
        let mut queued = HashSet::with_capacity(left.len());
        let mut doubled = left.iter().filter(|id| !queued.insert(*id)).count() as u64;
        let (mut waiting, mut lost, mut late) = ([0; 2], 0, 0);
        for (id, fate) in &state.jobs {
            let is_queued = queued.contains(id);
            waiting[fate.lane.index()] += u64::from(is_queued);
            doubled += u64::from(fate.accepted > 1 || fate.accepted > 0 && is_queued);
            lost += u64::from(fate.accepted == 0 && !is_queued && !fate.ended);
            late += u64::from(fate.is_late(within, now));
        }
        let transactional = state
            .jobs
            .values()
            .filter(|fate| fate.lane == Lane::Transactional);
        Record {
            offered: state.offered,
            dispatched: state.dispatched,
            ended: state.ended,
            waiting,
            lost,
            doubled,
            strangers: state.strangers,
            late,
            latency: Latency::of(transactional.filter_map(|fate| fate.took).collect()),
            windows: state.windows.clone(),
            by_worker: state.by_worker.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fate {
    fn is_late(&self, within: Duration, now: Instant) -> bool {
        let took = self.took.unwrap_or_else(|| now - self.offered_at);
        self.lane == Lane::Transactional && !self.ended && took > within
    }
}

impl State {
    fn waiting(&self) -> ByLane {
        let of = |place: usize| self.offered[place] - self.dispatched[place] - self.ended[place];
        [of(0), of(1)]
    }
}
