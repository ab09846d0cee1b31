//! The failover under paused time, over a store that can be told how to misbehave.

mod limits;
mod rig;

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::{Instant, sleep};

use super::*;
use crate::dispatch::ports::{TryId, TryResult};
use crate::domain::{JobId, Lane, Limit, MeterMode, Verdict};
use rig::*;

#[tokio::test(start_paused = true)]
async fn a_working_store_decides_and_nothing_is_counted_as_fallback() {
    let rig = Rig::new(Mood::Works);
    assert_eq!(
        rig.offer(Lane::Marketing, 250).await,
        (80, MeterMode::Shared)
    );
    assert_eq!(
        rig.offer(Lane::Transactional, 30).await,
        (20, MeterMode::Shared)
    );
    assert_eq!(rig.fallbacks(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_counter_alone_is_asked_of_the_store_too() {
    let rig = Rig::new(Mood::Works);
    rig.offer(Lane::Marketing, 3).await;
    // Another process counts on.
    let more = rig.jobs(Lane::Transactional, 20);
    let others = rig.store.inner.admit(&[request("acct", more)]).await;
    assert_eq!(others[0].as_ref().unwrap().counter.count, 23);
    assert_eq!(rig.admit_jobs(Vec::new()).await.counter.count, 23);
    rig.store.become_(Mood::Fails(StoreError::Unreachable));
    assert_eq!(rig.admit_jobs(Vec::new()).await.counter.count, 23);
    assert_eq!(rig.fallbacks(), 0);
}

#[tokio::test(start_paused = true)]
async fn any_failure_is_answered_here_in_time_with_the_same_ceilings_and_counted() {
    for mood in [
        Mood::Hangs,
        Mood::Slow(2_000),
        Mood::LosesReplies,
        Mood::Fails(StoreError::Unreachable),
        Mood::Fails(StoreError::ReadOnly),
        Mood::Fails(StoreError::Denied),
    ] {
        let rig = Rig::new(mood);
        let start = Instant::now();
        assert_eq!(
            rig.offer(Lane::Marketing, 250).await,
            (80, MeterMode::Local)
        );
        assert!(start.elapsed() < Duration::from_millis(50), "{mood:?}");
        assert_eq!(
            rig.offer(Lane::Transactional, 30).await,
            (20, MeterMode::Local)
        );
        assert_eq!(rig.fallbacks(), 280, "{mood:?}");
        let why = match mood {
            Mood::Fails(why) => why,
            _ => StoreError::TimedOut,
        };
        assert_eq!(rig.fallbacks_because(why), 280, "{mood:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_local_window_goes_on_from_what_the_store_last_said() {
    let rig = Rig::new(Mood::Works);
    rig.offer(Lane::Transactional, 70).await;
    sleep(Duration::from_millis(600)).await;
    rig.store.become_(Mood::Fails(StoreError::Unreachable));
    assert_eq!(rig.offer(Lane::Marketing, 50).await, (10, MeterMode::Local));
    assert_eq!(
        rig.offer(Lane::Transactional, 50).await,
        (20, MeterMode::Local)
    );
    sleep(Duration::from_millis(399)).await;
    assert_eq!(rig.offer(Lane::Transactional, 50).await.0, 0);
    sleep(Duration::from_millis(2)).await;
    assert_eq!(
        rig.offer(Lane::Transactional, 150).await,
        (100, MeterMode::Local)
    );
}

#[tokio::test(start_paused = true)]
async fn an_account_returns_when_its_local_window_has_ended_and_not_before() {
    let rig = Rig::new(Mood::Fails(StoreError::TimedOut));
    assert_eq!(
        rig.offer(Lane::Transactional, 60).await,
        (60, MeterMode::Local)
    );
    rig.store.become_(Mood::Works);
    sleep(Duration::from_millis(990)).await;
    assert_eq!(
        rig.offer(Lane::Transactional, 60).await,
        (40, MeterMode::Local)
    );
    assert_eq!(rig.fallbacks(), 120);
    sleep(Duration::from_millis(11)).await;
    assert_eq!(
        rig.offer(Lane::Transactional, 60).await,
        (60, MeterMode::Shared)
    );
    assert_eq!(rig.fallbacks(), 120);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_keeps_failing_is_left_alone_until_a_probe_succeeds() {
    let rig = Rig::new(Mood::Hangs);
    for _ in 0..3 {
        rig.offer(Lane::Marketing, 1).await;
        sleep(Duration::from_millis(1_001)).await;
    }
    assert_eq!(rig.store.calls(), 3);
    let start = Instant::now();
    for _ in 0..20 {
        assert_eq!(rig.offer(Lane::Marketing, 1).await.1, MeterMode::Local);
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(rig.store.calls(), 3);
    let mode = &rig.telemetry.counts().meter_mode;
    let mode = || mode.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(mode(), MeterMode::Local as u64);
    // The reason stays the one that it was left alone for.
    assert_eq!(rig.fallbacks_because(StoreError::TimedOut), 23);

    rig.store.become_(Mood::Works);
    sleep(Duration::from_millis(2_500)).await;
    assert_eq!(rig.offer(Lane::Marketing, 1).await.1, MeterMode::Shared);
    assert_eq!(mode(), MeterMode::Shared as u64);
}

#[tokio::test(start_paused = true)]
async fn one_account_that_fails_falls_open_alone() {
    let rig = Rig::new(Mood::FailsForOne);
    for _ in 0..10 {
        let requests = ["well", "ill", "fine"]
            .map(|account| request(account, rig.jobs(Lane::Transactional, 5)));
        let answers = rig.meter.admit(requests.to_vec()).await;
        let modes: Vec<_> = answers.iter().map(|answer| answer.mode).collect();
        assert_eq!(
            modes,
            [MeterMode::Shared, MeterMode::Local, MeterMode::Shared]
        );
    }
    assert_eq!(rig.fallbacks(), 50);
}

#[tokio::test(start_paused = true)]
async fn what_another_call_may_be_admitting_is_left_room_for() {
    let rig = Rig::new(Mood::Slow(30));
    let slow = rig.offer(Lane::Transactional, 60);
    let failing = async {
        sleep(Duration::from_millis(5)).await;
        rig.store.become_(Mood::Fails(StoreError::Unreachable));
        rig.offer(Lane::Transactional, 60).await
    };
    let ((by_store, mode), (here, _)) = tokio::join!(slow, failing);
    assert_eq!((by_store, mode), (60, MeterMode::Shared));
    assert_eq!(here, 40);
    assert_eq!(
        rig.offer(Lane::Transactional, 5).await,
        (0, MeterMode::Local)
    );
}

#[tokio::test(start_paused = true)]
async fn pending_marketing_leaves_the_reserve_to_others() {
    let rig = Rig::new(Mood::Hangs);
    let marketing = rig.offer(Lane::Marketing, 500);
    let urgent = async {
        sleep(Duration::from_millis(5)).await;
        rig.store.become_(Mood::Fails(StoreError::Unreachable));
        rig.offer(Lane::Transactional, 25).await.0
    };
    let ((later, _), first) = tokio::join!(marketing, urgent);
    assert_eq!(first, 20);
    assert_eq!(later, 60);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_half_way_takes_no_room_for_ever() {
    let rig = Rig::new(Mood::Hangs);
    let dropped = rig.offer(Lane::Transactional, 100);
    assert!(
        tokio::time::timeout(Duration::from_millis(5), dropped)
            .await
            .is_err()
    );
    rig.store.become_(Mood::Fails(StoreError::Unreachable));
    assert_eq!(rig.offer(Lane::Transactional, 100).await.0, 100);
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_this_process_remembers() {
    let rig = Rig::new(Mood::Works);
    let (before, verdict) = rig.try_job("before").await;
    assert_eq!(verdict, PASSES);
    rig.store.become_(Mood::Fails(StoreError::Unreachable));
    let (during, verdict) = rig.try_job("during").await;
    assert_eq!(verdict, PASSES);
    assert_eq!(rig.try_job("before").await.1, CLAIMED);
    assert_eq!(rig.try_job("during").await.1, CLAIMED);

    rig.conclude("before", before, sent()).await;
    rig.conclude("during", during, sent()).await;
    for id in ["before", "during"] {
        assert!(
            matches!(rig.try_job(id).await.1, Verdict::Duplicate(_)),
            "{id}"
        );
    }

    rig.store.become_(Mood::Works);
    sleep(Duration::from_secs(3)).await;
    for id in ["before", "during"] {
        assert!(
            matches!(rig.try_job(id).await.1, Verdict::Duplicate(_)),
            "{id}"
        );
        assert!(
            matches!(rig.elsewhere(id).await, Verdict::Duplicate(_)),
            "{id}"
        );
    }
}

/// One decision that the store misses must not send again what the store knows as sent.
#[tokio::test(start_paused = true)]
async fn what_the_store_has_recorded_as_sent_is_known_without_it() {
    let rig = Rig::new(Mood::Works);
    let (early, verdict) = rig.try_job("early").await;
    assert_eq!(verdict, PASSES);
    rig.conclude("early", early, sent()).await;
    rig.store.become_(Mood::Fails(StoreError::TimedOut));
    let again = rig.try_job("early").await.1;
    assert!(matches!(again, Verdict::Duplicate(_)), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn ends_of_tries_without_a_send_are_made_up_for_too() {
    let rig = Rig::new(Mood::Works);
    let (failed, _) = rig.try_job("failed").await;
    let (unknown, _) = rig.try_job("unknown").await;
    rig.store.become_(Mood::Fails(StoreError::Unreachable));
    rig.conclude("failed", failed, TryResult::NotSent).await;
    rig.conclude("unknown", unknown, TryResult::Unknown).await;
    assert_eq!(rig.try_job("unknown").await.1, MAYBE_TWICE);
    assert_eq!(rig.try_job("failed").await.1, PASSES);

    rig.store.become_(Mood::Works);
    sleep(Duration::from_secs(3)).await;
    assert_eq!(rig.elsewhere("failed").await, PASSES);
    assert_eq!(rig.elsewhere("unknown").await, MAYBE_TWICE);
}

#[tokio::test(start_paused = true)]
async fn a_single_lost_record_is_made_up_for_while_the_breaker_stays_closed() {
    let rig = Rig::new(Mood::Works);
    let (try_id, _) = rig.try_job("job").await;
    rig.store.become_(Mood::Fails(StoreError::TimedOut));
    rig.conclude("job", try_id, sent()).await;
    rig.store.become_(Mood::Works);
    sleep(Duration::from_secs(1)).await;
    assert!(matches!(rig.elsewhere("job").await, Verdict::Duplicate(_)));
    assert_eq!(rig.fallbacks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_stands_in_nobodys_way() {
    let rig = Rig::new(Mood::Fails(StoreError::TimedOut));
    assert_eq!(rig.offer(Lane::Transactional, 100).await.0, 100);
    sleep(Duration::from_millis(1_001)).await;
    // Counted and claimed there, shed here: by the window of the other hundred.
    rig.store.become_(Mood::Works);
    rig.offer(Lane::Transactional, 100).await;
    rig.store.become_(Mood::LosesReplies);
    let (_, verdict) = rig.try_job("unlucky").await;
    assert_eq!(verdict, Verdict::Shed(Limit::Lane));
    rig.store.become_(Mood::Works);
    sleep(Duration::from_millis(1_100)).await;
    let (try_id, verdict) = rig.try_job("unlucky").await;
    assert_eq!(verdict, PASSES);

    // Claimed there, admitted here: it is the same try, so its end is recorded there.
    rig.conclude("unlucky", try_id, TryResult::NotSent).await;
    rig.store.become_(Mood::LosesReplies);
    let (try_id, verdict) = rig.try_job("unlucky").await;
    assert_eq!(verdict, PASSES);
    rig.conclude("unlucky", try_id, TryResult::NotSent).await;
    rig.store.become_(Mood::Works);
    sleep(Duration::from_secs(3)).await;
    assert_eq!(rig.elsewhere("unlucky").await, PASSES);
}

#[tokio::test(start_paused = true)]
async fn flush_records_what_is_left() {
    let rig = Rig::new(Mood::Works);
    let (try_id, _) = rig.try_job("job").await;
    rig.store.become_(Mood::Fails(StoreError::TimedOut));
    rig.conclude("job", try_id, sent()).await;
    assert_eq!(rig.meter.flush().await, Err(StoreError::TimedOut));
    rig.store.become_(Mood::Works);
    assert_eq!(rig.meter.flush().await, Ok(()));
    assert!(matches!(rig.elsewhere("job").await, Verdict::Duplicate(_)));
}

#[tokio::test(start_paused = true)]
async fn the_keeper_ends_with_the_meter() {
    let rig = Rig::new(Mood::Hangs);
    for _ in 0..3 {
        rig.offer(Lane::Marketing, 1).await;
        sleep(Duration::from_secs(2)).await;
    }
    let mood = Arc::clone(&rig.store.mood);
    drop(rig);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(Arc::strong_count(&mood), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_is_bounded() {
    let store = Scripted::new(Mood::Fails(StoreError::Unreachable));
    let options = FailoverOptions {
        remembered: 10,
        ..FailoverOptions::default()
    };
    let telemetry = Telemetry::unexported();
    let meter = Failover::new(store, options, Arc::new(StillClock), telemetry);
    for number in 0..50 {
        let conclusion = Conclusion {
            account: AccountId::parse("acct").unwrap(),
            id: JobId::parse(&format!("job-{number}")).unwrap(),
            try_id: TryId(number),
            result: sent(),
            frees: Vec::new(),
        };
        meter.conclude(vec![conclusion]).await;
    }
    assert_eq!(meter.shared.state().backlog.take(100).len(), 10);
}

fn moods() -> impl Strategy<Value = Vec<(Mood, u64)>> {
    let mood = prop_oneof![
        4 => Just(Mood::Works),
        1 => (1..60u64).prop_map(Mood::Slow),
        1 => Just(Mood::Hangs),
        1 => Just(Mood::LosesReplies),
        1 => prop::sample::select(&StoreError::ALL[..5]).prop_map(Mood::Fails),
    ];
    prop::collection::vec((mood, 20..1_500u64), 1..12)
}

/// Offers far too much while the store comes and goes, and says when how many were admitted.
async fn flap(moods: Vec<(Mood, u64)>) -> Vec<(Instant, usize)> {
    let rig = Rig::new(Mood::Works);
    let mut admissions = Vec::new();
    let mut decisions = 0;
    for (mood, millis) in moods {
        rig.store.become_(mood);
        let end = Instant::now() + Duration::from_millis(millis);
        while Instant::now() < end {
            let start = Instant::now();
            let (count, mode) = rig.offer(Lane::Transactional, 30).await;
            assert!(start.elapsed() < Duration::from_millis(50));
            decisions += if mode == MeterMode::Local { 30 } else { 0 };
            admissions.push((Instant::now(), count));
            sleep(Duration::from_millis(10)).await;
        }
    }
    assert_eq!(rig.fallbacks(), decisions);
    admissions
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Windows do not overlap, however often the store comes and goes: cut at the first admission
    /// after each window's end, no second holds more than one budget.
    #[test]
    fn flapping_never_grants_a_second_budget(moods in moods()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let admissions = runtime.block_on(flap(moods));
        let mut window: Option<(Instant, usize)> = None;
        for (at, count) in admissions.into_iter().filter(|(_, count)| *count > 0) {
            // A slow answer reports an admission up to the patience later than it was counted.
            let (start, sum) = match window {
                Some((start, sum)) if at < start + Duration::from_millis(1_000 - 60) => (start, sum),
                _ => (at, 0),
            };
            window = Some((start, sum + count));
            prop_assert!(sum + count <= 100, "{} within one window", sum + count);
        }
    }
}
