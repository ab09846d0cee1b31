//! What a run tells at its end, for people.

use std::fmt;
use std::time::Duration;

use indicatif::HumanCount;

use crate::enqueueing::Counts;

use super::report::{Report, Status};

/// The summary for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.title(f)?;
        self.figures(f)?;
        if self.status == Status::Stopped {
            write!(f, "\ncomplete up to line {}", self.complete_to_line)?;
        }
        if let Some(state) = &self.state {
            write!(f, "\nstate: {state}")?;
        }
        if let Some(next) = &self.next {
            write!(f, "\nnext: {next}")?;
        }
        Ok(())
    }
}

impl Report {
    fn title(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, batch, .. } = self;
        match self.status {
            Status::Complete => write!(f, "batch {batch}: every good row of {file} is queued"),
            Status::Checked => write!(f, "batch {batch}: {file} was checked; nothing was queued"),
            Status::AlreadyQueued => write!(f, "batch {batch}: {file} was queued already"),
            Status::Stopped => write!(f, "batch {batch}: {file} is queued in part"),
            Status::Refused => write!(f, "batch {batch}: nothing of {file} was queued"),
        }
    }

    fn figures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            queued,
            already_queued,
            duplicates,
            rejected,
            not_queued,
        } = self.counts;
        let good = if self.status == Status::Checked {
            "good"
        } else {
            "queued"
        };
        let figures = [
            ("rows", self.rows, self.reading()),
            (good, queued, self.sending()),
            ("already queued", already_queued, String::new()),
            (
                "duplicates",
                duplicates,
                "an earlier row has the same recipient; --allow-duplicates takes them too"
                    .to_owned(),
            ),
            ("rejected", rejected, self.listing()),
            ("not queued", not_queued, String::new()),
        ];
        // What did not happen needs no line, apart from the two that everybody looks for.
        let told = figures.iter().enumerate();
        let told = told.filter(|(place, (_, count, _))| *place < 2 || *count > 0);
        let told: Vec<_> = told.map(|(_, figure)| figure).collect();
        let width = HumanCount(self.rows).to_string().len();
        for (what, count, remark) in told {
            let count = HumanCount(*count).to_string();
            let line = format!("  {what:<14}  {count:>width$}  {remark}");
            write!(f, "\n{}", line.trim_end())?;
        }
        Ok(())
    }

    fn reading(&self) -> String {
        match self.status {
            _ if self.rows == 0 => "the file holds no rows".to_owned(),
            Status::Stopped => "read so far".to_owned(),
            _ => String::new(),
        }
    }

    fn sending(&self) -> String {
        let ids = self.first_id.as_ref().zip(self.last_id.as_ref());
        let ids = ids.map(|(first, last)| format!("ids {first} to {last}"));
        let took = duration(self.seconds);
        let rate = HumanCount(self.rows_per_second);
        let to = self.destination.as_ref();
        let to = to.map(|to| format!("to {to} in {took}, {rate} a second"));
        [to, ids]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("; ")
    }

    fn listing(&self) -> String {
        match self.rejected_rows_not_listed {
            0 => String::new(),
            more => format!("{} of them not listed (--max-errors)", HumanCount(more)),
        }
    }
}

/// `0.4 s`, `12 s`, `3 min 5 s`.
fn duration(seconds: f64) -> String {
    let whole = Duration::from_secs_f64(seconds).as_secs();
    match (whole / 60, whole % 60) {
        (0, 0..10) => format!("{seconds:.1} s"),
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_as_precise_as_they_are_short() {
        for (seconds, expected) in [
            (0.04, "0.0 s"),
            (9.96, "10.0 s"),
            (12.7, "12 s"),
            (185.0, "3 min 5 s"),
        ] {
            assert_eq!(duration(seconds), expected);
        }
    }
}
