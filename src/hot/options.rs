//! When accounts get queues of their own, and lose them.

use std::time::Duration;

/// When accounts get queues of their own, and lose them.
#[derive(Debug, Clone, Copy)]
pub struct HotOptions {
    /// The most queues of this kind, in both lanes together. Each takes about 104 KB of the broker's
    /// memory (RabbitMQ 3.10, measured on an empty quorum queue).
    pub most: u32,
    /// Queues that are made beforehand, for each lane; at most 64.
    pub spare: u32,
    /// For how long no job may have waited for its account's ceiling before the account shares again.
    pub idle: Duration,
    /// How long everything is left to settle: after the last job was sent to a queue until workers
    /// leave it, and after connecting to the broker until anything is given up.
    pub settle: Duration,
}

impl HotOptions {
    /// How far apart a queue has to be found empty twice before it is deleted.
    pub(super) fn apart(&self) -> Duration {
        self.settle / 20
    }

    /// How often it is looked for queues that are no longer needed.
    pub(super) fn look_every(&self) -> Duration {
        (self.settle / 12).max(Duration::from_millis(100))
    }
}
