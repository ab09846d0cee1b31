//! Which deliveries of one channel may be acknowledged, and with how few frames.
//!
//! One `multiple` acknowledgement settles every lower tag of its channel. It is several times
//! cheaper than single ones and only right when all of those are done with. So finished deliveries
//! are acknowledged in runs from the lowest unsettled tag upwards; what is finished above a
//! delivery that takes longer is acknowledged singly, a little later.

use std::collections::VecDeque;

/// How far a delivery has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not finished, or not even delivered yet.
    Open,
    /// Finished, not yet acknowledged.
    Finished,
    /// Settled by itself: acknowledged, or returned to its queue.
    Settled,
}

/// An acknowledgement to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// The delivery that it names.
    pub tag: u64,
    /// Whether it settles all lower ones too.
    pub multiple: bool,
}

/// The deliveries of one opening of one channel. The broker numbers them 1, 2, 3 and so on.
#[derive(Debug, Default)]
pub struct TagTracker {
    /// Every tag up to this one is acknowledged.
    floor: u64,
    /// The states of the tags above the floor, in order.
    states: VecDeque<State>,
    /// Finished tags that no run has taken yet.
    waiting: Vec<u64>,
}

impl TagTracker {
    /// Notes that a delivery is finished. Saying so twice changes nothing.
    pub fn finish(&mut self, tag: u64) {
        if self.close(tag, State::Finished) {
            self.waiting.push(tag);
        }
    }

    /// Notes that a delivery has been returned to its queue: no acknowledgement may name it.
    pub fn returned(&mut self, tag: u64) {
        self.close(tag, State::Settled);
    }

    /// Gives an open delivery another state; false when it is not open.
    fn close(&mut self, tag: u64, state: State) -> bool {
        let place = tag
            .checked_sub(self.floor + 1)
            .and_then(|offset| usize::try_from(offset).ok());
        let Some(place) = place else { return false };
        if place >= self.states.len() {
            self.states.resize(place + 1, State::Open);
        }
        let open = self.states[place] == State::Open;
        if open {
            self.states[place] = state;
        }
        open
    }

    /// The acknowledgement for the run of finished deliveries at the bottom, if there is one. The
    /// caller must send it, before any later one.
    pub fn take_run(&mut self) -> Option<Ack> {
        let mut highest = None;
        let mut count = 0_u32;
        while let Some(state) = self.states.front() {
            if *state == State::Open {
                break;
            }
            self.floor += 1;
            if *state == State::Finished {
                highest = Some(self.floor);
                count += 1;
            }
            self.states.pop_front();
        }
        let floor = self.floor;
        self.waiting.retain(|tag| *tag > floor);
        highest.map(|tag| Ack {
            tag,
            multiple: count > 1,
        })
    }

    /// Whether every delivery up to this one is acknowledged or returned.
    #[must_use]
    pub fn is_settled_to(&self, tag: u64) -> bool {
        self.floor >= tag
    }

    /// Whether finished deliveries wait above an open one.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The finished deliveries that wait above an open one, to be acknowledged singly.
    pub fn take_singles(&mut self) -> Vec<u64> {
        let tags = std::mem::take(&mut self.waiting);
        for tag in &tags {
            let place = usize::try_from(tag - self.floor - 1).ok();
            if let Some(state) = place.and_then(|place| self.states.get_mut(place)) {
                *state = State::Settled;
            }
        }
        tags
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn finish_all(tracker: &mut TagTracker, tags: impl IntoIterator<Item = u64>) {
        for tag in tags {
            tracker.finish(tag);
        }
    }

    #[test]
    fn a_run_from_the_bottom_takes_one_acknowledgement() {
        let mut tracker = TagTracker::default();
        finish_all(&mut tracker, 1..=1000);
        let all = Ack {
            tag: 1000,
            multiple: true,
        };
        assert_eq!(tracker.take_run(), Some(all));
        assert_eq!(tracker.take_run(), None);
        assert!(!tracker.has_waiting());
    }

    #[test]
    fn a_hole_keeps_the_rest_for_single_acknowledgements() {
        let mut tracker = TagTracker::default();
        finish_all(&mut tracker, [1, 3, 4]);
        assert_eq!(
            tracker.take_run(),
            Some(Ack {
                tag: 1,
                multiple: false
            })
        );
        assert_eq!(tracker.take_singles(), [3, 4]);
        assert!(!tracker.has_waiting());
        finish_all(&mut tracker, [2, 5]);
        assert_eq!(
            tracker.take_run(),
            Some(Ack {
                tag: 5,
                multiple: true
            })
        );
    }

    #[test]
    fn a_run_names_a_tag_that_is_not_acknowledged_yet() {
        let mut tracker = TagTracker::default();
        finish_all(&mut tracker, [2, 3]);
        tracker.take_singles();
        tracker.finish(1);
        assert_eq!(
            tracker.take_run(),
            Some(Ack {
                tag: 1,
                multiple: false
            })
        );
    }

    #[test]
    fn what_was_returned_is_in_the_way_of_nothing_and_never_named() {
        let mut tracker = TagTracker::default();
        finish_all(&mut tracker, [1, 2]);
        tracker.returned(3);
        tracker.finish(3);
        let two = Ack {
            tag: 2,
            multiple: true,
        };
        assert_eq!(tracker.take_run(), Some(two));
        finish_all(&mut tracker, [4]);
        tracker.returned(5);
        let four = Ack {
            tag: 4,
            multiple: false,
        };
        assert_eq!(tracker.take_run(), Some(four));
    }

    #[test]
    fn repeated_and_impossible_tags_change_nothing() {
        let mut tracker = TagTracker::default();
        finish_all(&mut tracker, [0, 1, 1]);
        assert_eq!(
            tracker.take_run(),
            Some(Ack {
                tag: 1,
                multiple: false
            })
        );
        finish_all(&mut tracker, [0, 1]);
        assert_eq!(tracker.take_run(), None);
        assert!(tracker.take_singles().is_empty());
    }

    #[test]
    fn everything_is_settled_when_the_last_hole_is() {
        let mut tracker = TagTracker::default();
        assert!(tracker.is_settled_to(0));
        finish_all(&mut tracker, [1, 3]);
        tracker.returned(4);
        let _ = (tracker.take_run(), tracker.take_singles());
        assert!(tracker.is_settled_to(1) && !tracker.is_settled_to(4));
        finish_all(&mut tracker, [2]);
        // Not before its acknowledgement is sent.
        assert!(!tracker.is_settled_to(4));
        let _ = tracker.take_run();
        assert!(tracker.is_settled_to(4) && !tracker.is_settled_to(5));
    }

    /// What a broker would say to each acknowledgement.
    #[derive(Default)]
    struct Channel {
        unacknowledged: BTreeSet<u64>,
    }

    impl Channel {
        fn acknowledge(&mut self, ack: Ack, finished: &BTreeSet<u64>) {
            assert!(
                self.unacknowledged.contains(&ack.tag),
                "unknown tag {}",
                ack.tag
            );
            let lowest = if ack.multiple { 0 } else { ack.tag };
            let settled = self.unacknowledged.range(lowest..=ack.tag);
            let settled: Vec<_> = settled.copied().collect();
            for tag in settled {
                assert!(finished.contains(&tag), "{tag} was not finished");
                self.unacknowledged.remove(&tag);
            }
        }
    }

    proptest! {
        #[test]
        fn exactly_the_finished_deliveries_are_acknowledged(
            order in Just((1..=60_u64).collect::<Vec<_>>()).prop_shuffle(),
            actions in prop::collection::vec(0..4_u8, 60),
        ) {
            let mut channel = Channel { unacknowledged: (1..=60).collect() };
            let mut tracker = TagTracker::default();
            let mut finished = BTreeSet::new();
            for (tag, action) in order.into_iter().zip(actions) {
                tracker.finish(tag);
                finished.insert(tag);
                if action & 1 != 0 && let Some(ack) = tracker.take_run() {
                    channel.acknowledge(ack, &finished);
                }
                if action & 2 != 0 {
                    for tag in tracker.take_singles() {
                        channel.acknowledge(Ack { tag, multiple: false }, &finished);
                    }
                    let left: BTreeSet<_> = (1..=60).filter(|tag| !finished.contains(tag)).collect();
                    prop_assert_eq!(&channel.unacknowledged, &left);
                }
            }
            if let Some(ack) = tracker.take_run() {
                channel.acknowledge(ack, &finished);
            }
            prop_assert!(channel.unacknowledged.is_empty());
        }
    }
}
