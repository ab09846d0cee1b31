//! Budgets and the ceilings that follow from them.

use thiserror::Error;

use super::Lane;

/// A budget or reserve outside its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BudgetError {
    /// More messages per second than a counter is kept for.
    #[error("a budget is 0 to {max} messages per second, not {0}", max = Budget::MAX)]
    Budget(u64),
    /// Not a percentage.
    #[error("a reserve is 0 to 100 percent, not {0}")]
    Reserve(u64),
}

/// Messages per second that an account may send: all lanes and all replicas together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Budget(u32);

impl Budget {
    /// The largest budget, in messages per second: far above what one broker carries, so that it
    /// serves as "unlimited", and small enough that no sum of counts overflows.
    pub const MAX: u32 = 1_000_000_000;

    /// A budget of so many messages per second.
    ///
    /// # Errors
    /// Above [`Budget::MAX`].
    pub fn per_second(messages: u64) -> Result<Self, BudgetError> {
        match u32::try_from(messages) {
            Ok(count) if count <= Self::MAX => Ok(Self(count)),
            _ => Err(BudgetError::Budget(messages)),
        }
    }

    /// Messages per second.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The part of a budget, in percent, that only the transactional lane can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserve(u8);

impl Reserve {
    /// A reserve of so many percent.
    ///
    /// # Errors
    /// Above 100.
    pub fn percent(percent: u64) -> Result<Self, BudgetError> {
        match u8::try_from(percent) {
            Ok(value) if value <= 100 => Ok(Self(value)),
            _ => Err(BudgetError::Reserve(percent)),
        }
    }

    /// The percentage.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// How far each lane may push an account's counter within one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceilings {
    transactional: u32,
    marketing: u32,
}

impl Ceilings {
    /// The ceilings of a budget: the whole of it for the transactional lane, the budget less the
    /// reserve for marketing. The reserve rounds up, so that a small budget keeps a real reserve.
    #[must_use]
    pub fn of(budget: Budget, reserve: Reserve) -> Self {
        let kept = (u64::from(budget.0) * u64::from(reserve.0)).div_ceil(100);
        let kept = u32::try_from(kept).unwrap_or(budget.0);
        Self {
            transactional: budget.0,
            marketing: budget.0.saturating_sub(kept),
        }
    }

    /// The lane's ceiling, in messages per window.
    #[must_use]
    pub const fn of_lane(self, lane: Lane) -> u32 {
        match lane {
            Lane::Transactional => self.transactional,
            Lane::Marketing => self.marketing,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ceilings(budget: u64, reserve: u64) -> (u32, u32) {
        let of = Ceilings::of(
            Budget::per_second(budget).unwrap(),
            Reserve::percent(reserve).unwrap(),
        );
        (of.of_lane(Lane::Transactional), of.of_lane(Lane::Marketing))
    }

    #[test]
    fn the_worked_examples() {
        assert_eq!(ceilings(100, 20), (100, 80));
        assert_eq!(ceilings(3, 20), (3, 2));
        assert_eq!(ceilings(0, 20), (0, 0));
        assert_eq!(ceilings(100, 100), (100, 0));
        assert_eq!(ceilings(100, 0), (100, 100));
        assert_eq!(ceilings(1, 1), (1, 0));
    }

    /// The rule, for every budget and reserve that the issue names: marketing is the largest whole
    /// number of messages that leaves at least `reserve` percent of the budget untouched.
    #[test]
    fn every_ceiling_leaves_exactly_the_reserve() {
        for budget in 0..=10_000u64 {
            for reserve in 0..=100u64 {
                let (transactional, marketing) = ceilings(budget, reserve);
                assert_eq!(u64::from(transactional), budget);
                let kept = |marketing: u64| (budget - marketing) * 100 >= budget * reserve;
                let marketing = u64::from(marketing);
                assert!(kept(marketing), "{budget} {reserve}");
                assert!(
                    marketing == budget || !kept(marketing + 1),
                    "{budget} {reserve}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn no_budget_overflows(budget in 0..=u64::from(Budget::MAX), reserve in 0..=100u64) {
            let (transactional, marketing) = ceilings(budget, reserve);
            prop_assert!(marketing <= transactional);
        }

        #[test]
        fn what_is_out_of_range_is_refused(budget in u64::from(Budget::MAX) + 1.., reserve in 101u64..) {
            prop_assert_eq!(Budget::per_second(budget), Err(BudgetError::Budget(budget)));
            prop_assert_eq!(Reserve::percent(reserve), Err(BudgetError::Reserve(reserve)));
        }
    }
}
