//! Jobs that wait, on their way into the database.

use std::sync::Mutex;

use super::super::ports::{
    Due, Ended, EventBatch, Facts, Gap, Inquiry, PublishError, Requeue, WaitReason,
};
use super::super::test_support::in_hand;
use super::*;
use crate::domain::Payload;

/// Remembers what was acknowledged.
#[derive(Default)]
struct Acknowledged(Mutex<Vec<u64>>);

impl Acknowledged {
    fn tags(&self) -> Vec<u64> {
        self.0.lock().unwrap().clone()
    }
}

impl Broker for Acknowledged {
    async fn requeue(&self, jobs: Vec<Requeue>) -> Vec<Result<(), PublishError>> {
        assert!(jobs.is_empty(), "jobs that wait are not published");
        Vec::new()
    }

    async fn bury(&self, _: Vec<DeadLetter>) -> Vec<Result<(), PublishError>> {
        unreachable!("nothing is dead")
    }

    async fn announce(&self, _: Vec<EventBatch>) -> Vec<Result<(), PublishError>> {
        unreachable!("nothing has ended")
    }

    fn take(&self, _: Lane, _: bool) {}

    fn give_back(&self, _: Vec<Receipt>) {}

    fn acknowledge(&self, receipts: Vec<Receipt>) {
        let tags = receipts.into_iter().map(|receipt| receipt.tag);
        self.0.lock().unwrap().extend(tags);
    }

    fn is_live(&self, _: &Receipt) -> bool {
        true
    }
}

/// A statement: how many jobs it wrote, and how many were acknowledged by then.
type Statement = (usize, usize);

/// A table whose second statement may fail.
struct Table {
    broker: Arc<Acknowledged>,
    statements: Mutex<Vec<Statement>>,
    second: Result<(), RecordsError>,
}

impl Records for Table {
    fn exist(&self) -> bool {
        true
    }

    async fn facts(&self, _: &[Inquiry<'_>]) -> Result<Vec<Facts>, RecordsError> {
        unreachable!("nobody asks")
    }

    async fn keep(&self, jobs: &[WaitingJob]) -> Result<(), RecordsError> {
        let acknowledged = self.broker.tags().len();
        let mut statements = self.statements.lock().unwrap();
        statements.push((jobs.len(), acknowledged));
        if statements.len() == 2 {
            return self.second;
        }
        Ok(())
    }

    async fn write(&self, _: &[Ended]) -> Result<(), RecordsError> {
        unreachable!("nothing has ended")
    }

    async fn note_gaps(&self, _: &[Gap]) -> Result<(), RecordsError> {
        unreachable!("nothing has ended")
    }

    async fn probe(&self) -> Result<(), RecordsError> {
        Ok(())
    }
}

/// What became of jobs that left together.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    statements: Vec<Statement>,
    acknowledged: Vec<u64>,
    still_here: Vec<u64>,
}

/// So many jobs of so many bytes leave together to wait.
async fn leave(jobs: u64, bytes: usize, second: Result<(), RecordsError>) -> Left {
    let broker = Arc::new(Acknowledged::default());
    let records = Arc::new(Table {
        broker: Arc::clone(&broker),
        statements: Mutex::default(),
        second,
    });
    let departures = Departures {
        broker: Arc::clone(&broker),
        records: Arc::clone(&records),
        telemetry: Telemetry::unexported(),
    };
    let (depart, departing) = mpsc::unbounded_channel();
    for tag in 0..jobs {
        let mut job = in_hand("acme", &format!("j-{tag}"));
        job.receipt.tag = tag;
        job.job.payload = Payload::new(vec![b'x'; bytes]);
        let why = Departure::Wait(WaitReason::Paused, Due::Resumed);
        depart.send(Departing::Job(job, why)).unwrap();
    }
    drop(depart);
    let (here, mut still_here) = mpsc::unbounded_channel::<StillHere>();
    departures.run(departing, here).await;
    let mut left = Left {
        statements: records.statements.lock().unwrap().clone(),
        acknowledged: broker.tags(),
        still_here: Vec::new(),
    };
    while let Some(StillHere(departing)) = still_here.recv().await {
        if let Departing::Job(job, _) = departing {
            left.still_here.push(job.receipt.tag);
        }
    }
    left
}

fn all(tags: std::ops::Range<u64>) -> Vec<u64> {
    tags.collect()
}

#[tokio::test]
async fn large_jobs_are_written_two_mebibytes_at_a_time_and_each_part_is_let_go() {
    let left = leave(20, 256 << 10, Ok(())).await;
    assert_eq!(left.statements, [(8, 0), (8, 8), (4, 16)]);
    assert_eq!(left.acknowledged, all(0..20));
    assert_eq!(left.still_here, all(0..0));
}

#[tokio::test]
async fn small_jobs_are_written_together() {
    let left = leave(256, 300, Ok(())).await;
    assert_eq!(left.statements, [(256, 0)]);
}

#[tokio::test]
async fn a_database_that_does_not_answer_is_not_asked_again_at_once() {
    for why in [RecordsError::TimedOut, RecordsError::Unreachable] {
        let left = leave(20, 256 << 10, Err(why)).await;
        assert_eq!(left.statements.len(), 2, "{why}");
        assert_eq!(left.acknowledged, all(0..8), "{why}");
        assert_eq!(left.still_here, all(8..20), "{why}");
    }
}

#[tokio::test]
async fn a_job_that_cannot_be_written_keeps_only_its_own_part_here() {
    let left = leave(20, 256 << 10, Err(RecordsError::Failed)).await;
    assert_eq!(left.statements.len(), 3);
    assert_eq!(left.acknowledged, [all(0..8), all(16..20)].concat());
    assert_eq!(left.still_here, all(8..16));
}
