//! How many jobs have flowed through workers: what they were given, what they sent, what they shed.

use std::ops::Sub;

use super::worker::Cluster;

/// Counts of one lane since the workers started, or between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    pub deliveries: u64,
    pub dispatched: u64,
    pub sheds: u64,
}

impl Flow {
    /// All workers' counts of a lane.
    pub async fn of(cluster: &Cluster, lane: &str) -> Self {
        let lane = ("lane", lane);
        let dispatched = [lane, ("outcome", "dispatched")];
        Self {
            deliveries: cluster.count("lanekeeper_deliveries_total", &[lane]).await,
            dispatched: cluster
                .count("lanekeeper_outcomes_total", &dispatched)
                .await,
            sheds: cluster.count("lanekeeper_sheds_total", &[lane]).await,
        }
    }
}

impl Sub for Flow {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            deliveries: self.deliveries - earlier.deliveries,
            dispatched: self.dispatched - earlier.dispatched,
            sheds: self.sheds - earlier.sheds,
        }
    }
}
