//! Admission against a reference that is too simple to be wrong.

use std::collections::HashMap;
use std::time::Duration;

use lanekeeper::dispatch::ports::{JobRequest, TryId, TryResult};
use lanekeeper::domain::{Lane, Verdict};
use lanekeeper::meter::CounterStore;
use proptest::prelude::*;
use tokio::time::{Instant, sleep};

use super::world::*;

const LIFE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
enum Step {
    /// Offers jobs by name, in this order.
    Admit(Vec<(u8, Lane)>),
    /// A job's latest try, or one that never was, ends so.
    Conclude(u8, bool, TryResult),
    /// So many milliseconds pass.
    Pass(u64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Claim {
    Sending(TryId),
    Unfinished(TryId),
    Sent,
}

/// What should happen, in the words of the rules.
#[derive(Default)]
struct Reference {
    claims: HashMap<u8, Claim>,
    count: u32,
    window_ends: u64,
    now: u64,
}

impl Reference {
    fn count(&self) -> u32 {
        if self.now < self.window_ends {
            self.count
        } else {
            0
        }
    }

    /// `Err` stands for a duplicate, whose record the reference does not keep.
    fn admit(&mut self, name: u8, ceiling: u32, try_id: TryId) -> Result<Verdict, ()> {
        let verdict = match self.claims.get(&name) {
            Some(Claim::Sent) => return Err(()),
            Some(Claim::Sending(_)) => return Ok(CLAIMED),
            Some(Claim::Unfinished(_)) => MAYBE_TWICE,
            None => PASSES,
        };
        if self.count() >= ceiling {
            return Ok(OVER);
        }
        if self.now >= self.window_ends {
            (self.count, self.window_ends) = (0, self.now + 1_000);
        }
        self.count += 1;
        self.claims.insert(name, Claim::Sending(try_id));
        Ok(verdict)
    }

    fn conclude(&mut self, name: u8, try_id: TryId, result: &TryResult) {
        let held = self.claims.get(&name).copied();
        let own = matches!(held, Some(Claim::Sending(by) | Claim::Unfinished(by)) if by == try_id);
        match result {
            TryResult::Sent { .. } => drop(self.claims.insert(name, Claim::Sent)),
            TryResult::NotSent if own => drop(self.claims.remove(&name)),
            TryResult::Unknown if own => drop(self.claims.insert(name, Claim::Unfinished(try_id))),
            TryResult::NotSent | TryResult::Unknown => {}
        }
    }
}

fn steps(time_passes: bool) -> impl Strategy<Value = Vec<Step>> {
    let lane = prop::sample::select(&Lane::ALL);
    let result = prop_oneof![
        Just(sent(None)),
        Just(TryResult::NotSent),
        Just(TryResult::Unknown)
    ];
    let pass = u32::from(time_passes);
    let step = prop_oneof![
        4 => prop::collection::vec((0..12u8, lane), 0..8).prop_map(Step::Admit),
        3 => (0..12u8, prop::bool::weighted(0.8), result)
            .prop_map(|(name, own, result)| Step::Conclude(name, own, result)),
        pass => (1..1_500u64).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..25)
}

/// Runs the steps on a store and on the reference. Real time is allowed to pass only as far as it
/// can change nothing.
async fn agree<S: CounterStore>(store: &S, budget: u64, steps: Vec<Step>, paused: bool) {
    let start = Instant::now();
    let account_name = format!("acct-{}", number());
    let mut reference = Reference::default();
    let mut latest: HashMap<u8, TryId> = HashMap::new();
    for step in steps {
        match step {
            Step::Admit(names) => {
                let asked: Vec<JobRequest> = names
                    .iter()
                    .map(|(name, lane)| JobRequest {
                        claim_for: Duration::from_secs(50),
                        ..job(&format!("job-{name}"), *lane)
                    })
                    .collect();
                let asked = request(&account_name, budget, asked);
                let answer = store.admit(std::slice::from_ref(&asked)).await;
                let answer = answer.into_iter().next().unwrap().unwrap();
                if !paused && start.elapsed() > Duration::from_millis(900) {
                    return;
                }
                let offered = names.iter().zip(&asked.jobs).zip(&answer.verdicts);
                for (((name, lane), job), verdict) in offered {
                    let ceiling = asked.ceilings.of_lane(*lane);
                    let expected = reference.admit(*name, ceiling, job.try_id);
                    match expected {
                        Ok(expected) => assert_eq!(*verdict, expected),
                        Err(()) => assert!(matches!(verdict, Verdict::Duplicate(_))),
                    }
                    if matches!(verdict, Verdict::Admitted { .. }) {
                        latest.insert(*name, job.try_id);
                    }
                }
                assert_eq!(answer.counter.count, reference.count());
            }
            Step::Conclude(name, own, result) => {
                let try_id = match latest.get(&name) {
                    Some(try_id) if own => *try_id,
                    _ => TryId(number()),
                };
                let mut end = conclusion(&job(&format!("job-{name}"), Marketing), result.clone());
                end.account = account(&account_name);
                end.try_id = try_id;
                store.conclude(&[end]).await.unwrap();
                reference.conclude(name, try_id, &result);
            }
            Step::Pass(millis) => {
                sleep(Duration::from_millis(millis)).await;
                reference.now += millis;
            }
        }
    }
}

fn runtime(paused: bool) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(paused)
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_store_in_memory_agrees(budget in 0..12u64, steps in steps(true)) {
        // The longest run of pauses stays below the claims' deadline.
        runtime(true).block_on(async {
            agree(&memory(LIFE), budget, steps, true).await;
        });
    }
}

#[test]
fn redis_agrees() {
    let runtime = runtime(false);
    let store = runtime.block_on(redis(LIFE));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(128));
    runner
        .run(&(0..12u64, steps(false)), |(budget, steps)| {
            runtime.block_on(agree(&store, budget, steps, false));
            Ok(())
        })
        .unwrap();
}
