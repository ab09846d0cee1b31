//! The names of all exchanges and queues.

pub use lanekeeper_client::PrefixError;
use lanekeeper_client::{Prefix, routing_key};
use lapin::types::ShortString;

use crate::dispatch::ports::Route;
use crate::domain::{AccountId, Lane};

/// The names of exchanges and queues, and of their routing keys.
#[derive(Debug, Clone)]
pub struct Names {
    prefix: Prefix,
}

impl Names {
    /// AMQP names have at most 255 bytes; this leaves room for every suffix and account.
    pub const MAX_PREFIX: usize = Prefix::MAX;

    /// Names that begin with `prefix`.
    ///
    /// # Errors
    /// When the prefix is empty, too long, has a character outside its alphabet, or is the
    /// broker's own.
    pub fn new(prefix: &str) -> Result<Self, PrefixError> {
        let prefix = Prefix::parse(prefix)?;
        Ok(Self { prefix })
    }

    fn with(&self, suffix: impl std::fmt::Display) -> ShortString {
        format!("{}.{suffix}", self.prefix).into()
    }

    /// The exchange that every publisher sends to.
    #[must_use]
    pub fn send(&self) -> ShortString {
        self.prefix.send().into()
    }

    /// Where jobs go whose account has no queue of its own.
    #[must_use]
    pub fn shared(&self) -> ShortString {
        self.with("shared")
    }

    /// Where jobs go whose routing key names no lane.
    #[must_use]
    pub fn unrouted(&self) -> ShortString {
        self.with("unrouted")
    }

    /// A lane's queue.
    #[must_use]
    pub fn lane(&self, lane: Lane) -> ShortString {
        self.with(lane)
    }

    /// The exchange of a way back into a lane.
    #[must_use]
    pub fn way_back(&self, lane: Lane, route: Route) -> ShortString {
        match route {
            Route::Shed => self.with(format_args!("{lane}.shed")),
            Route::Park => self.with(format_args!("{lane}.park")),
            Route::Queue => self.send(),
            Route::Admitted => self.admitted(),
        }
    }

    /// The queue in which jobs on that way wait.
    #[must_use]
    pub fn waiting(&self, lane: Lane, route: Route) -> ShortString {
        match route {
            Route::Shed => self.with(format_args!("{lane}.delay")),
            Route::Park => self.with(format_args!("{lane}.parked")),
            Route::Queue => self.lane(lane),
            Route::Admitted => self.lane_admitted(lane),
        }
    }

    /// The exchange for jobs that an API server has admitted already.
    #[must_use]
    pub fn admitted(&self) -> ShortString {
        self.with("admitted")
    }

    /// A lane's queue for such jobs.
    #[must_use]
    pub fn lane_admitted(&self, lane: Lane) -> ShortString {
        self.with(format_args!("{lane}.admitted"))
    }

    /// A queue for an account of its own, by its number. The account is not part of the name: the
    /// queue is there before it is known whose it will be.
    #[must_use]
    pub fn hot(&self, lane: Lane, number: i64) -> ShortString {
        self.with(format_args!("{lane}.hot.{number}"))
    }

    /// The queue of undecodable messages.
    #[must_use]
    pub fn dead(&self) -> ShortString {
        self.with("dead")
    }

    /// The exchange of outcome events.
    #[must_use]
    pub fn outcomes(&self) -> ShortString {
        self.with("outcomes")
    }

    /// The routing key of a job.
    #[must_use]
    pub fn job_key(lane: Lane, account: &AccountId) -> ShortString {
        routing_key(lane, account).into()
    }

    /// The routing key of an outcome event.
    #[must_use]
    pub fn outcome_key(outcome: &str, account: &AccountId) -> ShortString {
        format!("{outcome}.{account}").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_contract() {
        let names = Names::new("lanekeeper").unwrap();
        let lane = Lane::Marketing;
        assert_eq!(names.send().as_str(), "lanekeeper.send");
        assert_eq!(names.lane(lane).as_str(), "lanekeeper.marketing");
        let shed = names.way_back(lane, Route::Shed);
        assert_eq!(shed.as_str(), "lanekeeper.marketing.shed");
        let parked = names.waiting(lane, Route::Park);
        assert_eq!(parked.as_str(), "lanekeeper.marketing.parked");
        let admitted = names.lane_admitted(lane);
        assert_eq!(admitted.as_str(), "lanekeeper.marketing.admitted");
        let account = AccountId::parse("acme").unwrap();
        assert_eq!(names.hot(lane, 7).as_str(), "lanekeeper.marketing.hot.7");
        assert_eq!(Names::job_key(lane, &account).as_str(), "marketing.acme");
    }

    #[test]
    fn the_longest_name_fits_amqp() {
        let names = Names::new(&"p".repeat(Names::MAX_PREFIX)).unwrap();
        let account = AccountId::parse(&"a".repeat(64)).unwrap();
        assert!(names.lane_admitted(Lane::Transactional).as_str().len() <= 255);
        assert!(Names::job_key(Lane::Transactional, &account).as_str().len() <= 255);
        let hot = names.hot(Lane::Transactional, i64::MAX);
        assert!(hot.as_str().len() <= 255);
    }
}
