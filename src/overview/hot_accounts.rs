//! Every account that has a queue of its own, and when it will be through with what is in it.

mod drain;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use serde::Serialize;

use drain::Stays;
pub use drain::{Drain, DrainedBy};

use super::compose::{sum, tenths, text};
use super::depths::Lengths;
use super::history::last_told;
use super::sources::Sources;
use super::view::Missing;
use crate::activity::{Count, Second};
use crate::domain::{AccountId, Lane};
use crate::hot::{Listed, State};

/// Over how many seconds the rate is taken: so many windows that one more or less makes little
/// difference, and yet the present.
const RECENT: u64 = 30;

/// What an account did lately, by the second.
type Seconds = BTreeMap<u64, Second>;

/// Every account that has a queue of its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HotView {
    /// When this was so.
    pub at: String,
    /// Whether these settings name a database, which lists such queues: without one none is known here.
    pub has_database: bool,
    /// One for each such queue, the longest first; null while the database does not say.
    pub queues: Option<Vec<HotAccountView>>,
    /// What could not be asked, so that figures are null.
    pub missing: Vec<Missing>,
}

/// An account that has a queue of its own in a lane.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HotAccountView {
    /// The account.
    pub account_id: String,
    /// `transactional` or `marketing`.
    pub lane: &'static str,
    /// Which of all such queues: part of its name.
    pub number: i64,
    /// `open`, `draining` or `closing`.
    pub state: &'static str,
    /// Whether the account is paused, so that workers leave the queue alone.
    pub paused: bool,
    /// Jobs in the queue, and those of this account and lane that workers hold.
    pub queued: Option<u64>,
    /// Jobs in the queue that no worker has.
    pub in_own_queue: Option<u64>,
    /// Jobs of this account and lane that workers hold and have not sent.
    pub in_workers: Option<u64>,
    /// How long ago the oldest job that workers hold was queued, in seconds; null when they hold none.
    pub oldest_seconds: Option<f64>,
    /// Jobs that carriers took per second, of the last thirty.
    pub dispatched_per_second: Option<f64>,
    /// Up to where the lane may push the account's counter, in jobs per second; null where nothing of
    /// this account is sent, because it is unknown.
    pub limit: Option<u32>,
    /// When the account will be through with what is queued.
    #[serde(flatten)]
    pub drain: Drain,
}

impl Sources {
    /// How all accounts stand that have queues of their own: one question to Redis for all of them, and
    /// one connection to the broker. Ends within a second for the database and the longer of the time
    /// limits of the other two.
    pub async fn hot(&self) -> HotView {
        let own = self.own.now().await;
        let accounts = accounts_of(&own.queues);
        let last = last_told(self.store.now_ms());
        let recent = last.saturating_sub(RECENT - 1)..=last;
        let (seconds, lengths) = tokio::join!(
            self.store.read_all(&accounts, recent.clone()),
            self.depths.now(&own.queues),
        );
        let seconds: Option<BTreeMap<_, _>> = seconds
            .ok()
            .map(|seconds| accounts.iter().zip(seconds).collect());
        let view_of = |own: &Listed| {
            let account = &own.queue.account;
            let policy = self.directory.policy(account);
            Known {
                own,
                limit: policy.map(|policy| policy.ceilings.of_lane(own.queue.lane)),
                seconds: seconds.as_ref().and_then(|seconds| seconds.get(account)),
                recent: &recent,
                lengths: lengths.as_deref(),
            }
            .view()
        };
        let queues = own.is_known.then(|| {
            let mut queues: Vec<_> = own.queues.iter().map(view_of).collect();
            queues.sort_by(longest_first);
            queues
        });
        let parts = [
            (seconds.is_none(), Missing::Redis),
            (queues.is_none(), Missing::Database),
            (lengths.is_none(), Missing::Broker),
        ];
        let missing = parts.into_iter().filter(|(is_missing, _)| *is_missing);
        HotView {
            at: text(self.clock.now()),
            has_database: self.own.are_possible(),
            queues,
            missing: missing.map(|(_, part)| part).collect(),
        }
    }
}

/// Whose they are, each once.
fn accounts_of(queues: &[Listed]) -> Vec<AccountId> {
    let accounts: BTreeSet<_> = queues.iter().map(|own| &own.queue.account).collect();
    accounts.into_iter().cloned().collect()
}

/// By what is queued, as far as that is known.
fn longest_first(one: &HotAccountView, other: &HotAccountView) -> std::cmp::Ordering {
    let known = |view: &HotAccountView| {
        view.in_own_queue.unwrap_or_default() + view.in_workers.unwrap_or_default()
    };
    let by_length = known(other).cmp(&known(one));
    by_length.then_with(|| (&one.account_id, one.lane).cmp(&(&other.account_id, other.lane)))
}

/// What is known of an account that has a queue of its own; what was not answered is `None`.
struct Known<'a> {
    own: &'a Listed,
    limit: Option<u32>,
    seconds: Option<&'a Seconds>,
    recent: &'a RangeInclusive<u64>,
    lengths: Option<&'a Lengths>,
}

impl Known<'_> {
    /// Why nothing is taken from the queue, as far as that is known.
    fn stays(&self) -> Option<Stays> {
        if self.own.paused {
            return Some(Stays::Paused);
        }
        // Workers have left one that is closing, and publish anew what is left in it.
        let is_left = self.own.state == State::Closing;
        let deserted = self.lengths.is_some_and(|it| it.is_deserted(self.own));
        (deserted && !is_left).then_some(Stays::Deserted)
    }

    fn view(&self) -> HotAccountView {
        let Listed {
            queue,
            state,
            paused,
        } = self.own;
        let newest = self.seconds.map(|seconds| {
            let newest = seconds.get(self.recent.end()).copied();
            *newest.unwrap_or_default().lane(queue.lane)
        });
        let in_own_queue = self.lengths.map(|lengths| lengths.of(self.own));
        let in_workers = newest.map(|newest| u64::from(newest.in_workers()));
        let queued = sum([in_own_queue, in_workers]);
        let rate = self
            .seconds
            .map(|seconds| per_second(seconds, queue.lane, self.recent));
        HotAccountView {
            account_id: queue.account.to_string(),
            lane: queue.lane.as_str(),
            number: queue.number,
            state: state.as_str(),
            paused: *paused,
            queued,
            in_own_queue,
            in_workers,
            oldest_seconds: newest.and_then(|newest| newest.oldest()).map(tenths),
            dispatched_per_second: rate.map(|rate| (rate * 10.0).round() / 10.0),
            limit: self.limit,
            drain: Drain::of(queued, rate, self.limit, self.stays()),
        }
    }
}

/// Jobs that were sent per second, since the account was first seen at work within these seconds: one
/// that began a moment ago is not slow.
fn per_second(seconds: &Seconds, lane: Lane, recent: &RangeInclusive<u64>) -> f64 {
    let Some((first, _)) = seconds.first_key_value() else {
        return 0.0;
    };
    let sent = seconds.values().map(|second| second.lane(lane));
    let sent: u64 = sent
        .map(|lane| u64::from(lane.get(Count::Dispatched)))
        .sum();
    let length = recent.end().saturating_sub(*first) + 1;
    #[expect(
        clippy::cast_precision_loss,
        reason = "a few seconds' jobs: far below 2^52"
    )]
    let rate = sent as f64 / length as f64;
    rate
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use super::*;
    use crate::domain::HotQueue;

    const RECENTLY: RangeInclusive<u64> = 991..=1_000;

    fn own(account: &str) -> Listed {
        Listed {
            queue: HotQueue {
                lane: Lane::Marketing,
                account: AccountId::parse(account).unwrap(),
                number: 3,
            },
            state: State::Open,
            paused: false,
        }
    }

    /// So many sent in each of these seconds, and at the end some in hand.
    fn at_work(seconds: RangeInclusive<u64>, sent: u32) -> Seconds {
        let mut second = Second::default();
        let lane = second.lane_mut(Lane::Marketing);
        lane.add(Count::Dispatched, sent);
        lane.hold(30, Duration::from_millis(1_240));
        seconds.map(|at| (at, second)).collect()
    }

    fn lengths(ready: u64) -> Lengths {
        Lengths {
            own: HashMap::from([(3, ready)]),
            ..Lengths::default()
        }
    }

    #[test]
    fn what_is_ready_and_what_workers_hold_is_queued_and_goes_at_the_present_rate() {
        let (own, seconds, lengths) = (own("acme"), at_work(RECENTLY, 80), lengths(7_970));
        let known = Known {
            own: &own,
            limit: Some(80),
            seconds: Some(&seconds),
            recent: &RECENTLY,
            lengths: Some(&lengths),
        };
        let view = known.view();
        assert_eq!((view.queued, view.in_workers), (Some(8_000), Some(30)));
        assert_eq!(view.dispatched_per_second, Some(80.0));
        assert_eq!(view.oldest_seconds, Some(1.2));
        assert_eq!(view.drain.seconds(), Some(100));
    }

    #[test]
    fn what_was_not_answered_is_null() {
        let own = own("acme");
        let known = Known {
            own: &own,
            limit: Some(80),
            seconds: None,
            recent: &RECENTLY,
            lengths: Some(&lengths(7_970)),
        };
        let view = known.view();
        assert_eq!((view.queued, view.in_own_queue), (None, Some(7_970)));
        assert_eq!((view.in_workers, view.dispatched_per_second), (None, None));
        assert_eq!(view.drain.seconds(), None);
    }

    #[test]
    fn the_rate_is_that_since_work_began_and_falls_when_it_stops() {
        let rate = |seconds: &Seconds| per_second(seconds, Lane::Marketing, &RECENTLY);
        for (seconds, expected) in [
            (at_work(991..=1_000, 80), 80.0),
            (at_work(999..=1_000, 80), 80.0),
            (at_work(991..=995, 80), 40.0),
            (Seconds::new(), 0.0),
        ] {
            assert!((rate(&seconds) - expected).abs() < 1e-9, "{seconds:?}");
        }
        let other_lane = per_second(&at_work(RECENTLY, 80), Lane::Transactional, &RECENTLY);
        assert!(other_lane.abs() < 1e-9);
    }

    #[test]
    fn the_longest_queue_stands_first() {
        let view = |account: &str, ready: Option<u64>| {
            let own = own(account);
            let lengths = ready.map(lengths);
            let known = Known {
                own: &own,
                limit: None,
                seconds: None,
                recent: &RECENTLY,
                lengths: lengths.as_ref(),
            };
            known.view()
        };
        let mut views = [
            view("b", Some(1)),
            view("a", Some(1)),
            view("d", None),
            view("c", Some(9)),
        ];
        views.sort_by(longest_first);
        let order = views.map(|view| view.account_id);
        assert_eq!(order, ["c", "a", "b", "d"]);
    }
}
