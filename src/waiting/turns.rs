//! Turns at a ceiling that many jobs wait for: each job gets its own, at the ceiling's rate.

/// Microseconds in a second.
const SECOND: u64 = 1_000_000;

/// How long so many jobs take at a rate of `per_second`, in microseconds, rounded up.
pub(super) fn span(jobs: usize, per_second: u32) -> u64 {
    let jobs = u64::try_from(jobs).unwrap_or(u64::MAX);
    jobs.saturating_mul(SECOND)
        .div_ceil(per_second.max(1).into())
}

/// The instants of so many jobs in turn, in microseconds since the Unix epoch; the turn after theirs
/// is at `taken_until`.
pub(super) fn instants(
    taken_until: i64,
    jobs: usize,
    per_second: u32,
) -> impl Iterator<Item = i64> {
    (0..jobs).map(move |place| taken_until.saturating_sub_unsigned(span(jobs - place, per_second)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_has_a_turn_of_its_own_and_the_last_ends_where_the_next_begins() {
        let at_four: Vec<_> = instants(10_000_000, 4, 4).collect();
        assert_eq!(at_four, [9_000_000, 9_250_000, 9_500_000, 9_750_000]);
        assert_eq!(span(4, 4), 1_000_000);
        assert_eq!(instants(0, 0, 1).count(), 0);
    }

    #[test]
    fn uneven_rates_round_towards_later() {
        assert_eq!(span(1, 3), 333_334);
        assert_eq!(span(3, 3), 1_000_000);
        let at_three: Vec<_> = instants(1_000_000, 3, 3).collect();
        assert_eq!(at_three, [0, 333_333, 666_666]);
    }
}
