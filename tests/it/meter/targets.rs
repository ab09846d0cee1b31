//! Ceilings of sender numbers and messaging services: what every store does.

use std::time::Duration;

use lanekeeper::dispatch::ports::JobRequest;
use lanekeeper::domain::Verdict;
use lanekeeper::meter::CounterStore;
use tokio::time::sleep;

use super::world::*;

const LIFE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

on_every_store! {
    a_number_keeps_to_its_ceiling with claims living super::LIFE;
    a_service_keeps_to_its_ceiling with claims living super::LIFE;
    a_hot_number_slows_no_other with claims living super::LIFE;
    a_number_and_a_service_of_one_name_count_apart with claims living super::LIFE;
    what_one_ceiling_sheds_uses_none_of_another with claims living super::LIFE;
    what_the_lane_sheds_uses_no_number_and_no_service with claims living super::LIFE;
    both_lanes_count_towards_a_number with claims living super::LIFE;
    the_windows_of_numbers_last_one_second with claims living super::LIFE;
    what_is_checked_first_gives_the_answer with claims living super::LIFE;
    without_claims_the_ceilings_hold_too with claims living std::time::Duration::ZERO;
}

fn of_number(number: &str, per_second: u32) -> JobRequest {
    JobRequest {
        number: Some(target(number, per_second)),
        ..jobs(Transactional, 1).remove(0)
    }
}

fn of_service(service: &str, per_second: u32) -> JobRequest {
    JobRequest {
        service: Some(target(service, per_second)),
        ..jobs(Transactional, 1).remove(0)
    }
}

async fn offer<S: CounterStore>(
    store: &S,
    count: usize,
    job: impl Fn() -> JobRequest,
) -> Vec<Verdict> {
    let batch: Vec<JobRequest> = (0..count).map(|_| job()).collect();
    admit(store, &batch).await.0
}

fn mostly(passes: usize, over: &Verdict, count: usize) -> Vec<Verdict> {
    let mut verdicts = vec![PASSES; passes];
    verdicts.resize(count, over.clone());
    verdicts
}

async fn a_number_keeps_to_its_ceiling<S: CounterStore>(store: &S) {
    let job = || of_number("+15550100", 5);
    assert_eq!(offer(store, 4, job).await, mostly(4, &OVER_NUMBER, 4));
    assert_eq!(offer(store, 8, job).await, mostly(1, &OVER_NUMBER, 8));
    let (verdicts, counter) = admit(store, &[job(), job()]).await;
    assert_eq!(verdicts, mostly(0, &OVER_NUMBER, 2));
    assert_eq!(counter.count, 5, "shed jobs are not counted");
}

async fn a_service_keeps_to_its_ceiling<S: CounterStore>(store: &S) {
    let job = || of_service("promo", 3);
    assert_eq!(offer(store, 5, job).await, mostly(3, &OVER_SERVICE, 5));
    assert_eq!(offer(store, 1, job).await, mostly(0, &OVER_SERVICE, 1));
}

async fn a_hot_number_slows_no_other<S: CounterStore>(store: &S) {
    let mut batch: Vec<JobRequest> = (0..50).map(|_| of_number("+15550100", 5)).collect();
    batch.extend((0..5).map(|_| of_number("+15550101", 5)));
    batch.extend(jobs(Transactional, 5));
    let (verdicts, counter) = admit(store, &batch).await;
    assert_eq!(verdicts[..50], mostly(5, &OVER_NUMBER, 50));
    assert_eq!(verdicts[50..], vec![PASSES; 10]);
    assert_eq!(counter.count, 15);
    let elsewhere = request("other", 100, vec![of_number("+15550100", 5)]);
    let answer = store.admit(&[elsewhere]).await.remove(0).unwrap();
    assert_eq!(answer.verdicts, [PASSES], "another account's number");
}

async fn a_number_and_a_service_of_one_name_count_apart<S: CounterStore>(store: &S) {
    let number = || of_number("SHOP", 2);
    let service = || of_service("SHOP", 2);
    assert_eq!(offer(store, 3, number).await, mostly(2, &OVER_NUMBER, 3));
    assert_eq!(offer(store, 3, service).await, mostly(2, &OVER_SERVICE, 3));
}

async fn what_one_ceiling_sheds_uses_none_of_another<S: CounterStore>(store: &S) {
    let both = |number: u32, service: u32| JobRequest {
        service: Some(target("promo", service)),
        ..of_number("+15550100", number)
    };
    // By the number: the service's count stays.
    assert_eq!(
        offer(store, 6, || both(2, 4)).await,
        mostly(2, &OVER_NUMBER, 6)
    );
    let service = || of_service("promo", 4);
    assert_eq!(offer(store, 3, service).await, mostly(2, &OVER_SERVICE, 3));
    // By the service: the number's count stays.
    assert_eq!(
        offer(store, 6, || both(3, 4)).await,
        mostly(0, &OVER_SERVICE, 6)
    );
    let number = || of_number("+15550100", 3);
    assert_eq!(offer(store, 2, number).await, mostly(1, &OVER_NUMBER, 2));
}

async fn what_the_lane_sheds_uses_no_number_and_no_service<S: CounterStore>(store: &S) {
    let both = || JobRequest {
        service: Some(target("promo", 2)),
        ..of_number("+15550100", 2)
    };
    let asked = request("acct", 0, vec![both(), both(), both()]);
    let answer = store.admit(&[asked]).await.remove(0).unwrap();
    assert_eq!(answer.verdicts, vec![OVER; 3]);
    assert_eq!(offer(store, 3, both).await, mostly(2, &OVER_NUMBER, 3));
}

async fn both_lanes_count_towards_a_number<S: CounterStore>(store: &S) {
    let batch = [Marketing, Transactional, Marketing, Transactional].map(|lane| JobRequest {
        lane,
        ..of_number("+15550100", 3)
    });
    let (verdicts, _) = admit(store, &batch).await;
    assert_eq!(verdicts, mostly(3, &OVER_NUMBER, 4));
}

async fn the_windows_of_numbers_last_one_second<S: CounterStore>(store: &S) {
    let job = || of_number("+15550100", 2);
    admit_one(store, &job()).await;
    sleep(Duration::from_millis(600)).await;
    // A later count moves no end.
    assert_eq!(offer(store, 2, job).await, mostly(1, &OVER_NUMBER, 2));
    sleep(Duration::from_millis(420)).await;
    assert_eq!(offer(store, 3, job).await, mostly(2, &OVER_NUMBER, 3));
}

/// A job that everything stands against, and then one thing less each time.
async fn what_is_checked_first_gives_the_answer<S: CounterStore>(store: &S) {
    let daily = cap("daily", "anna", 1, HOUR);
    let limits = |id: &str| JobRequest {
        caps: vec![daily.clone()],
        number: Some(target("+15550100", 1)),
        service: Some(target("promo", 1)),
        ..job(id, Transactional)
    };
    let first = limits("first");
    assert_eq!(admit_one(store, &first).await, PASSES);
    let ask = async |job: JobRequest| {
        let asked = request("acct", 1, vec![job]);
        let answer = store.admit(&[asked]).await.remove(0).unwrap();
        assert_eq!(answer.counter.count, 1);
        answer.verdicts.into_iter().next().unwrap()
    };
    assert_eq!(ask(again(&first)).await, CLAIMED);
    assert_eq!(full_cap(&ask(limits("second")).await), Some("daily"));
    let mut without = limits("third");
    without.caps.clear();
    assert_eq!(ask(without.clone()).await, OVER_NUMBER);
    without.number = None;
    assert_eq!(ask(without.clone()).await, OVER_SERVICE);
    without.service = None;
    assert_eq!(ask(without).await, OVER);
}

async fn without_claims_the_ceilings_hold_too<S: CounterStore>(store: &S) {
    let mut batch = jobs(Marketing, 3);
    batch.extend((0..4).map(|_| of_number("+15550100", 2)));
    batch.extend((0..3).map(|_| of_service("promo", 1)));
    let (verdicts, counter) = admit(store, &batch).await;
    assert_eq!(verdicts[..3], vec![PASSES; 3]);
    assert_eq!(verdicts[3..7], mostly(2, &OVER_NUMBER, 4));
    assert_eq!(verdicts[7..], mostly(1, &OVER_SERVICE, 3));
    assert_eq!(counter.count, 6);
}
