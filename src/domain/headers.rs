//! What the worker itself has noted about a job on earlier rounds.

/// Our own message headers. Received values are hints from the outside: small integers, and
/// whatever is not one is treated as absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobHeaders {
    /// `lk-attempt`: carrier tries so far.
    pub attempts: u32,
    /// `lk-sheds`: how often the job was sent back because a ceiling was reached.
    pub sheds: u32,
    /// `lk-enqueued-ms`: when the job was first queued, in milliseconds since the Unix epoch.
    pub enqueued_ms: Option<u64>,
    /// `lk-admitted-ms`: when an API server admitted the job, by Redis's clock.
    pub admitted_ms: Option<u64>,
}

impl JobHeaders {
    /// `lk-attempt`.
    pub const ATTEMPT: &'static str = "lk-attempt";
    /// `lk-sheds`.
    pub const SHEDS: &'static str = "lk-sheds";
    /// `lk-enqueued-ms`.
    pub const ENQUEUED_MS: &'static str = "lk-enqueued-ms";
    /// `lk-admitted-ms`.
    pub const ADMITTED_MS: &'static str = "lk-admitted-ms";

    /// The largest count believed, far above any real one.
    const MAX_COUNT: i64 = 1_000_000;
    /// The last instant believed: the end of the year 9999, in milliseconds since the Unix epoch.
    const MAX_MS: i64 = 253_402_300_799_999;

    /// The headers of a received message, whatever kinds of values they held.
    #[must_use]
    pub fn from_received(lookup: impl Fn(&str) -> Option<i64>) -> Self {
        let count = |name| {
            lookup(name)
                .filter(|value| (0..=Self::MAX_COUNT).contains(value))
                .and_then(|value| u32::try_from(value).ok())
                .unwrap_or(0)
        };
        let instant = |name| {
            lookup(name)
                .filter(|value| (0..=Self::MAX_MS).contains(value))
                .and_then(|value| u64::try_from(value).ok())
        };
        Self {
            attempts: count(Self::ATTEMPT),
            sheds: count(Self::SHEDS),
            enqueued_ms: instant(Self::ENQUEUED_MS),
            admitted_ms: instant(Self::ADMITTED_MS),
        }
    }

    /// The headers of the same job after it was shed once more: an API admission ends with a shed.
    #[must_use]
    pub fn after_shed(self) -> Self {
        Self {
            sheds: self.sheds.saturating_add(1),
            admitted_ms: None,
            ..self
        }
    }

    /// The headers of the same job when it is parked after `attempts` tries.
    #[must_use]
    pub fn after_park(self, attempts: u32) -> Self {
        Self {
            attempts,
            admitted_ms: None,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_count_as_absent() {
        let read = |value: i64| JobHeaders::from_received(|_| Some(value));
        assert_eq!(read(-1), JobHeaders::default());
        assert_eq!(read(i64::MAX), JobHeaders::default());
        let read = read(3);
        assert_eq!((read.attempts, read.sheds), (3, 3));
        assert_eq!((read.enqueued_ms, read.admitted_ms), (Some(3), Some(3)));
    }

    #[test]
    fn a_shed_is_not_an_attempt() {
        let before = JobHeaders {
            attempts: 2,
            sheds: 5,
            enqueued_ms: Some(1),
            admitted_ms: Some(2),
        };
        let after = before.after_shed();
        assert_eq!(
            (
                after.attempts,
                after.sheds,
                after.enqueued_ms,
                after.admitted_ms
            ),
            (2, 6, Some(1), None)
        );
    }
}
