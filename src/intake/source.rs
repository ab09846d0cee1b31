//! The queues that are consumed from.

use lapin::types::ShortString;

use crate::domain::{HotQueue, Lane};

use super::names::Names;

/// A queue that is consumed from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// A lane's queue of jobs that an API server has admitted.
    Admitted(Lane),
    /// A lane's queue that accounts share.
    Shared(Lane),
    /// An account's own.
    Hot(HotQueue),
}

impl Source {
    /// Those that are always consumed from.
    pub const FIXED: [Self; 4] = [
        Self::Admitted(Lane::Transactional),
        Self::Shared(Lane::Transactional),
        Self::Admitted(Lane::Marketing),
        Self::Shared(Lane::Marketing),
    ];

    /// The queue's lane.
    #[must_use]
    pub const fn lane(&self) -> Lane {
        match self {
            Self::Admitted(lane) | Self::Shared(lane) => *lane,
            Self::Hot(queue) => queue.lane,
        }
    }

    /// The queue's name.
    #[must_use]
    pub fn queue(&self, names: &Names) -> ShortString {
        match self {
            Self::Admitted(lane) => names.lane_admitted(*lane),
            Self::Shared(lane) => names.lane(*lane),
            Self::Hot(queue) => names.hot(queue.lane, queue.number),
        }
    }
}
