//! What an operator has laid down for one account.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::quiet_policy::QuietPolicy;
use crate::domain::{Ceilings, Channel, Job};

/// Everything about an account that decides over its jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountPolicy {
    /// How far each lane may push the account's counter.
    pub ceilings: Ceilings,
    /// How often one recipient may be written to.
    pub caps: Vec<CapRule>,
    /// Messages per second of a sender number or id, in normalised form.
    pub numbers: HashMap<Box<str>, u32>,
    /// Messages per second of a messaging service.
    pub services: HashMap<Box<str>, u32>,
    /// When recipients may be written to.
    pub quiet_hours: QuietPolicy,
}

impl AccountPolicy {
    /// A policy of ceilings alone.
    #[must_use]
    pub fn of(ceilings: Ceilings) -> Self {
        Self {
            ceilings,
            caps: Vec::new(),
            numbers: HashMap::new(),
            services: HashMap::new(),
            quiet_hours: QuietPolicy::Off,
        }
    }

    /// The ceiling of a job's sender, with the sender.
    #[must_use]
    pub fn number_ceiling(&self, job: &Job) -> Option<(Box<str>, u32)> {
        ceiling_of(&self.numbers, job.from.as_deref())
    }

    /// The ceiling of a job's messaging service, with the service.
    #[must_use]
    pub fn service_ceiling(&self, job: &Job) -> Option<(Box<str>, u32)> {
        ceiling_of(&self.services, job.service_id.as_deref())
    }
}

fn ceiling_of(ceilings: &HashMap<Box<str>, u32>, target: Option<&str>) -> Option<(Box<str>, u32)> {
    let target = target.filter(|_| !ceilings.is_empty())?;
    let per_second = ceilings.get(target)?;
    Some((target.into(), *per_second))
}

/// At most so many messages to one recipient within any window of that length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapRule {
    /// Its name, unique within the account: 1 to 64 of `[A-Za-z0-9_-]`.
    pub name: Arc<str>,
    /// The channel that it concerns; `None`: all.
    pub channel: Option<Channel>,
    /// The category that it concerns; `None`: all, and jobs without one.
    pub category: Option<Box<str>>,
    /// Messages, at least 1.
    pub limit: u32,
    /// The rolling window.
    pub window: Duration,
}

impl CapRule {
    /// Whether a job counts towards this cap.
    #[must_use]
    pub fn concerns(&self, job: &Job) -> bool {
        self.channel.is_none_or(|channel| channel == job.channel)
            && (self.category.is_none() || self.category == job.category)
    }
}
