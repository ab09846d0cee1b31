//! The jobs of a batch in memory.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::MemoryRecords;
use crate::domain::{AccountId, JobHead};
use crate::ledger::BatchEnd;

impl MemoryRecords {
    /// Whether it may have forgotten how jobs ended that ended at `since` or later.
    #[must_use]
    pub fn has_gap(&self, since: Timestamp) -> bool {
        self.kept().ends.have_gap(since)
    }

    /// How the jobs of a batch ended, and how many of them wait, by reason.
    #[must_use]
    pub fn of_batch(
        &self,
        account: &AccountId,
        batch: &str,
    ) -> (Vec<BatchEnd>, Vec<(String, u64)>) {
        let kept = self.kept();
        let is_of =
            |head: &JobHead| head.account == *account && head.batch_id.as_deref() == Some(batch);
        let mut ends: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for ended in kept.ends.all().filter(|ended| is_of(&ended.head)) {
            let end = (ended.outcome.as_str(), ended.outcome.reason());
            *ends.entry(end).or_default() += 1;
        }
        let of_batch = kept
            .waiting
            .iter()
            .filter(|row| row.job.account == *account && row.job.batch.as_deref() == Some(batch));
        let mut waiting: BTreeMap<String, u64> = BTreeMap::new();
        for row in of_batch {
            let reason = row.job.reason.as_str().to_owned();
            *waiting.entry(reason).or_default() += 1;
        }
        let end = |((outcome, reason), jobs): ((&str, &str), u64)| BatchEnd {
            outcome: outcome.to_owned(),
            reason: (!reason.is_empty()).then(|| reason.to_owned()),
            jobs,
        };
        let ends = ends.into_iter().map(end).collect();
        (ends, waiting.into_iter().collect())
    }
}
