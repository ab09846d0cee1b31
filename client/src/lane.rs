//! The two lanes, and how a job is put into one of them.

use std::fmt;

/// The entry of a job's metadata that names its lane.
pub const TRAFFIC_LANE: &str = "traffic_lane";

/// One of the two kinds of traffic that share an account's budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// One-time passwords, alerts, receipts: must leave now, may use the whole budget.
    Transactional,
    /// Campaigns: can wait, may use the budget less the reserve.
    Marketing,
}

impl Lane {
    /// Both lanes, in drain order.
    pub const ALL: [Self; 2] = [Self::Transactional, Self::Marketing];

    /// The lane's name, as queues, metrics and events spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transactional => "transactional",
            Self::Marketing => "marketing",
        }
    }

    /// Reads a lane's name; exact spelling, because a near miss must not choose the wrong lane.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.as_str() == text)
    }

    /// The lane's place in arrays that hold one entry per lane, in drain order.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How urgent the publisher says a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// Chooses the transactional lane.
    High,
    /// Decides nothing.
    Normal,
    /// Chooses the marketing lane.
    Low,
}

impl Priority {
    /// Every priority.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// The spelling in a job.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }

    /// Reads a priority; exact spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|priority| priority.as_str() == text)
    }
}

/// What kind of program made a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A client of the HTTP API.
    Api,
    /// A campaign tool.
    Campaign,
    /// A journey.
    Journey,
}

impl Origin {
    /// Every origin.
    pub const ALL: [Self; 3] = [Self::Api, Self::Campaign, Self::Journey];

    /// The spelling in a job.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Campaign => "campaign",
            Self::Journey => "journey",
        }
    }

    /// Reads an origin; exact spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|origin| origin.as_str() == text)
    }
}

/// One of the three values that may decide a lane, as it was found in a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hint<T> {
    /// Not there, or null.
    #[default]
    Absent,
    /// There, and understood.
    Known(T),
    /// There, but of a wrong type or with a value from no list: decides nothing, and is counted.
    Unrecognised,
}

/// Everything in a job that may decide its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneHints {
    /// `metadata.traffic_lane`.
    pub traffic_lane: Hint<Lane>,
    /// `priority`.
    pub priority: Hint<Priority>,
    /// `origin`.
    pub origin: Hint<Origin>,
}

/// Which of the rules chose a job's lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneRule {
    /// `metadata.traffic_lane` named it.
    TrafficLane,
    /// `priority` was `high` or `low`.
    Priority,
    /// `origin` decided.
    Origin,
    /// Nothing decided: a job that nobody classified is treated as urgent.
    Default,
}

impl LaneRule {
    /// The rule's name in outcome events.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TrafficLane => TRAFFIC_LANE,
            Self::Priority => "priority",
            Self::Origin => "origin",
            Self::Default => "default",
        }
    }
}

/// Which hints a job carried that nobody understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnrecognisedHints {
    /// `metadata.traffic_lane`.
    pub traffic_lane: bool,
    /// `priority`.
    pub priority: bool,
    /// `origin`.
    pub origin: bool,
}

impl UnrecognisedHints {
    /// The names of the fields that were not understood.
    pub fn fields(self) -> impl Iterator<Item = &'static str> {
        [
            (self.traffic_lane, TRAFFIC_LANE),
            (self.priority, "priority"),
            (self.origin, "origin"),
        ]
        .into_iter()
        .filter_map(|(unrecognised, field)| unrecognised.then_some(field))
    }
}

impl LaneHints {
    /// The job's lane and the rule that chose it: the first of `metadata.traffic_lane`, `priority`
    /// and `origin` that decides, otherwise transactional.
    #[must_use]
    pub fn resolve(self) -> (Lane, LaneRule) {
        if let Hint::Known(lane) = self.traffic_lane {
            return (lane, LaneRule::TrafficLane);
        }
        match self.priority {
            Hint::Known(Priority::High) => return (Lane::Transactional, LaneRule::Priority),
            Hint::Known(Priority::Low) => return (Lane::Marketing, LaneRule::Priority),
            Hint::Known(Priority::Normal) | Hint::Absent | Hint::Unrecognised => {}
        }
        match self.origin {
            Hint::Known(Origin::Api) => (Lane::Transactional, LaneRule::Origin),
            Hint::Known(Origin::Campaign | Origin::Journey) => (Lane::Marketing, LaneRule::Origin),
            Hint::Absent | Hint::Unrecognised => (Lane::Transactional, LaneRule::Default),
        }
    }

    /// The hints that were there and not understood, for counting.
    #[must_use]
    pub fn unrecognised(self) -> UnrecognisedHints {
        UnrecognisedHints {
            traffic_lane: self.traffic_lane == Hint::Unrecognised,
            priority: self.priority == Hint::Unrecognised,
            origin: self.origin == Hint::Unrecognised,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hint<T: Copy + fmt::Debug + 'static>(
        values: &'static [T],
    ) -> impl Strategy<Value = Hint<T>> {
        prop_oneof![
            Just(Hint::Absent),
            Just(Hint::Unrecognised),
            prop::sample::select(values).prop_map(Hint::Known),
        ]
    }

    prop_compose! {
        fn hints()(
            traffic_lane in hint(&Lane::ALL),
            priority in hint(&Priority::ALL),
            origin in hint(&Origin::ALL),
        ) -> LaneHints {
            LaneHints { traffic_lane, priority, origin }
        }
    }

    proptest! {
        #[test]
        fn traffic_lane_beats_everything(hints in hints(), lane in prop::sample::select(&Lane::ALL)) {
            let hints = LaneHints { traffic_lane: Hint::Known(lane), ..hints };
            prop_assert_eq!(hints.resolve(), (lane, LaneRule::TrafficLane));
        }

        #[test]
        fn priority_beats_origin(hints in hints(), undecided in prop::sample::select(&[Hint::Absent, Hint::Unrecognised])) {
            let base = LaneHints { traffic_lane: undecided, ..hints };
            let high = LaneHints { priority: Hint::Known(Priority::High), ..base };
            let low = LaneHints { priority: Hint::Known(Priority::Low), ..base };
            prop_assert_eq!(high.resolve(), (Lane::Transactional, LaneRule::Priority));
            prop_assert_eq!(low.resolve(), (Lane::Marketing, LaneRule::Priority));
        }

        #[test]
        fn origin_decides_when_nothing_before_it_does(
            priority in prop::sample::select(&[Hint::Absent, Hint::Unrecognised, Hint::Known(Priority::Normal)]),
            traffic_lane in prop::sample::select(&[Hint::Absent, Hint::Unrecognised]),
        ) {
            let lane_of = |origin| LaneHints { traffic_lane, priority, origin }.resolve();
            prop_assert_eq!(lane_of(Hint::Known(Origin::Api)), (Lane::Transactional, LaneRule::Origin));
            prop_assert_eq!(lane_of(Hint::Known(Origin::Campaign)), (Lane::Marketing, LaneRule::Origin));
            prop_assert_eq!(lane_of(Hint::Known(Origin::Journey)), (Lane::Marketing, LaneRule::Origin));
            prop_assert_eq!(lane_of(Hint::Absent), (Lane::Transactional, LaneRule::Default));
            prop_assert_eq!(lane_of(Hint::Unrecognised), (Lane::Transactional, LaneRule::Default));
        }

        #[test]
        fn an_unrecognised_hint_decides_as_if_absent_and_is_reported(hints in hints()) {
            let absent = LaneHints {
                traffic_lane: if hints.traffic_lane == Hint::Unrecognised { Hint::Absent } else { hints.traffic_lane },
                priority: if hints.priority == Hint::Unrecognised { Hint::Absent } else { hints.priority },
                origin: if hints.origin == Hint::Unrecognised { Hint::Absent } else { hints.origin },
            };
            prop_assert_eq!(hints.resolve(), absent.resolve());
            let expected = [hints.traffic_lane == Hint::Unrecognised, hints.priority == Hint::Unrecognised, hints.origin == Hint::Unrecognised];
            prop_assert_eq!(hints.unrecognised().fields().count(), expected.into_iter().filter(|u| *u).count());
        }

        #[test]
        fn names_are_read_exactly(text in "\\PC{0,20}") {
            prop_assert_eq!(Lane::parse(&text).map(Lane::as_str), Some(text.as_str()).filter(|t| ["transactional", "marketing"].contains(t)));
        }
    }
}
