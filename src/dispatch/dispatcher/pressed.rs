//! Accounts under pressure, and what is held of those that have queues of their own.

use tokio::time::Instant;

use super::Dispatcher;
use crate::dispatch::in_hand::Departure;
use crate::dispatch::ports::{Broker, Carrier, Clock, Meter, Records};
use crate::dispatch::pressure::Pressed;
use crate::domain::{Lane, Limit};

impl<B: Broker, M: Meter, C: Carrier, K: Clock, R: Records> Dispatcher<B, M, C, K, R> {
    /// Tells which accounts have come under pressure in the queues that they share with others.
    pub(super) fn tell_pressed(&mut self, now: Instant) {
        for lane in Lane::ALL {
            for (account, jobs) in self.queues[lane.index()].take_over() {
                let Some(pressures) = &mut self.pressures else {
                    continue;
                };
                if pressures[lane.index()].note(account.clone(), jobs, now) {
                    self.tell(Pressed::Shared(lane, account));
                }
            }
        }
    }

    /// Tells of which accounts' own queues jobs wait here for the ceiling.
    pub(super) fn tell_held_of_own(&self) {
        for lane in Lane::ALL {
            for account in self.queues[lane.index()].held_of_own() {
                self.tell(Pressed::Own(lane, account.clone()));
            }
        }
    }

    /// Sheds jobs of accounts' own queues that have been held for long. They do not wait for what the
    /// shared queue sheds, which may never end.
    pub(super) fn shed_overstayed(&mut self, now: Instant) {
        for lane in Lane::ALL {
            let place = lane.index();
            while self.moves[place].is_free(now) {
                let Some(in_hand) = self.queues[place].take_overstayed(now) else {
                    break;
                };
                self.moves[place].spend(now);
                self.depart(in_hand, Departure::Shed(Limit::Lane));
            }
        }
    }

    fn tell(&self, pressed: Pressed) {
        if let Some(watch) = &self.options.pressure {
            // Nobody listens any more when the worker stops.
            let _ = watch.tell.send(pressed);
        }
    }
}
