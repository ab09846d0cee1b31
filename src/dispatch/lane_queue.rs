//! The jobs of one lane that this worker holds and has not started.
//!
//! They stand in one stream per account and carrier, and the streams take turns, so that no
//! account's flood stands in front of another's job. A stream whose account is over its ceiling is
//! blocked until the window ends: its first few jobs are held for the opening, where the lane
//! allows that, and the rest are surplus, to be shed. Jobs that an API server has admitted are paid
//! for: they go whatever the ceiling, and when the meter itself says no to one, it is an ordinary
//! job from then on. Jobs that came by a queue of their account's own are all held: no other
//! account's jobs stand behind them, there or here.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::in_hand::InHand;
use super::ports::Receipt;
use crate::domain::AccountId;

/// How long a job may stay in this worker that is not held for the next opening while newer ones are
/// shed before it, or that came by its account's own queue. The broker takes a channel away over a
/// delivery that is unsettled for half an hour.
const LONGEST_STAY: Duration = Duration::from_secs(10);

/// How many jobs may be held for a window's opening, and how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct HoldLimits {
    /// Jobs in all.
    pub jobs: usize,
    /// From the first instant of holding to the opening.
    pub longest: Duration,
}

impl HoldLimits {
    /// Nothing is held: whatever is over its ceiling is surplus.
    pub const NONE: Self = Self {
        jobs: 0,
        longest: Duration::ZERO,
    };
}

/// The most jobs that a stream gives in one turn, and only as many as there are free slots for each
/// of the streams: nobody waits for a slot because of it. The meter is asked once per account of a
/// batch, so that jobs of one account that go together cost less.
const RUN: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StreamKey {
    account: AccountId,
    carrier: usize,
    /// Whether an API server has admitted the jobs already: they go first within their lane.
    admitted: bool,
    /// Whether they came by a queue of the account's own.
    own_queue: bool,
}

impl StreamKey {
    fn of(job: &InHand) -> Self {
        Self {
            account: job.account().clone(),
            carrier: job.carrier,
            admitted: job.headers.admitted_ms.is_some(),
            own_queue: job.own_queue,
        }
    }

    /// Its place among the turns, in the order in which they are taken.
    fn rank(&self) -> usize {
        usize::from(!self.admitted)
    }
}

#[derive(Debug, Default)]
struct Stream {
    jobs: VecDeque<InHand>,
    /// Set while the account is over its ceiling.
    blocked_until: Option<Instant>,
    /// How many of the first jobs are held; only while blocked.
    held: usize,
    /// Whether the stream stands in the list of those that may have surplus.
    listed: bool,
    /// How many jobs it has given in its present turn.
    given: usize,
}

/// What a look for the next job gave.
#[derive(Debug)]
pub(super) enum Next {
    /// The next job in turn.
    Job(Box<InHand>),
    /// There are ready jobs, but none whose carrier has a free slot.
    NoSlot,
    /// There is no ready job.
    Nothing,
}

/// What an account allows: its lane's ceiling and, when that is reached, until when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    pub ceiling: u32,
    pub reached_until: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct LaneQueue {
    limits: HoldLimits,
    streams: HashMap<StreamKey, Stream>,
    /// Streams that are not blocked: those of admitted jobs, and the others.
    turns: [VecDeque<StreamKey>; 2],
    surplus: VecDeque<StreamKey>,
    /// Blocked streams by the end of their windows; the number keeps equal ends apart.
    openings: BTreeMap<(Instant, u64), StreamKey>,
    blocks: u64,
    held: HashMap<AccountId, usize>,
    held_in_all: usize,
    /// Jobs by account that were found to be over its ceiling and not held, since it was last asked.
    over: HashMap<AccountId, u32>,
    len: usize,
}

impl LaneQueue {
    pub fn new(limits: HoldLimits) -> Self {
        Self {
            limits,
            streams: HashMap::new(),
            turns: Default::default(),
            surplus: VecDeque::new(),
            openings: BTreeMap::new(),
            blocks: 0,
            held: HashMap::new(),
            held_in_all: 0,
            over: HashMap::new(),
            len: 0,
        }
    }

    /// Adds a job behind the others of its stream.
    pub fn push(&mut self, job: InHand, standing: Standing, now: Instant) {
        let key = StreamKey::of(&job);
        let stream = self.streams.entry(key.clone()).or_default();
        let first = stream.jobs.is_empty();
        stream.jobs.push_back(job);
        self.len += 1;
        if stream.blocked_until.is_some() {
            let over = usize::from(self.hold_more(&key, standing.ceiling, now) == 0);
            self.note_over(&key, over);
        } else if first {
            self.turns[key.rank()].push_back(key);
        }
    }

    /// Puts a job that was taken back to the front of its stream.
    pub fn put_back(&mut self, job: InHand) {
        let key = StreamKey::of(&job);
        let stream = self.streams.entry(key.clone()).or_default();
        let first = stream.jobs.is_empty();
        stream.jobs.push_front(job);
        self.len += 1;
        if stream.blocked_until.is_some() {
            self.list_surplus(&key);
        } else if first {
            self.turns[key.rank()].push_front(key);
        }
    }

    /// Takes the next job in turn whose carrier has a slot, by the number of its free ones.
    /// Accounts that turn out to be over their ceiling are blocked on the way.
    pub fn next(
        &mut self,
        now: Instant,
        standing: impl Fn(&AccountId) -> Standing,
        free_slots: impl Fn(usize) -> usize,
    ) -> Next {
        let mut slotless = false;
        for rank in 0..self.turns.len() {
            for _ in 0..self.turns[rank].len() {
                let streams = self.turns[rank].len();
                let Some(key) = self.turns[rank].pop_front() else {
                    break;
                };
                let standing = standing(&key.account);
                let free = free_slots(key.carrier);
                if let Some(until) = standing.reached_until.filter(|_| !key.admitted) {
                    self.block(&key, until, standing.ceiling, now);
                } else if free == 0 {
                    slotless = true;
                    self.turns[rank].push_back(key);
                } else if let Some(job) = self.take_first(key, (free / streams).clamp(1, RUN)) {
                    return Next::Job(Box::new(job));
                }
            }
        }
        if slotless {
            Next::NoSlot
        } else {
            Next::Nothing
        }
    }

    /// Whether a job is ready: neither held nor of an account that is over its ceiling.
    pub fn has_ready(&self, standing: impl Fn(&AccountId) -> Standing) -> bool {
        self.turns
            .iter()
            .flatten()
            .any(|key| key.admitted || standing(&key.account).reached_until.is_none())
    }

    /// Opens the streams whose windows have ended.
    pub fn open(&mut self, now: Instant) {
        while let Some(entry) = self
            .openings
            .first_entry()
            .filter(|entry| entry.key().0 <= now)
        {
            let ((until, _), key) = entry.remove_entry();
            let Some(stream) = self.streams.get_mut(&key) else {
                continue;
            };
            if stream.blocked_until != Some(until) {
                continue;
            }
            stream.blocked_until = None;
            for job in &mut stream.jobs {
                job.turned_away = false;
            }
            let held = std::mem::take(&mut stream.held);
            let empty = stream.jobs.is_empty();
            self.release_holds(&key.account, held);
            if empty {
                self.streams.remove(&key);
            } else {
                self.turns[key.rank()].push_front(key);
            }
        }
    }

    /// When the next window opens for which jobs stand here.
    pub fn next_opening(&self) -> Option<Instant> {
        self.openings
            .first_key_value()
            .map(|((until, _), _)| *until)
    }

    /// Takes a job of such an account that is over its ceiling and not held; the newest first, so that
    /// those which have waited longest are here when the window opens. But none waits here for long.
    pub fn take_surplus(
        &mut self,
        now: Instant,
        whose: impl Fn(&AccountId) -> bool,
    ) -> Option<InHand> {
        for _ in 0..self.surplus.len() {
            let key = self.surplus.pop_front()?;
            if !whose(&key.account) {
                self.surplus.push_back(key);
                continue;
            }
            let Some(stream) = self.streams.get_mut(&key) else {
                continue;
            };
            let has_surplus = stream.blocked_until.is_some() && stream.jobs.len() > stream.held;
            if !has_surplus {
                stream.listed = false;
                continue;
            }
            let first_has_waited = stream.held == 0
                && stream
                    .jobs
                    .front()
                    .is_some_and(|job| now.duration_since(job.received_at) > LONGEST_STAY);
            let job = if first_has_waited {
                stream.jobs.pop_front()
            } else {
                stream.jobs.pop_back()
            };
            self.surplus.push_back(key);
            self.len -= usize::from(job.is_some());
            return job;
        }
        None
    }

    /// Whether any job of such an account waits to be shed.
    pub fn has_surplus(&self, whose: impl Fn(&AccountId) -> bool) -> bool {
        let mut surplus = self.surplus.iter().filter(|key| whose(&key.account));
        surplus.any(|key| {
            self.streams.get(key).is_some_and(|stream| {
                stream.blocked_until.is_some() && stream.jobs.len() > stream.held
            })
        })
    }

    /// Takes a job of an account's own queue that has been held for as long as any may be. The
    /// broker takes a channel away over a delivery that is unsettled for half an hour.
    pub fn take_overstayed(&mut self, now: Instant) -> Option<InHand> {
        let overstayed = |stream: &Stream| {
            let first = stream.jobs.front();
            stream.blocked_until.is_some()
                && first.is_some_and(|job| now.duration_since(job.received_at) > LONGEST_STAY)
        };
        let own = self.streams.iter_mut().filter(|(key, _)| key.own_queue);
        let (_, stream) = own
            .filter(|(_, stream)| overstayed(stream))
            .min_by_key(|(_, stream)| stream.jobs.front().map(InHand::order))?;
        self.len -= 1;
        stream.jobs.pop_front()
    }

    /// How many jobs of which accounts were found to be over their ceilings and not held, since this
    /// was last asked.
    pub fn take_over(&mut self) -> HashMap<AccountId, u32> {
        std::mem::take(&mut self.over)
    }

    /// Accounts of which jobs from a queue of their own are held now.
    pub fn held_of_own(&self) -> impl Iterator<Item = &AccountId> {
        let own = self.streams.iter().filter(|(key, _)| key.own_queue);
        let held =
            own.filter(|(_, stream)| stream.blocked_until.is_some() && !stream.jobs.is_empty());
        held.map(|(key, _)| &key.account)
    }

    /// Takes everything, in the order in which it came, and forgets which streams are blocked.
    pub fn take_all(&mut self) -> Vec<InHand> {
        let emptied = std::mem::replace(self, Self::new(self.limits));
        let streams = emptied.streams.into_values();
        let mut jobs: Vec<_> = streams.flat_map(|stream| stream.jobs).collect();
        jobs.sort_by_key(InHand::order);
        jobs
    }

    /// Removes the jobs whose deliveries are gone: the broker delivers them again.
    pub fn forget(&mut self, is_live: impl Fn(&Receipt) -> bool) {
        let mut len = 0;
        for stream in self.streams.values_mut() {
            stream.jobs.retain(|job| is_live(&job.receipt));
            len += stream.jobs.len();
            if stream.held > stream.jobs.len() {
                self.held_in_all -= stream.held - stream.jobs.len();
                stream.held = stream.jobs.len();
            }
        }
        self.len = len;
        self.held.clear();
        for (key, stream) in self.streams.iter().filter(|(_, stream)| stream.held > 0) {
            *self.held.entry(key.account.clone()).or_default() += stream.held;
        }
        self.drop_empty_streams();
    }

    /// Jobs here, ready, held or surplus.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The first job of each stream, and how many there are.
    pub fn standing(&self) -> impl Iterator<Item = (&InHand, usize)> {
        self.streams
            .values()
            .filter_map(|stream| Some((stream.jobs.front()?, stream.jobs.len())))
    }

    /// Takes the first job of the stream whose turn it is, which goes on for `run` jobs.
    fn take_first(&mut self, key: StreamKey, run: usize) -> Option<InHand> {
        let stream = self.streams.get_mut(&key)?;
        let job = stream.jobs.pop_front();
        self.len -= usize::from(job.is_some());
        stream.given += 1;
        if stream.jobs.is_empty() {
            self.streams.remove(&key);
        } else if stream.given < run {
            self.turns[key.rank()].push_front(key);
        } else {
            stream.given = 0;
            self.turns[key.rank()].push_back(key);
        }
        job
    }

    fn block(&mut self, key: &StreamKey, until: Instant, ceiling: u32, now: Instant) {
        let Some(stream) = self.streams.get_mut(key) else {
            return;
        };
        let jobs = stream.jobs.len();
        stream.blocked_until = Some(until);
        stream.held = 0;
        self.blocks += 1;
        self.openings.insert((until, self.blocks), key.clone());
        if key.own_queue {
            return;
        }
        // Jobs that have been held for as long as they may go first when the surplus is shed.
        let longest = self.limits.longest;
        let (held_long, others) = std::mem::take(&mut stream.jobs)
            .into_iter()
            .partition::<VecDeque<_>, _>(|job| {
                job.held_since
                    .is_some_and(|since| until.duration_since(since) > longest)
            });
        stream.jobs = others;
        stream.jobs.extend(held_long);
        let held = self.hold_more(key, ceiling, now);
        self.note_over(key, jobs - held);
    }

    /// Holds as many more of a blocked stream's first jobs as the limits allow; gives how many.
    fn hold_more(&mut self, key: &StreamKey, ceiling: u32, now: Instant) -> usize {
        if key.own_queue {
            return 0;
        }
        let account_limit = usize::try_from(ceiling).unwrap_or(usize::MAX);
        let held_of_account = self.held.get(&key.account).copied().unwrap_or(0);
        let room = account_limit
            .saturating_sub(held_of_account)
            .min(self.limits.jobs.saturating_sub(self.held_in_all));
        let Some(stream) = self.streams.get_mut(key) else {
            return 0;
        };
        let Some(until) = stream.blocked_until else {
            return 0;
        };
        let longest = self.limits.longest;
        let more = stream
            .jobs
            .iter_mut()
            .skip(stream.held)
            .take(room)
            .map_while(|job| {
                let since = *job.held_since.get_or_insert(now);
                (until.duration_since(since) <= longest).then_some(())
            })
            .count();
        stream.held += more;
        if more > 0 {
            *self.held.entry(key.account.clone()).or_default() += more;
            self.held_in_all += more;
        }
        self.list_surplus(key);
        more
    }

    fn note_over(&mut self, key: &StreamKey, jobs: usize) {
        if jobs > 0 && !key.own_queue {
            let over = self.over.entry(key.account.clone()).or_default();
            *over = over.saturating_add(u32::try_from(jobs).unwrap_or(u32::MAX));
        }
    }

    fn list_surplus(&mut self, key: &StreamKey) {
        if let Some(stream) = self.streams.get_mut(key).filter(|_| !key.own_queue)
            && stream.jobs.len() > stream.held
            && !stream.listed
        {
            stream.listed = true;
            self.surplus.push_back(key.clone());
        }
    }

    fn release_holds(&mut self, account: &AccountId, held: usize) {
        self.held_in_all -= held;
        if let Some(count) = self.held.get_mut(account) {
            *count -= held;
            if *count == 0 {
                self.held.remove(account);
            }
        }
    }

    fn drop_empty_streams(&mut self) {
        self.streams.retain(|_, stream| !stream.jobs.is_empty());
        let streams = &self.streams;
        for turn in &mut self.turns {
            turn.retain(|key| streams.contains_key(key));
        }
        self.surplus.retain(|key| streams.contains_key(key));
    }
}

#[cfg(test)]
mod tests;
