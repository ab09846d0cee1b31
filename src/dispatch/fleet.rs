//! The carriers of a worker, and which channel goes to which of them.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::Channel;
use crate::settings::BreakerSettings;

/// One carrier as the pipeline uses it.
#[derive(Debug)]
pub struct FleetCarrier<C> {
    /// Its name in the settings.
    pub name: Arc<str>,
    /// The adapter.
    pub adapter: Arc<C>,
    /// Jobs it may have at once, at least 2.
    pub max_in_flight: usize,
    /// How long one try may take.
    pub timeout: Duration,
    /// When it counts as being out.
    pub breaker: BreakerSettings,
}

/// All carriers of a worker.
#[derive(Debug)]
pub struct Fleet<C> {
    carriers: Vec<FleetCarrier<C>>,
    by_channel: [usize; Channel::ALL.len()],
}

impl<C> Fleet<C> {
    /// A fleet; `route` gives each channel the place of its carrier, and a place that does not
    /// exist is read as the first.
    #[must_use]
    pub fn new(carriers: Vec<FleetCarrier<C>>, route: impl Fn(Channel) -> usize) -> Self {
        let by_channel = Channel::ALL.map(|channel| {
            let place = route(channel);
            if place < carriers.len() { place } else { 0 }
        });
        Self {
            carriers,
            by_channel,
        }
    }

    /// The place of a channel's carrier.
    #[must_use]
    pub fn place_for(&self, channel: Channel) -> usize {
        self.by_channel[channel as usize]
    }

    /// The carrier at a place.
    #[must_use]
    pub fn at(&self, place: usize) -> &FleetCarrier<C> {
        &self.carriers[place]
    }

    /// All carriers, in order of their places.
    pub fn iter(&self) -> impl Iterator<Item = &FleetCarrier<C>> {
        self.carriers.iter()
    }
}
