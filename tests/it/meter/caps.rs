//! Frequency caps: what every store does.

use std::time::Duration;

use jiff::Timestamp;
use lanekeeper::dispatch::ports::{CapRequest, JobRequest, TryResult};
use lanekeeper::domain::Verdict;
use lanekeeper::meter::CounterStore;
use tokio::time::sleep;

use super::world::*;

const LIFE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

on_every_store! {
    a_cap_lets_its_limit_pass_and_no_more with claims living super::LIFE;
    jobs_of_one_batch_see_each_other with claims living super::LIFE;
    a_job_is_counted_once_however_often_it_is_tried with claims living super::LIFE;
    a_job_twice_in_a_batch_is_counted_once with claims living std::time::Duration::ZERO;
    the_window_rolls with claims living super::LIFE;
    a_job_that_comes_again_after_its_window_is_counted_anew with claims living super::LIFE;
    a_job_that_ended_unsent_gives_its_place_back with claims living super::LIFE;
    a_job_that_will_be_tried_again_keeps_its_place with claims living super::LIFE;
    what_was_or_may_have_been_sent_keeps_its_place with claims living super::LIFE;
    a_try_without_a_claim_frees_too with claims living super::LIFE;
    another_try_of_the_job_keeps_its_place with claims living super::LIFE;
    without_claims_the_last_try_alone_decides with claims living std::time::Duration::ZERO;
    a_shed_job_uses_no_place with claims living super::LIFE;
    a_capped_job_uses_no_ceiling_and_no_claim with claims living super::LIFE;
    one_full_cap_changes_nothing_of_the_others with claims living super::LIFE;
    a_cap_that_was_lowered_says_when_enough_have_left with claims living super::LIFE;
}

fn daily(recipient: &str, limit: u32) -> CapRequest {
    cap("daily", recipient, limit, HOUR)
}

/// How many more jobs a cap lets pass.
async fn room<S: CounterStore>(store: &S, cap: &CapRequest) -> usize {
    let mut room = 0;
    loop {
        let verdict = admit_one(store, &capped_job(std::slice::from_ref(cap))).await;
        if full_cap(&verdict).is_some() {
            return room;
        }
        assert_eq!(verdict, PASSES);
        room += 1;
    }
}

async fn passes_with<S: CounterStore>(store: &S, cap: &CapRequest) -> JobRequest {
    let job = capped_job(std::slice::from_ref(cap));
    assert_eq!(admit_one(store, &job).await, PASSES);
    job
}

/// Until a full cap has room again.
fn wait(verdict: &Verdict) -> Duration {
    let Verdict::Capped(capped) = verdict else {
        panic!("{verdict:?}");
    };
    let now_ms = u64::try_from(Timestamp::now().as_millisecond()).unwrap();
    Duration::from_millis(capped.until_ms.saturating_sub(now_ms))
}

async fn a_cap_lets_its_limit_pass_and_no_more<S: CounterStore>(store: &S) {
    let caps = [daily("anna", 3)];
    for _ in 0..3 {
        passes_with(store, &caps[0]).await;
    }
    let verdict = admit_one(store, &capped_job(&caps)).await;
    assert_eq!(full_cap(&verdict), Some("daily"));
    let wait = wait(&verdict);
    assert!(wait + Duration::from_secs(20) > HOUR && wait <= HOUR);
    // Another recipient, another cap, another account.
    assert_eq!(room(store, &daily("berta", 3)).await, 3);
    assert_eq!(room(store, &cap("promo", "anna", 1, HOUR)).await, 1);
    let elsewhere = request("other", 100, vec![capped_job(&caps)]);
    let answer = store.admit(&[elsewhere]).await.remove(0).unwrap();
    assert_eq!(answer.verdicts, [PASSES]);
}

async fn jobs_of_one_batch_see_each_other<S: CounterStore>(store: &S) {
    passes_with(store, &daily("anna", 3)).await;
    let batch: Vec<JobRequest> = (0..8)
        .map(|place| {
            let recipient = if place % 2 == 0 { "anna" } else { "berta" };
            capped_job(&[daily(recipient, 3)])
        })
        .collect();
    let (verdicts, counter) = admit(store, &batch).await;
    let passed: Vec<bool> = verdicts.iter().map(|verdict| *verdict == PASSES).collect();
    assert_eq!(
        passed,
        [true, true, true, true, false, true, false, false],
        "{verdicts:?}"
    );
    assert_eq!(counter.count, 6);
}

async fn a_job_is_counted_once_however_often_it_is_tried<S: CounterStore>(store: &S) {
    let cap = daily("anna", 2);
    let first = passes_with(store, &cap).await;
    for (result, verdict) in [
        (TryResult::NotSent, PASSES),
        (TryResult::Unknown, MAYBE_TWICE),
    ] {
        let held = admit_one(store, &again(&first)).await;
        assert_eq!(held, CLAIMED);
        // Neither the retry nor, beside it in the batch, another job counts the first one twice.
        let end = conclusion(&first, result);
        store.conclude(&[end]).await.unwrap();
        let retry = JobRequest {
            try_id: first.try_id,
            ..first.clone()
        };
        assert_eq!(admit_one(store, &retry).await, verdict);
    }
    let end = conclusion(&first, TryResult::NotSent);
    store.conclude(&[end]).await.unwrap();
    let batch = [
        again(&first),
        capped_job(std::slice::from_ref(&cap)),
        capped_job(std::slice::from_ref(&cap)),
    ];
    let (verdicts, _) = admit(store, &batch).await;
    assert_eq!(verdicts[..2], [PASSES, PASSES]);
    assert_eq!(full_cap(&verdicts[2]), Some("daily"));
    // Full as the cap is, it lets its own jobs pass.
    let end = conclusion(&batch[0], TryResult::NotSent);
    store.conclude(&[end]).await.unwrap();
    assert_eq!(admit_one(store, &again(&first)).await, PASSES);
}

async fn a_job_twice_in_a_batch_is_counted_once<S: CounterStore>(store: &S) {
    let cap = daily("anna", 2);
    let twice = capped_job(std::slice::from_ref(&cap));
    let other = capped_job(std::slice::from_ref(&cap));
    let batch = [twice.clone(), again(&twice), other, again(&twice)];
    let (verdicts, _) = admit(store, &batch).await;
    assert_eq!(verdicts, vec![PASSES; 4]);
    assert_eq!(room(store, &cap).await, 0);
}

async fn the_window_rolls<S: CounterStore>(store: &S) {
    let cap = cap("often", "anna", 2, Duration::from_millis(800));
    let caps = std::slice::from_ref(&cap);
    passes_with(store, &cap).await;
    sleep(Duration::from_millis(400)).await;
    passes_with(store, &cap).await;
    let verdict = admit_one(store, &capped_job(caps)).await;
    assert!(wait(&verdict) <= Duration::from_millis(400));
    sleep(Duration::from_millis(410)).await;
    // The first one has left; the second one leaves 400 ms later.
    let (verdicts, _) = admit(store, &[capped_job(caps), capped_job(caps)]).await;
    assert_eq!(verdicts[0], PASSES);
    assert!(wait(&verdicts[1]) <= Duration::from_millis(390));
    sleep(Duration::from_millis(400)).await;
    assert_eq!(room(store, &cap).await, 1);
}

async fn a_job_that_comes_again_after_its_window_is_counted_anew<S: CounterStore>(store: &S) {
    let cap = cap("often", "anna", 1, Duration::from_millis(300));
    let first = passes_with(store, &cap).await;
    let end = conclusion(&first, TryResult::NotSent);
    store.conclude(&[end]).await.unwrap();
    sleep(Duration::from_millis(320)).await;
    assert_eq!(admit_one(store, &again(&first)).await, PASSES);
    assert_eq!(room(store, &cap).await, 0);
}

async fn a_job_that_ended_unsent_gives_its_place_back<S: CounterStore>(store: &S) {
    let (cap, other) = (daily("anna", 2), cap("weekly", "anna", 1, HOUR));
    let first = capped_job(&[cap.clone(), other.clone()]);
    assert_eq!(admit_one(store, &first).await, PASSES);
    passes_with(store, &cap).await;
    assert_eq!(room(store, &cap).await, 0);
    // Twice: the second time changes nothing more.
    for _ in 0..2 {
        let end = last_conclusion(&first, TryResult::NotSent);
        store.conclude(&[end]).await.unwrap();
    }
    assert_eq!(room(store, &cap).await, 1);
    assert_eq!(room(store, &other).await, 1);
    assert_eq!(room(store, &cap).await, 0);
}

async fn a_job_that_will_be_tried_again_keeps_its_place<S: CounterStore>(store: &S) {
    let cap = daily("anna", 1);
    let first = passes_with(store, &cap).await;
    let end = conclusion(&first, TryResult::NotSent);
    store.conclude(&[end]).await.unwrap();
    assert_eq!(room(store, &cap).await, 0);
}

async fn what_was_or_may_have_been_sent_keeps_its_place<S: CounterStore>(store: &S) {
    let cap = daily("anna", 2);
    for result in [sent(None), TryResult::Unknown] {
        let job = passes_with(store, &cap).await;
        let end = last_conclusion(&job, result);
        store.conclude(&[end]).await.unwrap();
        // A later word about a try that never was changes nothing of it.
        let late = last_conclusion(&again(&job), TryResult::NotSent);
        store.conclude(&[late]).await.unwrap();
    }
    assert_eq!(room(store, &cap).await, 0);
}

/// A job that failed once, keeps its place for the next try, and expires in the queue.
async fn a_try_without_a_claim_frees_too<S: CounterStore>(store: &S) {
    let cap = daily("anna", 1);
    let first = passes_with(store, &cap).await;
    let end = conclusion(&first, TryResult::NotSent);
    store.conclude(&[end]).await.unwrap();
    let end = last_conclusion(&again(&first), TryResult::NotSent);
    store.conclude(&[end]).await.unwrap();
    assert_eq!(room(store, &cap).await, 1);
}

async fn another_try_of_the_job_keeps_its_place<S: CounterStore>(store: &S) {
    let cap = daily("anna", 1);
    let job = passes_with(store, &cap).await;
    let end = last_conclusion(&again(&job), TryResult::NotSent);
    store.conclude(&[end]).await.unwrap();
    assert_eq!(room(store, &cap).await, 0);
}

async fn without_claims_the_last_try_alone_decides<S: CounterStore>(store: &S) {
    let cap = daily("anna", 2);
    for result in [sent(None), TryResult::Unknown] {
        let job = passes_with(store, &cap).await;
        let end = last_conclusion(&job, result);
        store.conclude(&[end]).await.unwrap();
    }
    assert_eq!(room(store, &cap).await, 0);
    let cap = daily("berta", 2);
    let jobs = [
        passes_with(store, &cap).await,
        passes_with(store, &cap).await,
    ];
    let ends = jobs.map(|job| last_conclusion(&job, TryResult::NotSent));
    store.conclude(&ends).await.unwrap();
    assert_eq!(room(store, &cap).await, 2);
}

async fn a_shed_job_uses_no_place<S: CounterStore>(store: &S) {
    let cap = daily("anna", 1);
    let capped = || capped_job(std::slice::from_ref(&cap));
    let asked = request("acct", 0, vec![capped()]);
    let answer = store.admit(&[asked]).await.remove(0).unwrap();
    assert_eq!(answer.verdicts, [OVER]);
    let filler = |name: &str| {
        let (number, service) = match name {
            "number" => (Some(target("+15550100", 1)), None),
            _ => (None, Some(target("promo", 1))),
        };
        JobRequest {
            number,
            service,
            ..job(&format!("filler-{name}"), Transactional)
        }
    };
    for (name, over) in [("number", OVER_NUMBER), ("service", OVER_SERVICE)] {
        let filler = filler(name);
        let shed = JobRequest {
            caps: vec![cap.clone()],
            id: capped().id,
            ..again(&filler)
        };
        let (verdicts, _) = admit(store, &[filler, shed]).await;
        assert_eq!(verdicts, [PASSES, over]);
    }
    assert_eq!(room(store, &cap).await, 1);
}

async fn a_capped_job_uses_no_ceiling_and_no_claim<S: CounterStore>(store: &S) {
    let cap = daily("anna", 1);
    let first = passes_with(store, &cap).await;
    let refused = JobRequest {
        number: Some(target("+15550100", 1)),
        service: Some(target("promo", 1)),
        ..capped_job(std::slice::from_ref(&cap))
    };
    let (verdicts, counter) = admit(store, std::slice::from_ref(&refused)).await;
    assert_eq!(full_cap(&verdicts[0]), Some("daily"));
    assert_eq!(counter.count, 1);
    let end = last_conclusion(&first, TryResult::NotSent);
    store.conclude(&[end]).await.unwrap();
    assert_eq!(admit_one(store, &again(&refused)).await, PASSES);
}

async fn one_full_cap_changes_nothing_of_the_others<S: CounterStore>(store: &S) {
    let caps = [
        daily("anna", 2),
        cap("weekly", "anna", 1, HOUR),
        cap("monthly", "anna", 2, HOUR),
    ];
    passes_with(store, &caps[1]).await;
    for _ in 0..3 {
        let verdict = admit_one(store, &capped_job(&caps)).await;
        assert_eq!(full_cap(&verdict), Some("weekly"));
    }
    assert_eq!(room(store, &caps[0]).await, 2);
    assert_eq!(room(store, &caps[2]).await, 2);
}

async fn a_cap_that_was_lowered_says_when_enough_have_left<S: CounterStore>(store: &S) {
    for _ in 0..3 {
        passes_with(store, &daily("anna", 3)).await;
        sleep(Duration::from_millis(100)).await;
    }
    let waits = [3, 2, 1].map(|limit| capped_job(&[daily("anna", limit)]));
    let mut last = Duration::ZERO;
    for job in waits {
        let wait = wait(&admit_one(store, &job).await);
        assert!(wait > last + Duration::from_millis(50), "{wait:?} {last:?}");
        last = wait;
    }
}
