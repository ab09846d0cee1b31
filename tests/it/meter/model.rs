//! Admission against a reference that is too simple to be wrong.

use std::collections::HashMap;
use std::time::Duration;

use lanekeeper::dispatch::ports::{CapRequest, JobRequest, TryId, TryResult};
use lanekeeper::domain::{Lane, Verdict};
use lanekeeper::meter::{CounterStore, RedisOptions, RedisStore};
use proptest::prelude::*;
use tokio::time::{Instant, sleep};

use super::reference::Reference;
use super::world::*;

const LIFE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
enum Step {
    /// Offers jobs by name, in this order.
    Admit(Vec<(u8, Lane)>),
    /// A job's latest try, or one that never was, ends so, and the job perhaps with it.
    Conclude {
        name: u8,
        own: bool,
        result: TryResult,
        ends: bool,
    },
    /// So many milliseconds pass.
    Pass(u64),
}

/// A job by its name, which says all about it: half of the jobs have limits of their own.
fn named(name: u8, lane: Lane) -> JobRequest {
    let recipient = format!("recipient-{}", name % 2);
    let often = cap("often", &recipient, 1, Duration::from_millis(1_200));
    let daily = cap("daily", &recipient, 2, Duration::from_secs(5));
    let caps: Vec<CapRequest> = match name % 6 {
        0 => vec![daily],
        1 => vec![often, daily],
        2 => vec![often],
        _ => Vec::new(),
    };
    JobRequest {
        claim_for: Duration::from_secs(50),
        caps,
        number: Some(target(&format!("+1555010{}", name % 2), 3)).filter(|_| name % 4 < 2),
        service: Some(target("promo", 4)).filter(|_| name.is_multiple_of(3)),
        ..job(&format!("job-{name}"), lane)
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
        3 => (0..12u8, prop::bool::weighted(0.8), result, any::<bool>()).prop_map(
            |(name, own, result, ends)| Step::Conclude { name, own, result, ends }
        ),
        pass => (1..1_500u64).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..25)
}

/// Runs the steps on a store and on the reference. Real time is allowed to pass only as far as it
/// can change nothing. The store is audited after each step.
async fn agree<S: CounterStore>(
    store: &S,
    budget: u64,
    steps: Vec<Step>,
    paused: bool,
    mut audit: impl AsyncFnMut(&str),
) {
    let start = Instant::now();
    let account_name = format!("acct-{}", number());
    let mut reference = Reference::default();
    let mut latest: HashMap<u8, TryId> = HashMap::new();
    for step in steps {
        match step {
            Step::Admit(names) => {
                let asked = names.iter().map(|(name, lane)| named(*name, *lane));
                let asked = request(&account_name, budget, asked.collect());
                let answer = store.admit(std::slice::from_ref(&asked)).await;
                let answer = answer.into_iter().next().unwrap().unwrap();
                if !paused && start.elapsed() > Duration::from_millis(900) {
                    return;
                }
                let offered = names.iter().zip(&asked.jobs).zip(&answer.verdicts);
                for (((name, lane), job), verdict) in offered {
                    let ceiling = asked.ceilings.of_lane(*lane);
                    match reference.admit(*name, job, ceiling) {
                        Some(expected) => expected.check(verdict),
                        None => assert!(matches!(verdict, Verdict::Duplicate(_))),
                    }
                    if matches!(verdict, Verdict::Admitted { .. }) {
                        latest.insert(*name, job.try_id);
                    }
                }
                assert_eq!(answer.counter.count, reference.count());
            }
            Step::Conclude {
                name,
                own,
                result,
                ends,
            } => {
                let mut job = named(name, Marketing);
                job.try_id = match latest.get(&name) {
                    Some(try_id) if own => *try_id,
                    _ => TryId(number()),
                };
                let mut end = if ends {
                    last_conclusion(&job, result.clone())
                } else {
                    conclusion(&job, result.clone())
                };
                end.account = account(&account_name);
                store.conclude(&[end]).await.unwrap();
                reference.conclude(name, &job, &result, ends);
            }
            Step::Pass(millis) => {
                sleep(Duration::from_millis(millis)).await;
                reference.now += millis;
            }
        }
        audit(&account_name).await;
    }
}

/// Every key of an account expires: counters within their second, sets not before their newest
/// job leaves the window.
async fn all_expire(raw: &mut Raw, prefix: &str, account_name: &str) {
    let pattern = format!("{prefix}{{{account_name}}}:*");
    let keys: Vec<String> = raw.run(&["KEYS", &pattern]).await;
    for key in keys {
        let left = raw.left(&key).await;
        assert_ne!(left, -1, "{key} never expires");
        if key.contains(":cap:") {
            let window = if key.contains(":often:") {
                1_200
            } else {
                5_000
            };
            let newest: Vec<(String, u64)> =
                raw.run(&["ZRANGE", &key, "-1", "-1", "WITHSCORES"]).await;
            let leaves = newest.first().map_or(0, |(_, since)| since + window);
            let now = raw.now_ms().await;
            // A key that is gone by now was read before.
            let ends = now + u64::try_from(left).unwrap_or(0);
            assert!(left < 0 || ends + 50 >= leaves, "{key} {left}");
        } else if !key.contains(":claim:") {
            assert!(left <= 1_000, "{key} {left}");
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
            agree(&memory(LIFE), budget, steps, true, async |_| {}).await;
        });
    }
}

#[test]
fn redis_agrees() {
    let runtime = runtime(false);
    let options = RedisOptions {
        claim_life: LIFE,
        ..redis_options()
    };
    let prefix = options.prefix.clone();
    let store = RedisStore::new(options).unwrap();
    let raw = std::cell::RefCell::new(runtime.block_on(Raw::open()));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(128));
    runner
        .run(&(0..12u64, steps(false)), |(budget, steps)| {
            let mut raw = raw.borrow_mut();
            let audit = async |account: &str| all_expire(&mut raw, &prefix, account).await;
            runtime.block_on(agree(&store, budget, steps, false, audit));
            Ok(())
        })
        .unwrap();
}
