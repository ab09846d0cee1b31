//! Jobs that an API server admits before a worker does: what every store does.

use std::time::Duration;

use lanekeeper::dispatch::ports::{Door, JobRequest, TryResult};
use lanekeeper::domain::Verdict;
use lanekeeper::meter::CounterStore;
use tokio::time::sleep;

use super::world::*;

const LIFE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

on_every_store! {
    an_admission_is_counted_once with claims living super::LIFE;
    a_paid_job_passes_a_full_account with claims living super::LIFE;
    a_paid_job_passes_its_own_full_limits with claims living super::LIFE;
    an_old_admission_is_worth_nothing with claims living super::LIFE;
    an_admission_from_the_far_future_is_worth_nothing with claims living super::LIFE;
    an_api_server_is_told_what_it_admitted_before with claims living super::LIFE;
    to_an_api_server_any_try_is_under_way with claims living super::LIFE;
    a_shed_at_the_api_leaves_no_claim with claims living super::LIFE;
    a_paid_job_is_sent_once with claims living super::LIFE;
    a_job_that_could_not_be_queued_gives_its_place_back with claims living super::LIFE;
    without_claims_a_paid_job_still_passes with claims living std::time::Duration::ZERO;
}

fn at_the_api(job: JobRequest) -> JobRequest {
    JobRequest {
        door: Door::Api,
        ..job
    }
}

fn paid(job: &JobRequest, at_ms: u64) -> JobRequest {
    JobRequest {
        door: Door::Paid { at_ms },
        ..again(job)
    }
}

fn from_queue(job: &JobRequest) -> JobRequest {
    JobRequest {
        door: Door::Worker,
        ..again(job)
    }
}

/// Admits one job and says when that was.
async fn admit_at<S: CounterStore>(store: &S, job: &JobRequest) -> (Verdict, u64) {
    let asked = request("acct", 100, vec![job.clone()]);
    let mut answer = store.admit(&[asked]).await.remove(0).unwrap();
    (answer.verdicts.remove(0), answer.at_ms)
}

async fn queued<S: CounterStore>(store: &S, job: JobRequest) -> (JobRequest, u64) {
    let job = at_the_api(job);
    let (verdict, at_ms) = admit_at(store, &job).await;
    assert_eq!(verdict, PASSES);
    (job, at_ms)
}

async fn an_admission_is_counted_once<S: CounterStore>(store: &S) {
    let (job, at_ms) = queued(store, job("job", Marketing)).await;
    let (verdicts, counter) = admit(store, &[paid(&job, at_ms)]).await;
    assert_eq!((verdicts, counter.count), (vec![PASSES], 1));
}

async fn a_paid_job_passes_a_full_account<S: CounterStore>(store: &S) {
    let (job, at_ms) = queued(store, job("job", Marketing)).await;
    admit(store, &jobs(Transactional, 99)).await;
    let (verdicts, counter) = admit(store, &[paid(&job, at_ms)]).await;
    assert_eq!((verdicts, counter.count), (vec![PASSES], 100));
    assert_eq!(admit_one(store, &job_now()).await, OVER);
}

async fn a_paid_job_passes_its_own_full_limits<S: CounterStore>(store: &S) {
    let limited = JobRequest {
        number: Some(target("+447700900001", 1)),
        ..capped_job(&[cap("daily", "anna", 1, HOUR)])
    };
    let (job, at_ms) = queued(store, limited).await;
    assert_eq!(admit_one(store, &paid(&job, at_ms)).await, PASSES);
    let other = capped_job(&[cap("daily", "anna", 1, HOUR)]);
    assert_eq!(full_cap(&admit_one(store, &other).await), Some("daily"));
}

async fn an_old_admission_is_worth_nothing<S: CounterStore>(store: &S) {
    let limited = capped_job(&[cap("daily", "anna", 1, HOUR)]);
    let (job, at_ms) = queued(store, limited).await;
    let old = paid(&job, at_ms - 1_500);
    admit(store, &jobs(Transactional, 99)).await;
    // Its cap counts it already; its account has no room.
    assert_eq!(admit_one(store, &old).await, OVER);
    sleep(Duration::from_millis(1_050)).await;
    let (verdicts, counter) = admit(store, &[old]).await;
    assert_eq!((verdicts, counter.count), (vec![PASSES], 1));
}

async fn an_admission_from_the_far_future_is_worth_nothing<S: CounterStore>(store: &S) {
    let (job, at_ms) = queued(store, job("job", Marketing)).await;
    let (verdicts, counter) = admit(store, &[paid(&job, at_ms + 60_000)]).await;
    assert_eq!((verdicts, counter.count), (vec![PASSES], 2));
}

async fn an_api_server_is_told_what_it_admitted_before<S: CounterStore>(store: &S) {
    let (job, at_ms) = queued(store, job("job", Marketing)).await;
    let (verdicts, counter) = admit(store, &[again(&job), again(&job)]).await;
    assert_eq!(verdicts, vec![Verdict::AdmittedBefore { at_ms }; 2]);
    assert_eq!(counter.count, 1);
    // Also within one batch.
    let twin = at_the_api(job_now());
    let asked = request("acct", 100, vec![twin.clone(), again(&twin)]);
    let answer = store.admit(&[asked]).await.remove(0).unwrap();
    let at_ms = answer.at_ms;
    let expected = [PASSES, Verdict::AdmittedBefore { at_ms }];
    assert_eq!(answer.verdicts, expected);
    assert_eq!(answer.counter.count, 2);
}

async fn to_an_api_server_any_try_is_under_way<S: CounterStore>(store: &S) {
    let (job, at_ms) = queued(store, job("job", Marketing)).await;
    let send = paid(&job, at_ms);
    assert_eq!(admit_one(store, &send).await, PASSES);
    assert_eq!(admit_one(store, &again(&job)).await, CLAIMED);
    let end = conclusion(&send, TryResult::Unknown);
    store.conclude(&[end]).await.unwrap();
    // The worker's queue still has it.
    assert_eq!(admit_one(store, &again(&job)).await, CLAIMED);
    assert_eq!(admit_one(store, &from_queue(&job)).await, MAYBE_TWICE);
}

async fn a_shed_at_the_api_leaves_no_claim<S: CounterStore>(store: &S) {
    admit(store, &jobs(Marketing, 80)).await;
    let job = at_the_api(job("job", Marketing));
    assert_eq!(admit_one(store, &job).await, OVER);
    assert_eq!(admit_one(store, &again(&job)).await, OVER);
    sleep(Duration::from_millis(1_050)).await;
    assert_eq!(admit_one(store, &again(&job)).await, PASSES);
}

async fn a_paid_job_is_sent_once<S: CounterStore>(store: &S) {
    let (job, at_ms) = queued(store, job("job", Marketing)).await;
    let send = paid(&job, at_ms);
    assert_eq!(admit_one(store, &send).await, PASSES);
    assert_eq!(admit_one(store, &paid(&job, at_ms)).await, CLAIMED);
    let end = conclusion(&send, sent(None));
    store.conclude(&[end]).await.unwrap();
    for copy in [paid(&job, at_ms), from_queue(&job), again(&job)] {
        let verdict = admit_one(store, &copy).await;
        assert!(matches!(verdict, Verdict::Duplicate(_)), "{verdict:?}");
    }
}

async fn a_job_that_could_not_be_queued_gives_its_place_back<S: CounterStore>(store: &S) {
    let daily = cap("daily", "anna", 1, HOUR);
    let (job, at_ms) = queued(store, capped_job(std::slice::from_ref(&daily))).await;
    let end = last_conclusion(&job, TryResult::NotSent);
    store.conclude(&[end]).await.unwrap();
    // It can be queued again under its id, without being charged.
    let known = Verdict::AdmittedBefore { at_ms };
    assert_eq!(admit_one(store, &again(&job)).await, known);
    assert_eq!(admit_one(store, &capped_job(&[daily])).await, PASSES);
}

async fn without_claims_a_paid_job_still_passes<S: CounterStore>(store: &S) {
    let (job, at_ms) = queued(store, job("job", Marketing)).await;
    let (verdicts, counter) = admit(store, &[paid(&job, at_ms)]).await;
    assert_eq!((verdicts, counter.count), (vec![PASSES], 1));
    let (verdict, _) = admit_at(store, &again(&job)).await;
    assert_eq!(verdict, PASSES, "nobody remembers it");
}

/// A transactional job that no other test knows.
fn job_now() -> JobRequest {
    jobs(Transactional, 1).remove(0)
}
