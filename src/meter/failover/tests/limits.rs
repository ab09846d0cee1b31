//! Frequency caps and the ceilings of numbers and services while the store comes and goes.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::super::*;
use super::rig::*;
use crate::dispatch::ports::{CapKey, CapRequest, JobRequest, TargetCeiling, TryResult};
use crate::domain::{JobId, Lane, Limit, MeterMode, Verdict};

const DAY: Duration = Duration::from_secs(86_400);
const AWAY: Mood = Mood::Fails(StoreError::Unreachable);

fn cap(recipient: &str, limit: u32) -> CapRequest {
    let key = CapKey {
        cap: Arc::from("daily"),
        recipient: Arc::from(recipient),
    };
    CapRequest {
        key,
        limit,
        window: DAY,
    }
}

/// A job to a recipient who may have one message a day.
fn capped_job(rig: &Rig, id: &str, lane: Lane) -> JobRequest {
    JobRequest {
        caps: vec![cap("anna", 1)],
        ..rig.job(id, lane)
    }
}

fn of_number(rig: &Rig, number: &str, per_second: u32) -> JobRequest {
    let target = number.into();
    JobRequest {
        number: Some(TargetCeiling { target, per_second }),
        ..rig.jobs(Lane::Transactional, 1).remove(0)
    }
}

/// A job ends with this try.
async fn end(rig: &Rig, job: &JobRequest, result: TryResult) {
    let conclusion = Conclusion {
        account: AccountId::parse("acct").unwrap(),
        id: job.id.clone(),
        try_id: job.try_id,
        result,
        frees: job.caps.iter().map(|cap| cap.key.clone()).collect(),
    };
    rig.meter.conclude(vec![conclusion]).await;
}

async fn try_once(rig: &Rig, job: &JobRequest) -> Verdict {
    let answer = rig.admit_jobs(vec![job.clone()]).await;
    answer.verdicts.into_iter().next().unwrap()
}

/// Whether the one message of the day is used up, by what the store says to other replicas.
async fn is_full(rig: &Rig) -> bool {
    let id = format!("probe-{}", rig.jobs(Lane::Marketing, 1)[0].id);
    let job = capped_job(rig, &id, Lane::Transactional);
    matches!(rig.job_elsewhere(job).await, Verdict::Capped(_))
}

fn unchecked(rig: &Rig) -> [u64; 2] {
    Lane::ALL.map(|lane| {
        let counts = &rig.telemetry.counts().caps_unchecked;
        counts.get(lane.index(), 0)
    })
}

async fn store_returns(rig: &Rig) {
    rig.store.become_(Mood::Works);
    sleep(Duration::from_secs(3)).await;
}

#[tokio::test(start_paused = true)]
async fn without_the_store_caps_allow_and_each_job_that_passes_is_counted() {
    let rig = Rig::new(Mood::Works);
    let first = capped_job(&rig, "first", Lane::Transactional);
    assert_eq!(try_once(&rig, &first).await, PASSES);
    let second = capped_job(&rig, "second", Lane::Transactional);
    assert!(matches!(try_once(&rig, &second).await, Verdict::Capped(_)));
    assert_eq!(unchecked(&rig), [0, 0]);

    rig.store.become_(AWAY);
    let mut jobs = vec![
        capped_job(&rig, "third", Lane::Transactional),
        capped_job(&rig, "fourth", Lane::Transactional),
        capped_job(&rig, "fifth", Lane::Marketing),
    ];
    jobs.append(&mut rig.jobs(Lane::Transactional, 2));
    let answer = rig.admit_jobs(jobs).await;
    assert_eq!(answer.verdicts, vec![PASSES; 5]);
    let mut expected = [0; 2];
    expected[Lane::Transactional.index()] = 2;
    expected[Lane::Marketing.index()] = 1;
    assert_eq!(unchecked(&rig), expected);

    // What a ceiling sheds has not passed.
    rig.offer(Lane::Transactional, 100).await;
    let late = capped_job(&rig, "late", Lane::Transactional);
    assert_eq!(try_once(&rig, &late).await, Verdict::Shed(Limit::Lane));
    assert_eq!(unchecked(&rig), expected);
}

#[tokio::test(start_paused = true)]
async fn without_the_store_numbers_and_services_keep_to_their_ceilings() {
    let rig = Rig::new(AWAY);
    let hot = (0..5).map(|_| of_number(&rig, "+15550100", 3));
    let mut jobs: Vec<JobRequest> = hot.collect();
    jobs.push(of_number(&rig, "+15550101", 3));
    for job in &mut jobs {
        job.service = Some(TargetCeiling {
            target: "promo".into(),
            per_second: 4,
        });
    }
    jobs.push(JobRequest {
        number: None,
        ..jobs[0].clone()
    });
    jobs[6].id = JobId::parse("service-only").unwrap();
    let answer = rig.admit_jobs(jobs).await;
    let by_number = Verdict::Shed(Limit::Number);
    let mut expected = vec![PASSES; 3];
    expected.extend([by_number.clone(), by_number, PASSES]);
    expected.push(Verdict::Shed(Limit::Service));
    assert_eq!((answer.verdicts, answer.mode), (expected, MeterMode::Local));
    sleep(Duration::from_millis(1_001)).await;
    let again = of_number(&rig, "+15550100", 3);
    assert_eq!(try_once(&rig, &again).await, PASSES);
}

#[tokio::test(start_paused = true)]
async fn the_windows_of_numbers_go_on_from_what_this_process_was_admitted() {
    let rig = Rig::new(Mood::Works);
    let number = || of_number(&rig, "+15550100", 3);
    let answer = rig.admit_jobs(vec![number(), number()]).await;
    assert_eq!(answer.mode, MeterMode::Shared);
    rig.store.become_(AWAY);
    let answer = rig.admit_jobs(vec![number(), number(), number()]).await;
    assert_eq!(answer.mode, MeterMode::Local);
    assert_eq!(admitted(&answer), 1);
    assert_eq!(try_once(&rig, &of_number(&rig, "+1", 1)).await, PASSES);
}

/// Two calls at once, neither answered: the first one, which never reached the store, uses up the
/// ceiling here, or is another try; the second one was admitted there.
async fn admitted_there_after(rig: &Rig, first: Vec<JobRequest>, second: &JobRequest) -> Verdict {
    rig.store.become_(Mood::Hangs);
    let start = Instant::now();
    let lost = async {
        sleep(Duration::from_millis(1)).await;
        rig.store.become_(Mood::LosesReplies);
        try_once(rig, second).await
    };
    let (_, verdict) = tokio::join!(rig.admit_jobs(first), lost);
    rig.store.become_(AWAY);
    assert!(start.elapsed() < Duration::from_millis(50));
    verdict
}

#[tokio::test(start_paused = true)]
async fn a_try_that_will_never_be_made_frees_what_it_may_have_taken() {
    for life in [LIFE, Duration::ZERO] {
        let rig = Rig::with_claims(Mood::Works, life);
        let other = of_number(&rig, "+15550100", 1);
        let unlucky = JobRequest {
            number: other.number.clone(),
            ..capped_job(&rig, "unlucky", Lane::Transactional)
        };
        let verdict = admitted_there_after(&rig, vec![other], &unlucky).await;
        assert_eq!(verdict, Verdict::Shed(Limit::Number));
        assert!(is_full(&rig).await, "claims live {life:?}");
        store_returns(&rig).await;
        assert!(!is_full(&rig).await, "claims live {life:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_admitted_here_keeps_what_it_took_there() {
    let rig = Rig::new(Mood::LosesReplies);
    let job = capped_job(&rig, "job", Lane::Transactional);
    assert_eq!(try_once(&rig, &job).await, PASSES);
    store_returns(&rig).await;
    assert!(is_full(&rig).await);
}

#[tokio::test(start_paused = true)]
async fn another_try_that_is_under_way_here_keeps_it_too() {
    let rig = Rig::new(Mood::Works);
    let first = capped_job(&rig, "job", Lane::Transactional);
    let second = capped_job(&rig, "job", Lane::Transactional);
    let verdict = admitted_there_after(&rig, vec![first], &second).await;
    assert_eq!(verdict, CLAIMED);
    store_returns(&rig).await;
    assert!(is_full(&rig).await);
}

#[tokio::test(start_paused = true)]
async fn what_jobs_give_up_is_made_up_for() {
    for life in [LIFE, Duration::ZERO] {
        let rig = Rig::with_claims(Mood::Works, life);
        let job = capped_job(&rig, "job", Lane::Transactional);
        assert_eq!(try_once(&rig, &job).await, PASSES);
        rig.store.become_(AWAY);
        end(&rig, &job, TryResult::NotSent).await;
        assert!(is_full(&rig).await);
        store_returns(&rig).await;
        assert!(!is_full(&rig).await, "claims live {life:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_claims_only_what_jobs_give_up_is_recorded() {
    let rig = Rig::with_claims(Mood::Works, Duration::ZERO);
    let job = capped_job(&rig, "job", Lane::Transactional);
    assert_eq!(try_once(&rig, &job).await, PASSES);
    rig.store.become_(AWAY);
    end(&rig, &job, sent()).await;
    end(&rig, &job, TryResult::Unknown).await;
    let plain = rig.jobs(Lane::Transactional, 1).remove(0);
    end(&rig, &plain, TryResult::NotSent).await;
    assert!(rig.meter.shared.state().backlog.is_empty());
    rig.store.become_(Mood::Works);
    end(&rig, &job, TryResult::NotSent).await;
    assert!(!is_full(&rig).await);
}
