//! Requests as calls of the admission script.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use super::keys::Keys;
use super::options::RedisOptions;
use super::scripts::Call;
use crate::dispatch::ports::{AccountRequest, CapKey, Door, JobRequest, TargetCeiling};
use crate::domain::Limit;
use crate::meter::targets::targets;

/// An account that cannot exist, because ids have no full stop: for probing.
const PROBE_ACCOUNT: &str = ".probe";

/// Admission of one account's jobs.
pub(super) fn call(options: &RedisOptions, request: &AccountRequest) -> Call {
    let keys = Keys::of(options, request.account.as_str());
    let claims = !options.claim_life.is_zero();
    let mut call = Call::default();
    call.keys.push(keys.counter());
    call.arg(&options.claim_life.as_millis());
    if claims {
        let of_jobs = request.jobs.iter().map(|job| keys.claim(&job.id));
        call.keys.extend(of_jobs);
    }
    Limits::of(&request.jobs).write(&keys, &mut call);
    write_jobs(request, claims, &mut call);
    call
}

/// An admission that does all that admissions do, and stands in nobody's way.
pub(super) fn probe(options: &RedisOptions) -> Call {
    let keys = Keys::of(options, PROBE_ACCOUNT);
    let args = [
        "1000 1",
        "1 1000000000",
        "1 1000000000 1000",
        "1 probe 1 0 1 1",
        "1 1000000000 0 w 0",
    ];
    let words = args.iter().flat_map(|words| words.split(' '));
    Call {
        keys: keys.of_probe(),
        args: words.map(str::to_owned).collect(),
    }
}

/// The jobs, in runs of neighbours on the same terms.
fn write_jobs(request: &AccountRequest, claims: bool, call: &mut Call) {
    let terms = |job: &JobRequest| {
        let ceiling = request.ceilings.of_lane(job.lane);
        (ceiling, job.claim_for, door_letter(job.door))
    };
    for run in request.jobs.chunk_by(|a, b| terms(a) == terms(b)) {
        let (ceiling, claim_for, door) = terms(&run[0]);
        call.arg(&run.len());
        call.arg(&ceiling);
        call.arg(&claim_for.as_millis());
        call.arg(&door);
        for job in run {
            if let Door::Paid { at_ms } = job.door {
                call.arg(&at_ms);
            }
            if claims {
                call.args.push(format!("{:x}", job.try_id.0));
            }
        }
    }
}

const fn door_letter(door: Door) -> char {
    match door {
        Door::Worker => 'w',
        Door::Paid { .. } => 'p',
        Door::Api => 'i',
    }
}

/// The limits of a batch's jobs, each one once, and the jobs that they concern.
#[derive(Default)]
struct Limits<'a> {
    targets: Once<(Limit, &'a str), &'a TargetCeiling>,
    caps: Once<&'a CapKey, (u32, Duration)>,
    jobs: usize,
    job_args: Vec<String>,
}

impl<'a> Limits<'a> {
    fn of(jobs: &'a [JobRequest]) -> Self {
        let mut limits = Self::default();
        for (index, job) in jobs.iter().enumerate() {
            if targets(job).next().is_some() || !job.caps.is_empty() {
                limits.add(index + 1, job);
            }
        }
        limits
    }

    fn add(&mut self, place: usize, job: &'a JobRequest) {
        self.jobs += 1;
        let mut target_places = [0; 2];
        for (limit, target) in targets(job) {
            let place = self.targets.place((limit, &target.target), target);
            target_places[usize::from(limit == Limit::Service)] = place;
        }
        let head = [place, target_places[0], target_places[1], job.caps.len()];
        let mut args = head.map(|number| number.to_string()).to_vec();
        args.insert(1, job.id.to_string());
        for cap in &job.caps {
            let place = self.caps.place(&cap.key, (cap.limit, cap.window));
            args.push(place.to_string());
        }
        self.job_args.append(&mut args);
    }

    fn write(self, keys: &Keys, call: &mut Call) {
        call.arg(&self.jobs);
        if self.jobs == 0 {
            return;
        }
        call.arg(&self.targets.items.len());
        for ((limit, _), target) in self.targets.items {
            call.keys.push(keys.target(limit, target));
            call.arg(&target.per_second);
        }
        call.arg(&self.caps.items.len());
        for (key, (limit, window)) in self.caps.items {
            call.keys.push(keys.cap(key));
            call.arg(&limit);
            call.arg(&window.as_millis());
        }
        call.args.extend(self.job_args);
    }
}

/// Items in order, each key once: where jobs of one call disagree about a limit's terms, those of
/// the first one hold.
struct Once<K, T> {
    items: Vec<(K, T)>,
    places: HashMap<K, usize>,
}

impl<K, T> Default for Once<K, T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            places: HashMap::new(),
        }
    }
}

impl<K: Copy + Eq + Hash, T> Once<K, T> {
    /// The place of an item, counted from 1.
    fn place(&mut self, key: K, terms: T) -> usize {
        *self.places.entry(key).or_insert_with(|| {
            self.items.push((key, terms));
            self.items.len()
        })
    }
}
