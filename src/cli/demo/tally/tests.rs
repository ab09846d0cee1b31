//! What becomes of jobs, by hand.

use super::*;

const WITHIN: Duration = Duration::from_secs(1);

fn id(text: &str) -> JobId {
    JobId::parse(text).unwrap()
}

fn offered(ids: &[&str], now: Instant) -> Tally {
    let tally = Tally::default();
    tally.joined();
    tally.joined();
    for name in ids {
        tally.offered(&id(name), Lane::Transactional, now);
    }
    tally
}

#[test]
fn a_job_is_sent_queued_ended_or_lost() {
    let start = Instant::now();
    let tally = offered(&["sent", "queued", "expired", "lost"], start);
    tally.accepted(&id("sent"), 1, start + Duration::from_millis(7));
    tally.ended(&id("expired"));
    assert_eq!(tally.waiting(), [2, 0]);
    let record = tally.record(&[id("queued")], WITHIN, start);
    assert_eq!((record.dispatched, record.waiting), ([1, 0], [1, 0]));
    assert_eq!((record.lost, record.doubled, record.late), (1, 0, 0));
    assert_eq!(record.by_worker, [0, 1]);
}

#[test]
fn whatever_is_there_twice_is_doubled() {
    let start = Instant::now();
    let tally = offered(&["a", "b", "c"], start);
    for name in ["a", "a", "b", "strange"] {
        tally.accepted(&id(name), 0, start);
    }
    let record = tally.record(&[id("b"), id("c"), id("c")], WITHIN, start);
    assert_eq!((record.doubled, record.strangers, record.lost), (3, 1, 0));
}

#[test]
fn a_password_is_late_when_it_took_too_long_or_did_not_leave_in_time() {
    let start = Instant::now();
    let tally = offered(&["slow", "stuck"], start);
    let tally_after = start + Duration::from_millis(1_001);
    tally.accepted(&id("slow"), 0, tally_after);
    tally.offered(&id("new"), Lane::Transactional, tally_after);
    let left = [id("stuck"), id("new")];
    assert_eq!(tally.record(&left, WITHIN, tally_after).late, 2);
}

#[test]
fn a_window_that_opens_as_a_second_ends_is_the_next_ones_too() {
    let now = Instant::now();
    let tally = Tally::default();
    let counter = |left| Counter {
        count: 2,
        window_left: Duration::from_millis(left),
    };
    tally.metered(counter(400), [2, 0], now);
    assert!(tally.close_second(1, [0; 2], now).window.is_some());
    assert_eq!(tally.close_second(2, [0; 2], now).window, None);
    tally.metered(counter(990), [0, 2], now);
    for number in [3, 4] {
        let window = tally.close_second(number, [0; 2], now).window.unwrap();
        assert_eq!(window.admitted, [0, 2]);
    }
}

#[test]
fn the_median_of_an_even_number_is_the_lower_one() {
    let each = [4, 1, 3, 2].map(Duration::from_millis).to_vec();
    let latency = Latency::of(each).unwrap();
    let expected = [2, 4].map(Duration::from_millis);
    assert_eq!([latency.median, latency.max], expected);
    assert_eq!(Latency::of(Vec::new()), None);
}
