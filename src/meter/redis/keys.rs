//! The names of keys.

use super::options::RedisOptions;
use crate::dispatch::ports::{CapKey, TargetCeiling};
use crate::domain::{JobId, Limit};

/// The names of one account's keys. The braces make a Redis Cluster keep them together.
pub(super) struct Keys {
    account: String,
    claims: String,
}

impl Keys {
    pub(super) fn of(options: &RedisOptions, account: &str) -> Self {
        let account = format!("{}{{{account}}}:", options.prefix);
        let claims = format!("{account}claim:");
        Self { account, claims }
    }

    /// The account's counter.
    pub(super) fn counter(&self) -> String {
        format!("{}count", self.account)
    }

    /// A job's claim.
    pub(super) fn claim(&self, id: &JobId) -> String {
        [&self.claims, id.as_str()].concat()
    }

    /// The counter of a sender number or a messaging service, by the limit that it sheds by.
    pub(super) fn target(&self, limit: Limit, target: &TargetCeiling) -> String {
        format!("{}{}:{}", self.account, limit.as_str(), target.target)
    }

    /// The set of a frequency cap.
    pub(super) fn cap(&self, key: &CapKey) -> String {
        format!("{}cap:{}:{}", self.account, key.cap, key.recipient)
    }

    /// One key of each kind: counter, claim, counter of a number, set of a cap.
    pub(super) fn of_probe(&self) -> Vec<String> {
        let own = ["claim:probe", "number:probe", "cap:probe:probe"];
        let own = own.map(|name| [&self.account, name].concat());
        std::iter::once(self.counter()).chain(own).collect()
    }
}
