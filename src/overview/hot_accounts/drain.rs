//! When an account will be through with what is queued.

use serde::Serialize;

/// When an account will be through with what is queued now, if no more comes. As JSON it is two
/// fields, `drained_in_seconds` and `drained_by`, of which the first is null where it never will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Drain {
    drained_in_seconds: Option<u64>,
    drained_by: Option<DrainedBy>,
}

/// By what that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DrainedBy {
    /// At the rate of the last seconds.
    Rate,
    /// At the lane's limit, because nothing went in the last seconds.
    Limit,
    /// Not as long as the account is paused.
    Paused,
    /// Not as long as the lane's limit is 0.
    LimitIsZero,
    /// Not as long as no worker consumes from the queue.
    NoConsumer,
}

/// Why nothing is taken from a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stays {
    /// The account is paused.
    Paused,
    /// Nobody consumes from it, as the broker counts: for some seconds that may be late.
    Deserted,
}

impl Drain {
    /// So many jobs at a rate, or where nothing went at a limit, each in jobs per second; what is not
    /// known is `None`.
    pub(super) fn of(
        queued: Option<u64>,
        rate: Option<f64>,
        limit: Option<u32>,
        stays: Option<Stays>,
    ) -> Self {
        let in_seconds = |rate: f64, by| Self {
            drained_in_seconds: queued.map(|queued| seconds(queued, rate)),
            drained_by: queued.map(|_| by),
        };
        match (rate, limit) {
            _ if stays == Some(Stays::Paused) => Self::never(DrainedBy::Paused),
            (_, Some(0)) => Self::never(DrainedBy::LimitIsZero),
            (Some(rate), _) if rate > 0.0 => in_seconds(rate, DrainedBy::Rate),
            // What still goes shows that somebody consumes.
            _ if stays == Some(Stays::Deserted) => Self::never(DrainedBy::NoConsumer),
            (_, Some(limit)) => in_seconds(limit.into(), DrainedBy::Limit),
            // Its jobs are refused as fast as workers are.
            (_, None) => Self {
                drained_in_seconds: None,
                drained_by: None,
            },
        }
    }

    const fn never(why: DrainedBy) -> Self {
        Self {
            drained_in_seconds: None,
            drained_by: Some(why),
        }
    }

    /// In how many seconds; `None` where that is not known, or never.
    #[must_use]
    pub const fn seconds(self) -> Option<u64> {
        self.drained_in_seconds
    }

    /// By what that is known.
    #[must_use]
    pub const fn by(self) -> Option<DrainedBy> {
        self.drained_by
    }
}

/// A job that is there takes a second at least: it may have to wait for the next window.
fn seconds(queued: u64, rate: f64) -> u64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate of something positive; what is too large ends at the largest"
    )]
    let seconds = (queued as f64 / rate).ceil() as u64;
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queued: u64, rate: f64, limit: u32) -> (Option<u64>, Option<DrainedBy>) {
        let drain = Drain::of(Some(queued), Some(rate), Some(limit), None);
        (drain.seconds(), drain.by())
    }

    #[test]
    fn it_takes_what_is_queued_divided_by_the_rate_and_never_less() {
        for (queued, rate, seconds) in [
            (0, 80.0, 0),
            (1, 80.0, 1),
            (80, 80.0, 1),
            (81, 80.0, 2),
            (100_000, 79.8, 1_254),
            (3, 0.1, 30),
        ] {
            let expected = (Some(seconds), Some(DrainedBy::Rate));
            assert_eq!(drain(queued, rate, 80), expected, "{queued} {rate}");
        }
    }

    #[test]
    fn where_nothing_went_yet_the_limit_is_taken() {
        assert_eq!(drain(8_000, 0.0, 80), (Some(100), Some(DrainedBy::Limit)));
        assert_eq!(drain(0, 0.0, 80), (Some(0), Some(DrainedBy::Limit)));
    }

    #[test]
    fn what_nothing_lets_through_is_never_drained() {
        assert_eq!(drain(5, 0.0, 0), (None, Some(DrainedBy::LimitIsZero)));
        // What still went before the limit was set to 0 says nothing.
        assert_eq!(drain(5, 9.0, 0), (None, Some(DrainedBy::LimitIsZero)));
        let paused = Drain::of(Some(5), Some(80.0), Some(80), Some(Stays::Paused));
        let expected = (None, Some(DrainedBy::Paused));
        assert_eq!((paused.seconds(), paused.by()), expected);
    }

    #[test]
    fn what_nobody_consumes_is_never_drained_unless_it_goes_all_the_same() {
        let deserted = |rate| Drain::of(Some(5), Some(rate), Some(80), Some(Stays::Deserted));
        assert_eq!(deserted(0.0), Drain::never(DrainedBy::NoConsumer));
        assert_eq!(deserted(5.0).by(), Some(DrainedBy::Rate));
        let zero = Drain::of(Some(5), None, Some(0), Some(Stays::Deserted));
        assert_eq!(zero.by(), Some(DrainedBy::LimitIsZero));
    }

    #[test]
    fn of_what_is_not_known_nothing_is_said() {
        let unknown = Drain::of(None, Some(80.0), Some(80), None);
        assert_eq!((unknown.seconds(), unknown.by()), (None, None));
        let refused = Drain::of(Some(5), Some(0.0), None, None);
        assert_eq!((refused.seconds(), refused.by()), (None, None));
    }

    #[test]
    fn a_number_that_is_too_large_does_not_overflow() {
        assert_eq!(drain(u64::MAX, 0.000_001, 80).0, Some(u64::MAX));
    }

    #[test]
    fn as_json_it_is_two_fields() {
        let json = |drain| serde_json::to_string(&drain).unwrap();
        let paused = Drain::of(Some(5), None, Some(80), Some(Stays::Paused));
        let expected = r#"{"drained_in_seconds":null,"drained_by":"paused"}"#;
        assert_eq!(json(paused), expected);
        let at_limit = Drain::of(Some(160), None, Some(80), None);
        let expected = r#"{"drained_in_seconds":2,"drained_by":"limit"}"#;
        assert_eq!(json(at_limit), expected);
    }
}
