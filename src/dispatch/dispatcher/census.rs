//! What stands here of each account, for those who watch one.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::Dispatcher;
use crate::activity::InHandNow;
use crate::dispatch::depart::Departing;
use crate::dispatch::in_hand::InHand;
use crate::dispatch::ports::{Broker, Carrier, Clock, Meter, Records};
use crate::domain::{AccountId, Lane};

/// Jobs of one account and lane, and the age of the oldest of them.
type Standing<'a> = HashMap<(&'a AccountId, Lane), (usize, Duration)>;

impl<B: Broker, M: Meter, C: Carrier, K: Clock, R: Records> Dispatcher<B, M, C, K, R> {
    /// Tells how many jobs of each account this worker holds and has not sent. Of a queue's stream
    /// only the first job is looked at: it has waited longest, or nearly so.
    pub(super) fn tell_what_is_in_hand(&self, now: Instant) {
        let tally = self.world.telemetry.tally();
        if tally.page().is_none() {
            return;
        }
        let wall = self.world.clock.now();
        let mut standing = Standing::new();
        for queue in &self.queues {
            for (first, jobs) in queue.standing() {
                add(&mut standing, first, jobs, first.waited(wall, now));
            }
        }
        let departing = self.waiting.iter().filter_map(|left| match left {
            Departing::Job(in_hand, _) => Some(in_hand),
            Departing::Dead(_) => None,
        });
        let singles = self.parking.iter().chain(&self.astray).flatten();
        for job in singles.chain(self.retrying.iter()).chain(departing) {
            add(&mut standing, job, 1, job.waited(wall, now));
        }
        let told = standing
            .into_iter()
            .map(|((account, lane), (jobs, oldest))| InHandNow {
                account: account.clone(),
                lane,
                jobs: u32::try_from(jobs).unwrap_or(u32::MAX),
                oldest,
            });
        tally.in_hand(told.collect());
    }
}

fn add<'a>(standing: &mut Standing<'a>, job: &'a InHand, jobs: usize, age: Duration) {
    let place = standing.entry((job.account(), job.lane())).or_default();
    place.0 += jobs;
    place.1 = place.1.max(age);
}
