//! A batch file, read to be played: its first rows become offers, all of them are counted.

use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::play::Ending;
use super::scenario::Offer;
use super::tally::ByLane;
use super::telling;
use super::words::{about, count, grouped, wrapped};
use crate::batch::{Batch, BatchFile, BatchId, FileError, RowError, RowOptions, RowOutcome};
use crate::domain::{AccountId, Ceilings, Channel, Job, Lane, Origin};

/// The most rejected rows that are kept to be shown.
const SHOWN: usize = 10;

/// What a file holds.
#[derive(Debug, Default)]
pub struct Contents {
    /// Rows that are not blank.
    pub rows: u64,
    /// Rows that are jobs.
    pub jobs: ByLane,
    /// Rows skipped because an earlier one has their recipient.
    pub duplicates: u64,
    /// Rows that are no jobs.
    pub rejected: u64,
    /// The first of those.
    pub rejections: Vec<RowError>,
    /// The first jobs, as many as can be played, all offered at once.
    pub offers: Vec<Offer>,
    /// How many those are.
    pub played: ByLane,
}

/// How many jobs of each lane leave within so many seconds.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// The account's ceilings.
    pub ceilings: Ceilings,
    /// How long is played.
    pub seconds: u32,
}

impl Room {
    /// Whether one more job of a lane has room, when so many are there already.
    fn takes(self, lane: Lane, taken: ByLane) -> bool {
        let most = |lane| u64::from(self.ceilings.of_lane(lane)) * u64::from(self.seconds);
        let all: u64 = taken.iter().sum();
        all < most(Lane::Transactional) && taken[lane.index()] < most(lane)
    }
}

/// Reads a file, or standard input for `-`, whose rows are a campaign's unless they say otherwise.
///
/// # Errors
/// When it is refused as a whole.
pub fn read(
    path: &Path,
    account: &AccountId,
    channel: Channel,
    room: Room,
) -> Result<Contents, FileError> {
    let file = if path == Path::new("-") {
        BatchFile::spool(io::stdin(), None)?
    } else {
        BatchFile::open(path, None)?
    };
    let batch = Batch {
        account: account.clone(),
        channel,
        origin: Origin::Campaign,
        id: BatchId::parse("demo").expect("letters are an id"),
        priority: None,
        defaults: Vec::new(),
        default_region: None,
    };
    let mut contents = Contents::default();
    for row in file.rows(&batch, RowOptions::default(), Timestamp::now())? {
        contents.rows += 1;
        match row?.outcome {
            RowOutcome::Job(job) => contents.add(*job, room),
            RowOutcome::Duplicate => contents.duplicates += 1,
            RowOutcome::Rejected(error) => contents.reject(error),
        }
    }
    Ok(contents)
}

impl Contents {
    fn add(&mut self, job: Job, room: Room) {
        let lane = job.lane();
        self.jobs[lane.index()] += 1;
        if room.takes(lane, self.played) {
            self.played[lane.index()] += 1;
            self.offers.push(Offer {
                at: Duration::ZERO,
                id: job.head.id,
                lane,
                payload: job.payload.as_bytes().to_vec().into(),
            });
        }
    }

    fn reject(&mut self, error: RowError) {
        self.rejected += 1;
        if self.rejections.len() < SHOWN {
            self.rejections.push(error);
        }
    }

    /// Jobs that are not played.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.jobs.iter().sum::<u64>() - self.played.iter().sum::<u64>()
    }

    /// How long all jobs take, in seconds: each lane within its ceiling, and both within the
    /// budget. `None` when some can never leave.
    #[must_use]
    pub fn seconds(&self, ceilings: Ceilings) -> Option<u64> {
        let all: u64 = self.jobs.iter().sum();
        let takes = |jobs: u64, lane: Lane| match ceilings.of_lane(lane) {
            0 if jobs > 0 => None,
            ceiling => Some(jobs.div_ceil(u64::from(ceiling.max(1)))),
        };
        let marketing = takes(self.jobs[Lane::Marketing.index()], Lane::Marketing)?;
        Some(marketing.max(takes(all, Lane::Transactional)?))
    }
}

/// What is known of the file, for scripts.
#[derive(Debug, Serialize)]
pub struct Facts {
    rows: u64,
    jobs: u64,
    /// Rows that are no jobs.
    pub rejected: u64,
    rejections: Vec<Rejection>,
    duplicates: u64,
    played: u64,
    remaining: u64,
    /// How long all jobs take at the budget; null when some can never leave.
    seconds_for_all: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Rejection {
    line: u64,
    field: String,
    reason: String,
}

impl Contents {
    /// What is known of the file, for scripts.
    #[must_use]
    pub fn facts(&self, ceilings: Ceilings) -> Facts {
        let rejection = |error: &RowError| Rejection {
            line: error.line,
            field: error.field.clone(),
            reason: error.reason.clone(),
        };
        Facts {
            rows: self.rows,
            jobs: self.jobs.iter().sum(),
            rejected: self.rejected,
            rejections: self.rejections.iter().map(rejection).collect(),
            duplicates: self.duplicates,
            played: self.played.iter().sum(),
            remaining: self.remaining(),
            seconds_for_all: self.seconds(ceilings),
        }
    }

    /// What is about to be played.
    #[must_use]
    pub fn opening(&self, account: &AccountId, ceilings: Ceilings, workers: usize) -> String {
        let [transactional, marketing] = self.jobs;
        let found = format!(
            "{}: {} to send ({} marketing, {} transactional), {} rejected, {} skipped.",
            count(self.rows, "row"),
            grouped(transactional + marketing),
            grouped(marketing),
            grouped(transactional),
            grouped(self.rejected),
            count(self.duplicates, "duplicate")
        );
        let played = match (self.played.iter().sum(), self.remaining()) {
            (0, 0) => "There is nothing to offer.".to_owned(),
            (0, _) => "Nothing is offered, because nothing of it can leave.".to_owned(),
            (_, 0) => "All of them are offered at once.".to_owned(),
            (some, _) => format!("The first {} are offered at once.", grouped(some)),
        };
        let played = format!(
            "{} {} {played} Nothing leaves this process.",
            telling::budget(account.as_str(), ceilings),
            telling::sharing(workers)
        );
        let mut lines = vec![wrapped(&found, 0)];
        let line = |error: &RowError| format!("  {}", wrapped(&error.to_string(), 2));
        lines.extend(self.rejections.iter().map(line));
        let hidden = self.rejected - self.rejections.len() as u64;
        if hidden > 0 {
            lines.push(format!("  and {} more", grouped(hidden)));
        }
        lines.extend([String::new(), wrapped(&played, 0)]);
        lines.join("\n")
    }

    /// What was shown.
    #[must_use]
    pub fn closing(&self, ceilings: Ceilings, ending: &Ending) -> String {
        let all = match self.seconds(ceilings) {
            Some(seconds) => format!("takes about {}", about(seconds)),
            None => "can never leave as a whole".to_owned(),
        };
        let whole = match self.remaining() {
            0 => format!("The file {all} at this budget."),
            some => format!(
                "{} of the file were not played; the whole of it {all} at this budget.",
                count(some, "job")
            ),
        };
        [telling::in_all(ending), whole]
            .map(|sentence| wrapped(&sentence, 0))
            .join("\n")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::domain::{Budget, Reserve};

    fn ceilings(budget: u64) -> Ceilings {
        let reserve = Reserve::percent(20).unwrap();
        Ceilings::of(Budget::per_second(budget).unwrap(), reserve)
    }

    fn contents(rows: &str, budget: u64) -> Contents {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(rows.as_bytes()).unwrap();
        let account = AccountId::parse("demo").unwrap();
        let room = Room {
            ceilings: ceilings(budget),
            seconds: 2,
        };
        read(file.path(), &account, Channel::Sms, room).unwrap()
    }

    /// Twelve campaign rows, every fourth of them urgent, and two that are none.
    fn rows() -> String {
        let urgent = |number| if number % 4 == 0 { "high" } else { "normal" };
        let row = |number| {
            let urgent = urgent(number);
            format!(r#"{{"to":"+4477009001{number:02}","body":"x","priority":"{urgent}"}}"#)
        };
        let good: Vec<_> = (0..12).map(row).collect();
        format!(
            "{}\n{}\n{{\"to\":\"S3NTINEL\",\"body\":\"x\"}}\n",
            good.join("\n"),
            good[1]
        )
    }

    #[test]
    fn every_row_is_counted_and_as_many_are_played_as_leave_in_time() {
        let contents = contents(&rows(), 5);
        assert_eq!((contents.rows, contents.jobs), (14, [3, 9]));
        assert_eq!((contents.duplicates, contents.rejected), (1, 1));
        // Two seconds of 5, of which the campaign gets 4.
        assert_eq!((contents.played, contents.remaining()), ([3, 7], 2));
        assert_eq!(contents.seconds(ceilings(5)), Some(3));
        let told = contents.opening(&AccountId::parse("demo").unwrap(), ceilings(5), 2);
        assert!(
            told.contains("\n  line 14: to: ") && !told.contains("S3NTINEL"),
            "{told}"
        );
    }

    #[test]
    fn what_can_never_leave_is_not_offered() {
        let contents = contents(&rows(), 1);
        assert_eq!(contents.played, [2, 0]);
        assert_eq!(contents.seconds(ceilings(1)), None);
    }
}
