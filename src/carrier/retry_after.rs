//! How long a carrier asks to be left alone.

use std::time::Duration;

use jiff::Timestamp;

/// Reads a `Retry-After` header: a whole number of seconds, or an HTTP date, which `now` turns into
/// a wait. The wait is at most `cap`. What is neither, or no wait at all, counts as absent.
pub(super) fn wait(header: &str, now: Timestamp, cap: Duration) -> Option<Duration> {
    let header = header.trim();
    let wait = if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are a wait beyond any cap.
        header.parse().map_or(Duration::MAX, Duration::from_secs)
    } else {
        let until = httpdate::parse_http_date(header).ok()?;
        let ahead = Timestamp::try_from(until).ok()?.duration_since(now);
        Duration::try_from(ahead).ok()?
    };
    Some(wait.min(cap)).filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAP: Duration = Duration::from_secs(300);

    fn now() -> Timestamp {
        "2026-03-01T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn both_forms_are_read() {
        let read = |header| wait(header, now(), CAP);
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(read(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(
            read("Sun, 01 Mar 2026 12:01:30 GMT"),
            Some(Duration::from_secs(90))
        );
        assert_eq!(read("86400"), Some(CAP));
        assert_eq!(read("99999999999999999999999"), Some(CAP));
        assert_eq!(read("Mon, 02 Mar 2026 12:00:00 GMT"), Some(CAP));
    }

    #[test]
    fn nonsense_and_the_past_count_as_absent() {
        for header in [
            "",
            "0",
            "-1",
            "1.5",
            "soon",
            "+3",
            "Sun, 01 Mar 2026 11:00:00 GMT",
            "１２",
        ] {
            assert_eq!(wait(header, now(), CAP), None, "{header:?}");
        }
    }

    proptest! {
        #[test]
        fn seconds_are_capped(seconds in 1..u64::MAX, cap in 1..86_400u64) {
            let read = wait(&seconds.to_string(), now(), Duration::from_secs(cap));
            prop_assert_eq!(read, Some(Duration::from_secs(seconds.min(cap))));
        }

        #[test]
        fn dates_are_waited_for(ahead in 1..1_000_000u64, cap in 1..86_400u64) {
            let since_epoch = Duration::try_from(now().as_duration()).unwrap();
            let until = std::time::UNIX_EPOCH + since_epoch + Duration::from_secs(ahead);
            let read = wait(&httpdate::fmt_http_date(until), now(), Duration::from_secs(cap));
            prop_assert_eq!(read, Some(Duration::from_secs(ahead.min(cap))));
        }

        #[test]
        fn no_text_breaks_it(header in "\\PC{0,40}") {
            prop_assert!(wait(&header, now(), CAP).is_none_or(|wait| wait <= CAP));
        }
    }
}
