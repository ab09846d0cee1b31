//! What an operator has laid down for one account.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::quiet_policy::QuietPolicy;
use crate::domain::{Ceilings, Channel, Job};

/// Senders of so few digits are short codes, in any country, and no international numbers.
const LONGEST_SHORT_CODE: usize = 7;

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
        ceiling_of_number(&self.numbers, job.from.as_deref()?)
    }

    /// The ceiling of a job's messaging service, with the service.
    #[must_use]
    pub fn service_ceiling(&self, job: &Job) -> Option<(Box<str>, u32)> {
        ceiling_of(&self.services, job.service_id.as_deref())
    }
}

fn ceiling_of_number(ceilings: &HashMap<Box<str>, u32>, number: &str) -> Option<(Box<str>, u32)> {
    if ceilings.is_empty() {
        return None;
    }
    ceiling_of(ceilings, Some(number))
        .or_else(|| ceiling_of(ceilings, other_spelling(number).as_deref()))
}

/// A number's other spelling, with or without its `+`: a ceiling holds however its number is written.
/// What the carrier is told stays as it is.
fn other_spelling(number: &str) -> Option<String> {
    let bare = number.trim();
    let bare = bare.strip_prefix("tel:").unwrap_or(bare);
    let digits = bare.trim_start_matches('+');
    let digits = digits.strip_prefix("00").unwrap_or(digits);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || digits.len() <= LONGEST_SHORT_CODE {
        return None;
    }
    Some(if number.starts_with('+') {
        digits.to_owned()
    } else {
        format!("+{digits}")
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// F6-07: a sender slipped past its ceiling by another spelling.
    #[test]
    fn a_number_has_one_ceiling_however_it_is_written() {
        let numbers: HashMap<Box<str>, u32> =
            [("+447700900999".into(), 2), ("12345".into(), 1)].into();
        let found = |number: &str| ceiling_of_number(&numbers, number).map(|(target, _)| target);
        for spelling in [
            "+447700900999",
            "447700900999",
            "00447700900999",
            "tel:+447700900999",
            " 447700900999",
        ] {
            assert_eq!(
                found(spelling).as_deref(),
                Some("+447700900999"),
                "{spelling}"
            );
        }
        assert_eq!(found("12345").as_deref(), Some("12345"));
        for other in ["+12345", "447700900998", "Acme", "tel:", ""] {
            assert_eq!(found(other), None, "{other}");
        }
        assert_eq!(
            other_spelling("+447700900999").as_deref(),
            Some("447700900999")
        );
    }
}
