//! Ends of tries as calls of the script that records them.

use std::collections::{HashMap, HashSet};

use super::keys::Keys;
use super::options::RedisOptions;
use super::scripts::Call;
use crate::dispatch::ports::{Conclusion, TryResult};
use crate::domain::{AccountId, JobId};

/// The ends of tries, one call per account; a job that comes twice makes a further call. Without
/// claims there is nothing to be recorded but what jobs give up.
pub(super) fn calls(options: &RedisOptions, conclusions: &[Conclusion]) -> Vec<Call> {
    let claims = !options.claim_life.is_zero();
    let mut batches: Vec<Batch> = Vec::new();
    let mut open: HashMap<&AccountId, usize> = HashMap::new();
    let matters = |conclusion: &&Conclusion| claims || conclusion.gives_up();
    for conclusion in conclusions.iter().filter(matters) {
        let account = &conclusion.account;
        let takes = |place: &usize| !batches[*place].jobs.contains(&conclusion.id);
        let place = open.get(account).copied().filter(takes);
        let place = place.unwrap_or_else(|| {
            batches.push(Batch::of(options, account));
            batches.len() - 1
        });
        open.insert(account, place);
        batches[place].add(conclusion, claims);
    }
    let batches = batches.into_iter();
    batches.map(|batch| batch.into_call(options)).collect()
}

/// Ends of tries of one account's jobs, no job twice.
struct Batch<'a> {
    keys: Keys,
    jobs: HashSet<&'a JobId>,
    claims: Vec<String>,
    endings: Vec<String>,
    sets: Vec<String>,
    /// Place of the claim and id, for each of the sets.
    leavers: Vec<String>,
}

impl<'a> Batch<'a> {
    fn of(options: &RedisOptions, account: &AccountId) -> Self {
        Self {
            keys: Keys::of(options, account.as_str()),
            jobs: HashSet::new(),
            claims: Vec::new(),
            endings: Vec::new(),
            sets: Vec::new(),
            leavers: Vec::new(),
        }
    }

    fn add(&mut self, conclusion: &'a Conclusion, claims: bool) {
        let id = &conclusion.id;
        self.jobs.insert(id);
        if claims {
            self.claims.push(self.keys.claim(id));
            self.endings.push(ending(conclusion));
        }
        if conclusion.gives_up() {
            for cap in &conclusion.frees {
                self.sets.push(self.keys.cap(cap));
                self.leavers.push(self.claims.len().to_string());
                self.leavers.push(id.to_string());
            }
        }
    }

    fn into_call(mut self, options: &RedisOptions) -> Call {
        let mut call = Call::default();
        call.arg(&options.claim_life.as_millis());
        call.arg(&self.claims.len());
        call.keys = self.claims;
        call.keys.append(&mut self.sets);
        call.args.append(&mut self.endings);
        call.args.append(&mut self.leavers);
        call
    }
}

fn ending(conclusion: &Conclusion) -> String {
    match &conclusion.result {
        TryResult::Sent {
            carrier,
            carrier_ref: Some(carrier_ref),
        } => format!("S{carrier}:{carrier_ref}"),
        TryResult::Sent {
            carrier,
            carrier_ref: None,
        } => format!("S{carrier}"),
        TryResult::NotSent => format!("N{:x}", conclusion.try_id.0),
        TryResult::Unknown => format!("U{:x}", conclusion.try_id.0),
    }
}
