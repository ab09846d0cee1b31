//! A carrier's slots: how many jobs it may have at once, and the share of the transactional lane.

use thiserror::Error;

use crate::domain::Lane;

/// Too few slots to keep one for the transactional lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "a carrier needs at least 2 slots, one of them kept for the transactional lane; {0} is too few"
)]
pub struct TooFewSlots(pub usize);

/// The slots of one carrier.
#[derive(Debug)]
pub struct Slots {
    total: usize,
    marketing_share: usize,
    taken: [usize; 2],
}

impl Slots {
    /// So many slots. 20 % of them, at least one, are kept for the transactional lane.
    ///
    /// # Errors
    /// With fewer than two, one lane would have none.
    pub fn new(total: usize) -> Result<Self, TooFewSlots> {
        if total < 2 {
            return Err(TooFewSlots(total));
        }
        let kept = total.div_ceil(5);
        Ok(Self {
            total,
            marketing_share: total - kept,
            taken: [0; 2],
        })
    }

    /// How many more jobs of this lane the carrier may have now.
    #[must_use]
    pub fn free(&self, lane: Lane) -> usize {
        let free = self.total - self.taken[0] - self.taken[1];
        match lane {
            Lane::Transactional => free,
            Lane::Marketing => free.min(
                self.marketing_share
                    .saturating_sub(self.taken[lane.index()]),
            ),
        }
    }

    /// Takes one slot; false when the lane may have none now.
    pub fn take(&mut self, lane: Lane) -> bool {
        let free = self.free(lane) > 0;
        self.taken[lane.index()] += usize::from(free);
        free
    }

    /// Gives one slot back.
    pub fn give_back(&mut self, lane: Lane) {
        self.taken[lane.index()] = self.taken[lane.index()].saturating_sub(1);
    }

    /// Slots taken by a lane.
    #[must_use]
    pub fn taken(&self, lane: Lane) -> usize {
        self.taken[lane.index()]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_slot_is_too_few() {
        assert_eq!(Slots::new(1).unwrap_err(), TooFewSlots(1));
        assert_eq!(Slots::new(2).unwrap().free(Lane::Marketing), 1);
    }

    proptest! {
        /// However marketing and transactional jobs come and go, marketing alone never fills the
        /// share that is kept, and all slots together are never exceeded.
        #[test]
        fn a_share_is_kept(total in 2..300usize, steps in prop::collection::vec((any::<bool>(), any::<bool>()), 0..600)) {
            let mut slots = Slots::new(total).unwrap();
            for (marketing, take) in steps {
                let lane = if marketing { Lane::Marketing } else { Lane::Transactional };
                if take {
                    slots.take(lane);
                } else {
                    slots.give_back(lane);
                }
                let marketing = slots.taken(Lane::Marketing);
                prop_assert!(marketing + slots.taken(Lane::Transactional) <= total);
                prop_assert!(total - marketing >= 1 && (total - marketing) * 5 >= total);
            }
        }
    }
}
