//! What every store of counters does. Each test body here runs on the store in memory, under
//! paused time, and on Redis.

use std::time::Duration;

use lanekeeper::dispatch::ports::{JobRequest, TryResult};
use lanekeeper::domain::Verdict;
use lanekeeper::meter::CounterStore;
use tokio::time::sleep;

use super::world::*;

const LIFE: Duration = Duration::from_secs(60);

on_every_store! {
    each_lane_keeps_to_its_ceiling with claims living super::LIFE;
    sheds_change_nothing with claims living super::LIFE;
    a_window_lasts_one_second_from_its_first_count with claims living super::LIFE;
    no_budget_admits_nothing with claims living super::LIFE;
    accounts_count_apart with claims living super::LIFE;
    a_job_passes_once_in_a_batch with claims living super::LIFE;
    a_claim_holds_until_its_deadline with claims living super::LIFE;
    a_sent_job_is_a_duplicate_for_ever with claims living super::LIFE;
    the_first_record_stays with claims living super::LIFE;
    not_sent_frees_the_job_for_its_own_try_only with claims living super::LIFE;
    unknown_lets_the_next_try_pass with claims living super::LIFE;
    sent_is_recorded_whoever_holds_the_claim with claims living super::LIFE;
    a_job_concluded_twice_in_one_batch_ends_sent with claims living super::LIFE;
    a_batch_of_any_size_is_decided_at_once with claims living super::LIFE;
    claims_expire with claims living std::time::Duration::from_millis(300);
    without_claims_nothing_is_remembered with claims living std::time::Duration::ZERO;
}

async fn each_lane_keeps_to_its_ceiling<S: CounterStore>(store: &S) {
    let (verdicts, counter) = admit(store, &jobs(Marketing, 250)).await;
    assert_eq!(admitted(&verdicts), 80);
    assert!(verdicts[..80].iter().all(|verdict| *verdict == PASSES));
    assert!(verdicts[80..].iter().all(|verdict| *verdict == OVER));
    assert_eq!(counter.count, 80);
    let (verdicts, _) = admit(store, &jobs(Transactional, 15)).await;
    assert_eq!(admitted(&verdicts), 15);
    let (verdicts, counter) = admit(store, &jobs(Transactional, 15)).await;
    assert_eq!((admitted(&verdicts), counter.count), (5, 100));
}

async fn sheds_change_nothing<S: CounterStore>(store: &S) {
    let (_, first) = admit(store, &jobs(Marketing, 80)).await;
    let shed = jobs(Marketing, 1_000);
    let (verdicts, counter) = admit(store, &shed).await;
    assert_eq!((admitted(&verdicts), counter.count), (0, 80));
    assert!(counter.window_left <= first.window_left);
    // Nor do they claim anything: the same jobs pass as soon as there is room.
    let urgent: Vec<JobRequest> = shed[..20]
        .iter()
        .map(|job| job_in(job, Transactional))
        .collect();
    let (verdicts, counter) = admit(store, &urgent).await;
    assert!(verdicts.iter().all(|verdict| *verdict == PASSES));
    assert_eq!(counter.count, 100);
}

fn job_in(job: &JobRequest, lane: lanekeeper::domain::Lane) -> JobRequest {
    JobRequest { lane, ..again(job) }
}

async fn a_window_lasts_one_second_from_its_first_count<S: CounterStore>(store: &S) {
    let (_, counter) = admit(store, &jobs(Transactional, 1)).await;
    assert!(counter.window_left > Duration::from_millis(900));
    assert!(counter.window_left <= Duration::from_secs(1));
    sleep(Duration::from_millis(400)).await;
    let (_, counter) = admit(store, &jobs(Transactional, 1)).await;
    assert_eq!(counter.count, 2);
    assert!(
        counter.window_left <= Duration::from_millis(600),
        "a count moves no end"
    );
    sleep(counter.window_left + Duration::from_millis(5)).await;
    let (verdicts, counter) = admit(store, &jobs(Transactional, 150)).await;
    assert_eq!((admitted(&verdicts), counter.count), (100, 100));
}

async fn no_budget_admits_nothing<S: CounterStore>(store: &S) {
    let asked = request("acct", 0, jobs(Transactional, 3));
    let answer = store.admit(&[asked]).await.remove(0).unwrap();
    assert_eq!(answer.verdicts, vec![OVER; 3]);
    assert_eq!(answer.counter.count, 0);
    assert_eq!(answer.counter.window_left, Duration::ZERO);
}

async fn accounts_count_apart<S: CounterStore>(store: &S) {
    let asked = ["one", "two", "three"].map(|name| request(name, 10, jobs(Transactional, 8)));
    for expected in [[8, 8, 8], [2, 2, 2]] {
        let answers = store.admit(&asked.clone().map(renew)).await;
        let counts: Vec<_> = answers
            .into_iter()
            .map(|answer| admitted(&answer.unwrap().verdicts))
            .collect();
        assert_eq!(counts, expected);
    }
}

fn renew(
    mut request: lanekeeper::dispatch::ports::AccountRequest,
) -> lanekeeper::dispatch::ports::AccountRequest {
    let count = request.jobs.len();
    request.jobs = jobs(Transactional, count);
    request
}

async fn a_job_passes_once_in_a_batch<S: CounterStore>(store: &S) {
    let once = job("twice", Transactional);
    let batch = [once.clone(), job("other", Transactional), again(&once)];
    let (verdicts, counter) = admit(store, &batch).await;
    assert_eq!(verdicts, [PASSES, PASSES, CLAIMED]);
    assert_eq!(counter.count, 2);
}

async fn a_claim_holds_until_its_deadline<S: CounterStore>(store: &S) {
    let first = JobRequest {
        claim_for: Duration::from_millis(200),
        ..job("job", Transactional)
    };
    assert_eq!(admit_one(store, &first).await, PASSES);
    assert_eq!(admit_one(store, &again(&first)).await, CLAIMED);
    sleep(Duration::from_millis(220)).await;
    assert_eq!(admit_one(store, &again(&first)).await, MAYBE_TWICE);
    assert_eq!(admit_one(store, &again(&first)).await, CLAIMED);
}

async fn a_sent_job_is_a_duplicate_for_ever<S: CounterStore>(store: &S) {
    let first = job("job", Transactional);
    let plain = job("plain", Transactional);
    admit(store, &[first.clone(), plain.clone()]).await;
    let ends = [
        conclusion(&first, sent(Some("ref:with:colons ü"))),
        conclusion(&plain, sent(None)),
    ];
    store.conclude(&ends).await.unwrap();
    let before = admit(store, &[]).await.1.count;
    let (verdicts, counter) = admit(store, &[again(&first), again(&plain)]).await;
    let [Verdict::Duplicate(record), Verdict::Duplicate(bare)] = &verdicts[..] else {
        panic!("{verdicts:?}");
    };
    assert_eq!(&*record.carrier, "sandbox");
    assert_eq!(record.carrier_ref.as_deref(), Some("ref:with:colons ü"));
    assert_eq!(bare.carrier_ref, None);
    let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap();
    assert!(
        record.at_ms.abs_diff(now) < 60_000,
        "{} is not now",
        record.at_ms
    );
    assert_eq!(counter.count, before, "a duplicate is not counted");
}

async fn the_first_record_stays<S: CounterStore>(store: &S) {
    let first = job("job", Transactional);
    admit_one(store, &first).await;
    for carrier_ref in ["first", "second"] {
        let end = conclusion(&first, sent(Some(carrier_ref)));
        store.conclude(&[end]).await.unwrap();
    }
    let verdict = admit_one(store, &again(&first)).await;
    let Verdict::Duplicate(record) = verdict else {
        panic!("{verdict:?}");
    };
    assert_eq!(record.carrier_ref.as_deref(), Some("first"));
}

async fn not_sent_frees_the_job_for_its_own_try_only<S: CounterStore>(store: &S) {
    let first = job("job", Transactional);
    admit_one(store, &first).await;
    let stranger = again(&first);
    for result in [TryResult::NotSent, TryResult::Unknown] {
        let end = conclusion(&stranger, result);
        store.conclude(&[end]).await.unwrap();
    }
    assert_eq!(admit_one(store, &again(&first)).await, CLAIMED);
    for _ in 0..2 {
        let end = conclusion(&first, TryResult::NotSent);
        store.conclude(&[end]).await.unwrap();
    }
    assert_eq!(admit_one(store, &again(&first)).await, PASSES);
    // A late word about the old try does not touch the new one.
    let end = conclusion(&first, TryResult::NotSent);
    store.conclude(&[end]).await.unwrap();
    assert_eq!(admit_one(store, &again(&first)).await, CLAIMED);
}

async fn unknown_lets_the_next_try_pass<S: CounterStore>(store: &S) {
    let first = job("job", Transactional);
    admit_one(store, &first).await;
    for _ in 0..2 {
        let end = conclusion(&first, TryResult::Unknown);
        store.conclude(&[end]).await.unwrap();
    }
    assert_eq!(admit_one(store, &again(&first)).await, MAYBE_TWICE);
    let end = conclusion(&first, TryResult::Unknown);
    store.conclude(&[end]).await.unwrap();
    assert_eq!(admit_one(store, &again(&first)).await, CLAIMED);
}

async fn sent_is_recorded_whoever_holds_the_claim<S: CounterStore>(store: &S) {
    let held = job("held", Transactional);
    admit_one(store, &held).await;
    let unclaimed = job("unclaimed", Transactional);
    let ends = [
        conclusion(&again(&held), sent(None)),
        conclusion(&unclaimed, sent(None)),
    ];
    store.conclude(&ends).await.unwrap();
    let end = conclusion(&held, TryResult::NotSent);
    store.conclude(&[end]).await.unwrap();
    for job in [&held, &unclaimed] {
        assert!(matches!(
            admit_one(store, &again(job)).await,
            Verdict::Duplicate(_)
        ));
    }
}

async fn a_job_concluded_twice_in_one_batch_ends_sent<S: CounterStore>(store: &S) {
    let first = job("job", Transactional);
    admit_one(store, &first).await;
    let ends = [
        conclusion(&first, sent(Some("first"))),
        conclusion(&first, TryResult::NotSent),
        conclusion(&first, sent(Some("second"))),
    ];
    store.conclude(&ends).await.unwrap();
    let verdict = admit_one(store, &again(&first)).await;
    assert!(
        matches!(&verdict, Verdict::Duplicate(record) if record.carrier_ref.as_deref() == Some("first"))
    );
}

async fn a_batch_of_any_size_is_decided_at_once<S: CounterStore>(store: &S) {
    let many = jobs(Transactional, 9_001);
    let asked = request("acct", 1_000_000, many.clone());
    let answer = store.admit(&[asked]).await.remove(0).unwrap();
    assert_eq!(admitted(&answer.verdicts), 9_001);
    let ends: Vec<_> = many.iter().map(|job| conclusion(job, sent(None))).collect();
    store.conclude(&ends).await.unwrap();
    let asked = request("acct", 1_000_000, many.iter().map(again).collect());
    let answer = store.admit(&[asked]).await.remove(0).unwrap();
    let is_duplicate = |verdict: &Verdict| matches!(verdict, Verdict::Duplicate(_));
    assert!(answer.verdicts.iter().all(is_duplicate));
}

async fn claims_expire<S: CounterStore>(store: &S) {
    let first = JobRequest {
        claim_for: Duration::from_millis(100),
        ..job("job", Transactional)
    };
    admit_one(store, &first).await;
    let end = conclusion(&first, sent(None));
    store.conclude(&[end]).await.unwrap();
    assert!(matches!(
        admit_one(store, &again(&first)).await,
        Verdict::Duplicate(_)
    ));
    sleep(Duration::from_millis(450)).await;
    assert_eq!(admit_one(store, &again(&first)).await, PASSES);
}

async fn without_claims_nothing_is_remembered<S: CounterStore>(store: &S) {
    let first = job("job", Transactional);
    assert_eq!(admit_one(store, &first).await, PASSES);
    let end = conclusion(&first, sent(None));
    store.conclude(&[end]).await.unwrap();
    let (verdicts, counter) = admit(store, &[again(&first), again(&first)]).await;
    assert_eq!(verdicts, [PASSES, PASSES]);
    assert_eq!(counter.count, 3);
}
