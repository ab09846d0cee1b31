//! How many requests one key may make: a guard for the service itself, not for budgets.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::accounts::keys::KeyId;

const WINDOW: Duration = Duration::from_secs(1);

/// Keys up to which nothing is swept.
const SWEEP_ABOVE: usize = 1024;

/// Requests of each key in the current second.
#[derive(Debug)]
pub struct RequestLimits {
    per_second: Option<u32>,
    windows: Mutex<HashMap<KeyId, Window>>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    since: Instant,
    requests: u32,
}

impl RequestLimits {
    /// So many requests a second for each key; `None`: any number.
    #[must_use]
    pub fn new(per_second: Option<u32>) -> Self {
        Self {
            per_second,
            windows: Mutex::default(),
        }
    }

    /// Counts a request of that key.
    ///
    /// # Errors
    /// The limit, when the key has used it up for this second; such a request is not counted.
    pub fn pass(&self, key: KeyId, now: Instant) -> Result<(), u32> {
        let Some(limit) = self.per_second else {
            return Ok(());
        };
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |window: &Window| now.duration_since(window.since) >= WINDOW;
        if windows.len() > SWEEP_ABOVE {
            windows.retain(|_, window| !is_over(window));
        }
        let new = Window {
            since: now,
            requests: 0,
        };
        let window = windows.entry(key).or_insert(new);
        if is_over(window) {
            *window = new;
        }
        if window.requests >= limit {
            return Err(limit);
        }
        window.requests += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> KeyId {
        KeyId::parse(name.as_bytes()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn each_key_has_its_own_requests_anew_each_second() {
        let limits = RequestLimits::new(Some(2));
        let (one, other) = (key("aaaaaaaaaaaa"), key("bbbbbbbbbbbb"));
        let start = Instant::now();
        assert_eq!(limits.pass(one, start), Ok(()));
        assert_eq!(limits.pass(one, start), Ok(()));
        assert_eq!(limits.pass(one, start), Err(2));
        assert_eq!(limits.pass(other, start), Ok(()));
        assert_eq!(limits.pass(one, start + WINDOW), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_everything_passes() {
        let limits = RequestLimits::new(None);
        let start = Instant::now();
        assert!((0..10_000).all(|_| limits.pass(key("aaaaaaaaaaaa"), start).is_ok()));
    }
}
