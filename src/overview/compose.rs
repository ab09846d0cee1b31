//! The view, put together from what was asked.

use jiff::Timestamp;

use super::depths::Lengths;
use super::held::{Held, SHOWN};
use super::history::History;
use super::own_queues::OwnList;
use super::view::{LaneView, LanesView, LatencyView, MeterView, Missing, PausedView, ShedView};
use crate::activity::{Count, LaneSecond, WindowNow};
use crate::domain::{AccountId, Ceilings, Lane, Limit, MeterMode};

/// What was asked; what was not answered is `None`.
pub(super) struct Answers<'a> {
    pub account: &'a AccountId,
    pub now: Timestamp,
    /// `None` where nothing of the account is ever sent.
    pub ceilings: Option<Ceilings>,
    pub mode: MeterMode,
    pub window: Option<WindowNow>,
    pub history: &'a History,
    pub held: Option<Held>,
    pub lengths: Option<&'a Lengths>,
    pub own: &'a OwnList,
}

impl Answers<'_> {
    pub(super) fn view(self) -> LanesView {
        let holds = self.held.iter().flat_map(|held| &held.holds);
        let paused = holds.clone().take(SHOWN).map(|hold| PausedView {
            kind: hold.kind,
            id: hold.id.clone(),
            state: hold.state,
            reason: hold.reason.clone(),
            since: hold.since.map(text),
        });
        LanesView {
            account_id: self.account.to_string(),
            at: text(self.now),
            budget_per_second: self.limit(Lane::Transactional),
            reserve_per_second: self.limit(Lane::Transactional) - self.limit(Lane::Marketing),
            meter: MeterView {
                mode: self.mode.as_str(),
                used: self.window.map(|window| window.used),
                window_left_ms: self.window.map(|window| millis(window.left)),
            },
            lanes: Lane::ALL.map(|lane| self.lane(lane)).to_vec(),
            paused: paused.collect(),
            paused_is_more: holds.count() > SHOWN,
            missing: self.missing(),
        }
    }

    fn limit(&self, lane: Lane) -> u32 {
        self.ceilings.map_or(0, |ceilings| ceilings.of_lane(lane))
    }

    fn missing(&self) -> Vec<Missing> {
        let parts = [
            (self.window.is_none(), Missing::Redis),
            (self.held.is_none() || !self.own.is_known, Missing::Database),
            (self.lengths.is_none(), Missing::Broker),
        ];
        let missing = parts.into_iter().filter(|(is_missing, _)| *is_missing);
        missing.map(|(_, part)| part).collect()
    }

    fn lane(&self, lane: Lane) -> LaneView {
        let known = self.window.is_some();
        let minute = *self.history.sum().lane(lane);
        let newest = *self.history.newest().lane(lane);
        let of_minute = |what| known.then(|| u64::from(minute.get(what)));
        let limit = self.limit(lane);
        let used = self.window.map(|window| window.used);
        let in_workers = known.then(|| u64::from(newest.in_workers()));
        let waiting = self
            .held
            .as_ref()
            .map(|held| held.waiting[lane.index()].jobs);
        let own = self.own.of(self.account, lane);
        let in_own_queue = own.zip(self.lengths).map(|(own, lengths)| lengths.of(own));
        let at_broker = match own {
            Some(_) => in_own_queue,
            None => self.own.is_known.then_some(0),
        };
        LaneView {
            lane: lane.as_str(),
            limit,
            used,
            remaining: used.map(|used| limit.saturating_sub(used)),
            dispatched_last_minute: of_minute(Count::Dispatched),
            shed_last_minute: known.then(|| minute.shed().into()),
            shed_by_limit: known.then(|| shed_by_limit(&minute)),
            refused_last_minute: of_minute(Count::Refused),
            failed_last_minute: of_minute(Count::Failed),
            expired_last_minute: of_minute(Count::Expired),
            cancelled_last_minute: of_minute(Count::Cancelled),
            deferred_last_minute: of_minute(Count::Deferred),
            queued: sum([in_workers, waiting, at_broker]),
            in_workers,
            waiting,
            in_own_queue,
            own_queue_state: own.map(|own| own.state.as_str()),
            queued_all_accounts: self.lengths.map(|lengths| lengths.lanes[lane.index()]),
            oldest_seconds: self.oldest(lane, &newest),
            latency: latency(&minute).filter(|_| known),
        }
    }

    /// The age of the oldest job that workers hold or that waits.
    fn oldest(&self, lane: Lane, newest: &LaneSecond) -> Option<f64> {
        let held = newest.oldest().filter(|_| self.window.is_some());
        let waiting = self
            .held
            .as_ref()
            .and_then(|held| held.waiting[lane.index()].since);
        let waited = waiting.map(|since| {
            let waited = self.now.duration_since(since);
            waited.try_into().unwrap_or_default()
        });
        let oldest: Option<std::time::Duration> = held.into_iter().chain(waited).max();
        oldest.map(tenths)
    }
}

/// In seconds, to the tenth.
pub(super) fn tenths(length: std::time::Duration) -> f64 {
    (length.as_secs_f64() * 10.0).round() / 10.0
}

/// All of it together; nothing is known of it when one part is not.
pub(super) fn sum<const PARTS: usize>(parts: [Option<u64>; PARTS]) -> Option<u64> {
    parts.into_iter().sum()
}

fn shed_by_limit(minute: &LaneSecond) -> ShedView {
    let by = |limit| minute.get(Count::Shed(limit)).into();
    ShedView {
        lane: by(Limit::Lane),
        number: by(Limit::Number),
        service: by(Limit::Service),
        claim: by(Limit::Claim),
    }
}

fn latency(minute: &LaneSecond) -> Option<LatencyView> {
    let latencies = minute.latencies();
    Some(LatencyView {
        samples: latencies.samples(),
        p50_ms: latencies.percentile(50)?,
        p99_ms: latencies.percentile(99)?,
    })
}

pub(super) fn text(at: Timestamp) -> String {
    format!("{at:.3}")
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use super::*;
    use crate::domain::{Budget, HotQueue, Reserve};
    use crate::hot::{Listed, State};
    use crate::overview::held::{HoldNow, WaitingNow};

    fn ceilings() -> Ceilings {
        Ceilings::of(
            Budget::per_second(100).unwrap(),
            Reserve::percent(20).unwrap(),
        )
    }

    /// What is behind the answers.
    struct Known {
        account: AccountId,
        history: History,
        own: OwnList,
        lengths: Lengths,
    }

    fn known() -> Known {
        Known {
            account: AccountId::parse("acme").unwrap(),
            history: History::default(),
            own: OwnList {
                is_known: true,
                ..OwnList::default()
            },
            lengths: Lengths {
                lanes: [0, 7],
                own: HashMap::from([(3, 5)]),
                ..Lengths::default()
            },
        }
    }

    fn answers(known: &Known) -> Answers<'_> {
        Answers {
            account: &known.account,
            now: Timestamp::from_second(1_800_000_000).unwrap(),
            ceilings: Some(ceilings()),
            mode: MeterMode::Shared,
            window: Some(WindowNow {
                used: 90,
                left: Duration::from_millis(300),
            }),
            history: &known.history,
            held: Some(Held::default()),
            lengths: Some(&known.lengths),
            own: &known.own,
        }
    }

    #[test]
    fn one_counter_stands_under_both_ceilings() {
        let known = known();
        let view = answers(&known).view();
        let lanes: Vec<_> = view
            .lanes
            .iter()
            .map(|lane| (lane.limit, lane.remaining))
            .collect();
        assert_eq!(lanes, [(100, Some(10)), (80, Some(0))]);
        assert_eq!((view.budget_per_second, view.reserve_per_second), (100, 20));
        assert_eq!(view.lanes[1].queued_all_accounts, Some(7));
        assert!(view.missing.is_empty());
    }

    #[test]
    fn what_was_not_answered_is_null_and_named() {
        let known = known();
        let view = Answers {
            mode: MeterMode::Local,
            window: None,
            held: None,
            lengths: None,
            ..answers(&known)
        }
        .view();
        assert_eq!(
            view.missing,
            [Missing::Redis, Missing::Database, Missing::Broker]
        );
        assert_eq!(view.meter.mode, "local");
        for lane in view.lanes {
            let figures = [lane.shed_last_minute, lane.queued, lane.queued_all_accounts];
            assert_eq!(figures, [None; 3]);
            assert_eq!((lane.used, lane.oldest_seconds), (None, None));
        }
    }

    #[test]
    fn an_account_that_is_refused_may_send_nothing() {
        let known = known();
        let view = Answers {
            ceilings: None,
            ..answers(&known)
        }
        .view();
        assert_eq!(view.budget_per_second, 0);
    }

    #[test]
    fn what_waits_counts_among_the_queued_and_may_be_the_oldest() {
        let known = known();
        let hold = HoldNow {
            kind: "campaign",
            id: "spring".to_owned(),
            state: "paused",
            reason: None,
            since: None,
        };
        let since = Timestamp::from_second(1_799_999_940).unwrap();
        let waiting = WaitingNow {
            jobs: 3,
            since: Some(since),
        };
        let view = Answers {
            held: Some(Held {
                waiting: [WaitingNow::default(), waiting],
                holds: vec![hold; SHOWN + 1],
            }),
            ..answers(&known)
        }
        .view();
        let lane = &view.lanes[1];
        assert_eq!((lane.queued, lane.oldest_seconds), (Some(3), Some(60.0)));
        assert_eq!(view.lanes[0].oldest_seconds, None);
        assert!(view.paused.len() == SHOWN && view.paused_is_more);
    }

    /// With a queue of its own in the marketing lane.
    fn hot() -> Known {
        let own = Listed {
            queue: HotQueue {
                lane: Lane::Marketing,
                account: AccountId::parse("acme").unwrap(),
                number: 3,
            },
            state: State::Draining,
            paused: false,
        };
        let mut known = known();
        known.own.queues = [own].into();
        known
    }

    #[test]
    fn what_lies_in_its_own_queue_counts_among_the_queued() {
        let view = answers(&hot()).view();
        let of = |lane: &LaneView| (lane.queued, lane.in_own_queue, lane.own_queue_state);
        assert_eq!(of(&view.lanes[0]), (Some(0), None, None));
        let of_marketing = (Some(5), Some(5), Some("draining"));
        assert_eq!(of(&view.lanes[1]), of_marketing);
    }

    #[test]
    fn another_accounts_queue_is_not_its_own() {
        let other = Known {
            account: AccountId::parse("other").unwrap(),
            ..hot()
        };
        let lane = &answers(&other).view().lanes[1];
        assert_eq!((lane.queued, lane.own_queue_state), (Some(0), None));
    }

    #[test]
    fn what_may_lie_in_its_own_queue_is_not_left_out_of_a_sum() {
        let known = hot();
        let silent_broker = Answers {
            lengths: None,
            ..answers(&known)
        }
        .view();
        let lane = &silent_broker.lanes[1];
        assert_eq!((lane.queued, lane.in_own_queue), (None, None));
        assert_eq!(lane.own_queue_state, Some("draining"));
        let unlisted = OwnList {
            is_known: false,
            ..known.own.clone()
        };
        let silent_database = Answers {
            own: &unlisted,
            ..answers(&known)
        }
        .view();
        assert_eq!(silent_database.lanes[1].queued, None);
        assert_eq!(silent_database.missing, [Missing::Database]);
    }
}
