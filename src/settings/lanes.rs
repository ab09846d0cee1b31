//! `[lanes]`: the default budget, and what happens above it.

use std::time::Duration;

use super::SettingsError;
use super::reader::Section;
use crate::domain::{Budget, Ceilings, Lane, Reserve};

/// The budget of accounts that have none of their own, and the shed loop.
#[derive(Debug, Clone, Copy)]
pub struct Lanes {
    /// Messages per second of one account.
    pub budget: Budget,
    /// The part of it that only the transactional lane can reach.
    pub reserve: Reserve,
    /// How long a shed job stays in the delay queue.
    pub shed_delay: Duration,
    /// Jobs per second that one worker sends to the delay queue at most, by [`Lane::index`].
    sheds_per_second: [u32; 2],
}

impl Lanes {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        let sheds = |lane: Lane| section.count(&format!("{lane}_sheds_per_second"), 1..=7_000);
        Ok(Self {
            budget: read_budget(section)?,
            reserve: read_reserve(section)?,
            shed_delay: section.millis("shed_delay_ms", 100..=60_000)?,
            sheds_per_second: [sheds(Lane::Transactional)?, sheds(Lane::Marketing)?],
        })
    }

    /// The ceilings of an account without a budget of its own.
    #[must_use]
    pub fn ceilings(&self) -> Ceilings {
        Ceilings::of(self.budget, self.reserve)
    }

    /// Jobs per second that one worker sends to a lane's delay queue at most.
    #[must_use]
    pub fn sheds_per_second(&self, lane: Lane) -> u32 {
        self.sheds_per_second[lane.index()]
    }
}

/// `budget_per_second`, here and in an account's own table.
pub(super) fn read_budget(section: &Section<'_>) -> Result<Budget, SettingsError> {
    let key = "budget_per_second";
    let budget = section.number(key, 0..=u64::from(Budget::MAX))?;
    Budget::per_second(budget)
        .map_err(|error| section.error(key, &budget.to_string(), &error.to_string()))
}

/// `reserve_percent`, here and in an account's own table.
pub(super) fn read_reserve(section: &Section<'_>) -> Result<Reserve, SettingsError> {
    let key = "reserve_percent";
    let percent = section.number(key, 0..=100)?;
    Reserve::percent(percent)
        .map_err(|error| section.error(key, &percent.to_string(), &error.to_string()))
}
