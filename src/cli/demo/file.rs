//! A batch file, read to be played: its first rows become offers, all of them are counted.

#[cfg(test)]
mod tests;

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
use crate::domain::{AccountId, Ceilings, Channel, Field, Job, Lane, Origin, Region};

/// What to do about numbers that are rejected, when no region was given.
const REGION_ADVICE: &str =
    "Numbers without a country code need the country: --region GB, for example.";

/// The most rejected rows that are kept to be shown.
const SHOWN: usize = 10;

/// Whose rows they are, where they do not say it themselves.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    /// The account.
    pub account: &'a AccountId,
    /// The channel.
    pub channel: Channel,
    /// The country of telephone numbers without a country code.
    pub region: Option<Region>,
}

/// What a file holds.
#[derive(Debug, Default)]
pub struct Contents {
    /// The country of telephone numbers without a country code.
    region: Option<Region>,
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
pub fn read(path: &Path, sender: Sender<'_>, room: Room) -> Result<Contents, FileError> {
    let file = BatchFile::open(path, None)?;
    let batch = Batch {
        account: sender.account.clone(),
        channel: Some(sender.channel),
        origin: Origin::Campaign,
        id: BatchId::parse("demo").expect("letters are an id"),
        priority: None,
        defaults: Vec::new(),
        default_region: sender.region,
    };
    let mut contents = Contents {
        region: sender.region,
        ..Contents::default()
    };
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
    rejections: Vec<RowError>,
    duplicates: u64,
    played: u64,
    remaining: u64,
    /// How long all jobs take at the budget; null when some can never leave.
    seconds_for_all: Option<u64>,
}

impl Contents {
    /// What is known of the file, for scripts.
    #[must_use]
    pub fn facts(&self, ceilings: Ceilings) -> Facts {
        Facts {
            rows: self.rows,
            jobs: self.jobs.iter().sum(),
            rejected: self.rejected,
            rejections: self.rejections.clone(),
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
        let numbers = || {
            self.rejections
                .iter()
                .any(|error| error.field == Field::To.as_str())
        };
        if self.region.is_none() && numbers() {
            lines.push(wrapped(REGION_ADVICE, 0));
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
