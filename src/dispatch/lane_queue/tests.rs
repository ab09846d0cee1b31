//! Turns, holds and surplus.

use super::*;
use crate::dispatch::test_support::{in_hand, instant};

const HOLD: HoldLimits = HoldLimits {
    jobs: 6,
    longest: Duration::from_millis(1200),
};

fn open_standing(_: &AccountId) -> Standing {
    Standing {
        ceiling: 3,
        reached_until: None,
    }
}

fn reached(until: Instant) -> impl Fn(&AccountId) -> Standing {
    move |_| Standing {
        ceiling: 3,
        reached_until: Some(until),
    }
}

fn fill(queue: &mut LaneQueue, account: &str, count: usize, now: Instant) {
    for n in 0..count {
        queue.push(
            in_hand(account, &format!("{account}-{n}")),
            Standing {
                ceiling: 3,
                reached_until: None,
            },
            now,
        );
    }
}

/// Takes everything, while one slot is free at a time.
fn drain(queue: &mut LaneQueue, now: Instant) -> Vec<String> {
    std::iter::from_fn(|| next_id(queue, now, 1)).collect()
}

/// Takes a job for each of so many free slots.
fn take(queue: &mut LaneQueue, now: Instant, slots: usize) -> Vec<String> {
    let slots = (1..=slots).rev();
    slots.map_while(|free| next_id(queue, now, free)).collect()
}

fn next_id(queue: &mut LaneQueue, now: Instant, free: usize) -> Option<String> {
    match queue.next(now, open_standing, |_| free) {
        Next::Job(job) => Some(job.job.head.id.to_string()),
        Next::NoSlot | Next::Nothing => None,
    }
}

#[test]
fn accounts_take_turns_and_keep_their_own_order() {
    let now = instant(0);
    let mut queue = LaneQueue::new(HOLD);
    fill(&mut queue, "a", 3, now);
    fill(&mut queue, "b", 2, now);
    assert_eq!(drain(&mut queue, now), ["a-0", "b-0", "a-1", "b-1", "a-2"]);
    assert_eq!(queue.len(), 0);
}

#[test]
fn jobs_of_one_account_go_together_while_slots_are_plenty() {
    let now = instant(0);
    let mut queue = LaneQueue::new(HOLD);
    fill(&mut queue, "a", RUN + 1, now);
    fill(&mut queue, "b", 2, now);
    let mut expected: Vec<_> = (0..RUN).map(|n| format!("a-{n}")).collect();
    expected.extend(["b-0".to_owned(), "b-1".to_owned(), format!("a-{RUN}")]);
    assert_eq!(take(&mut queue, now, 100), expected);
}

#[test]
fn no_account_goes_without_a_slot_because_others_had_several() {
    let now = instant(0);
    for slots in 5..50 {
        let mut queue = LaneQueue::new(HOLD);
        let accounts = ["a", "b", "c", "d", "e"];
        for account in accounts {
            fill(&mut queue, account, 20, now);
        }
        let taken = take(&mut queue, now, slots);
        assert_eq!(taken.len(), slots);
        for account in accounts {
            let first = format!("{account}-0");
            assert!(taken.contains(&first), "{slots} slots: {taken:?}");
        }
    }
}

#[test]
fn few_are_held_for_the_opening_and_the_newest_of_the_rest_go_first() {
    let now = instant(0);
    let mut queue = LaneQueue::new(HOLD);
    fill(&mut queue, "a", 5, now);
    assert!(matches!(
        queue.next(now, reached(instant(900)), |_| 1),
        Next::Nothing
    ));
    let shed = std::iter::from_fn(|| queue.take_surplus(now, |_| true))
        .map(|job| job.job.head.id.to_string());
    assert_eq!(shed.collect::<Vec<_>>(), ["a-4", "a-3"]);
    assert_eq!((queue.len(), queue.next_opening()), (3, Some(instant(900))));
    fill(&mut queue, "a", 1, now);
    assert!(
        queue.take_surplus(now, |_| true).is_some(),
        "the account's holds are full"
    );
    queue.open(instant(900));
    assert_eq!(drain(&mut queue, instant(900)).len(), 3);
}

#[test]
fn holds_are_bounded_over_all_accounts() {
    let now = instant(0);
    let mut queue = LaneQueue::new(HOLD);
    for account in ["a", "b", "c"] {
        fill(&mut queue, account, 3, now);
    }
    while let Next::Job(_) = queue.next(now, reached(instant(900)), |_| 1) {}
    assert_eq!(
        std::iter::from_fn(|| queue.take_surplus(now, |_| true)).count(),
        3
    );
    assert_eq!(queue.len(), 6);
}

#[test]
fn where_the_ceiling_is_never_open_the_oldest_go_after_a_while() {
    let mut queue = LaneQueue::new(HoldLimits::NONE);
    fill(&mut queue, "a", 3, instant(0));
    queue.next(instant(0), reached(instant(1_000)), |_| 1);
    let id = |job: Option<InHand>| job.map(|job| job.job.head.id.to_string());
    assert_eq!(
        id(queue.take_surplus(instant(9_000), |_| true)).as_deref(),
        Some("a-2")
    );
    assert_eq!(
        id(queue.take_surplus(instant(11_000), |_| true)).as_deref(),
        Some("a-0")
    );
}

#[test]
fn nothing_is_held_longer_than_allowed() {
    let now = instant(1_900);
    let mut queue = LaneQueue::new(HOLD);
    fill(&mut queue, "a", 2, instant(0));
    queue.next(instant(0), reached(instant(900)), |_| 1);
    queue.open(instant(900));
    queue.next(instant(900), reached(instant(1900)), |_| 1);
    assert_eq!(
        std::iter::from_fn(|| queue.take_surplus(now, |_| true)).count(),
        2,
        "1.9 s would be too long"
    );
}

#[test]
fn without_holding_everything_over_the_ceiling_is_surplus_until_the_window_opens() {
    let now = instant(0);
    let mut queue = LaneQueue::new(HoldLimits::NONE);
    fill(&mut queue, "a", 3, now);
    queue.next(now, reached(instant(500)), |_| 1);
    assert!(queue.has_surplus(|_| true));
    assert_eq!(
        queue
            .take_surplus(now, |_| true)
            .unwrap()
            .job
            .head
            .id
            .as_str(),
        "a-2"
    );
    queue.open(instant(500));
    assert!(!queue.has_surplus(|_| true) && queue.take_surplus(now, |_| true).is_none());
    assert_eq!(drain(&mut queue, instant(500)), ["a-0", "a-1"]);
}

#[test]
fn a_full_carrier_keeps_its_jobs_and_nobody_elses() {
    let now = instant(0);
    let mut queue = LaneQueue::new(HOLD);
    fill(&mut queue, "a", 1, now);
    let mut other = in_hand("b", "b-0");
    other.carrier = 1;
    queue.push(
        other,
        Standing {
            ceiling: 3,
            reached_until: None,
        },
        now,
    );
    let Next::Job(job) = queue.next(now, open_standing, |carrier| usize::from(carrier == 1)) else {
        panic!()
    };
    assert_eq!(job.job.head.id.as_str(), "b-0");
    assert!(matches!(
        queue.next(now, open_standing, |carrier| usize::from(carrier == 1)),
        Next::NoSlot
    ));
}

#[test]
fn jobs_that_an_api_server_has_admitted_go_first() {
    let now = instant(0);
    let mut queue = LaneQueue::new(HOLD);
    fill(&mut queue, "a", 1, now);
    for (account, id) in [("b", "b-0"), ("b", "b-1"), ("c", "c-0")] {
        let mut admitted = in_hand(account, id);
        admitted.headers.admitted_ms = Some(1);
        queue.push(
            admitted,
            Standing {
                ceiling: 3,
                reached_until: None,
            },
            now,
        );
    }
    assert_eq!(drain(&mut queue, now), ["b-0", "c-0", "b-1", "a-0"]);
}

#[test]
fn what_was_put_back_comes_first() {
    let now = instant(0);
    let mut queue = LaneQueue::new(HOLD);
    fill(&mut queue, "a", 2, now);
    let Next::Job(first) = queue.next(now, open_standing, |_| 1) else {
        panic!()
    };
    queue.put_back(*first);
    assert_eq!(drain(&mut queue, now), ["a-0", "a-1"]);
}

#[test]
fn jobs_of_a_lost_channel_are_forgotten_and_the_counts_follow() {
    let now = instant(0);
    let mut queue = LaneQueue::new(HOLD);
    fill(&mut queue, "a", 5, now);
    queue.next(now, reached(instant(900)), |_| 1);
    queue.forget(|_| false);
    assert_eq!(
        (queue.len(), queue.take_surplus(now, |_| true).is_none()),
        (0, true)
    );
    fill(&mut queue, "a", 3, now);
    queue.next(now, reached(instant(900)), |_| 1);
    assert!(
        queue.take_surplus(now, |_| true).is_none(),
        "all three may be held again"
    );
    queue.open(instant(900));
    assert_eq!(drain(&mut queue, instant(900)).len(), 3);
}

/// Jobs of an account that came by a queue of its own.
fn fill_own(queue: &mut LaneQueue, account: &str, count: usize, now: Instant) {
    for n in 0..count {
        let mut job = in_hand(account, &format!("{account}-own-{n}"));
        job.own_queue = true;
        job.received_at = now;
        queue.push(job, open_standing(&AccountId::parse(account).unwrap()), now);
    }
}

#[test]
fn all_jobs_of_an_own_queue_are_held_and_leave_the_holds_to_others() {
    let now = instant(0);
    for limits in [HOLD, HoldLimits::NONE] {
        let mut queue = LaneQueue::new(limits);
        fill_own(&mut queue, "a", 50, now);
        let until = instant(900);
        assert!(matches!(
            queue.next(now, reached(until), |_| 9),
            Next::Nothing
        ));
        assert!(!queue.has_surplus(|_| true) && queue.take_surplus(now, |_| true).is_none());
        assert!(queue.take_over().is_empty(), "that is no pressure");
        let held: Vec<_> = queue.held_of_own().map(ToString::to_string).collect();
        assert_eq!(held, ["a"]);
        // Another account's jobs are held as if there were none of them.
        fill(&mut queue, "b", 5, now);
        assert!(matches!(
            queue.next(now, reached(until), |_| 9),
            Next::Nothing
        ));
        let shed = std::iter::from_fn(|| queue.take_surplus(now, |_| true)).count();
        assert_eq!(shed, 5 - limits.jobs.min(3));
        queue.open(until);
        assert!(queue.held_of_own().next().is_none());
        let own = drain(&mut queue, until);
        assert_eq!(own.iter().filter(|id| id.starts_with("a-own")).count(), 50);
    }
}

#[test]
fn of_an_own_queue_goes_back_what_was_held_for_ten_seconds() {
    let mut queue = LaneQueue::new(HoldLimits::NONE);
    fill_own(&mut queue, "a", 2, instant(0));
    fill_own(&mut queue, "a", 1, instant(5_000));
    let taken = |queue: &mut LaneQueue, now: u64| {
        std::iter::from_fn(|| queue.take_overstayed(instant(now))).count()
    };
    // Not while it could go.
    assert_eq!(taken(&mut queue, 20_000), 0);
    let until = instant(20_900);
    assert!(matches!(
        queue.next(instant(20_000), reached(until), |_| 1),
        Next::Nothing
    ));
    assert_eq!(taken(&mut queue, 9_999), 0);
    assert_eq!(taken(&mut queue, 10_001), 2);
    assert_eq!((taken(&mut queue, 15_000), queue.len()), (0, 1));
    assert_eq!((taken(&mut queue, 15_001), queue.len()), (1, 0));
    queue.open(until);
    assert!(drain(&mut queue, until).is_empty());
}

/// What an account has in the shared queue goes over to its own by the delay queue.
#[test]
fn an_accounts_jobs_in_the_shared_queue_are_shed_beside_its_own() {
    let now = instant(0);
    let mut queue = LaneQueue::new(HoldLimits::NONE);
    fill_own(&mut queue, "a", 4, now);
    fill(&mut queue, "a", 4, now);
    assert!(matches!(
        queue.next(now, reached(instant(900)), |_| 1),
        Next::Nothing
    ));
    let account = AccountId::parse("a").unwrap();
    assert_eq!(queue.take_over(), HashMap::from([(account, 4)]));
    let shed: Vec<_> = std::iter::from_fn(|| queue.take_surplus(now, |_| true)).collect();
    assert!(shed.len() == 4 && shed.iter().all(|job| !job.own_queue));
}

#[test]
fn arrivals_over_the_ceiling_are_counted_as_they_come() {
    let now = instant(0);
    let mut queue = LaneQueue::new(HOLD);
    fill(&mut queue, "a", 5, now);
    assert!(matches!(
        queue.next(now, reached(instant(900)), |_| 1),
        Next::Nothing
    ));
    let account = AccountId::parse("a").unwrap();
    // Three are held.
    assert_eq!(queue.take_over().get(&account), Some(&2));
    fill(&mut queue, "a", 4, now);
    assert_eq!(queue.take_over().get(&account), Some(&4));
    assert!(queue.take_over().is_empty());
}

#[test]
fn surplus_is_taken_of_those_accounts_that_are_asked_for() {
    let now = instant(0);
    let mut queue = LaneQueue::new(HoldLimits::NONE);
    fill(&mut queue, "a", 3, now);
    fill(&mut queue, "b", 2, now);
    assert!(matches!(
        queue.next(now, reached(instant(900)), |_| 1),
        Next::Nothing
    ));
    let is_b = |account: &AccountId| account.as_str() == "b";
    let taken: Vec<_> = std::iter::from_fn(|| queue.take_surplus(now, is_b)).collect();
    assert!(taken.len() == 2 && taken.iter().all(|job| is_b(job.account())));
    assert!(!queue.has_surplus(is_b) && queue.has_surplus(|account| !is_b(account)));
    assert_eq!(
        std::iter::from_fn(|| queue.take_surplus(now, |_| true)).count(),
        3
    );
}
