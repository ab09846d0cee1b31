use std::collections::HashSet;
use std::sync::Mutex;

use jiff::Timestamp;

use super::super::ports::{Facts, Inquiry, WaitingJob};
use super::super::settle::Settlement;
use super::super::test_support::in_hand;
use super::*;
use crate::domain::Refusal;

const REFUSED: Outcome = Outcome::Refused(Refusal::OptedOut);

/// A ledger that may be away, and that cannot take entries whose id begins with `bad`.
#[derive(Default)]
struct Ledger {
    written: Mutex<HashSet<String>>,
    away: Mutex<bool>,
    gaps: Mutex<Vec<Gap>>,
}

impl Records for Ledger {
    fn exist(&self) -> bool {
        true
    }

    async fn facts(&self, _: &[Inquiry<'_>]) -> Result<Vec<Facts>, RecordsError> {
        Err(RecordsError::Failed)
    }

    async fn keep(&self, _: &[WaitingJob]) -> Result<(), RecordsError> {
        Err(RecordsError::Failed)
    }

    async fn write(&self, ended: &[Ended]) -> Result<(), RecordsError> {
        let mut ids = ended.iter().map(|one| one.head.id.to_string());
        if *self.away.lock().unwrap() {
            return Err(RecordsError::Failed);
        }
        if ids.clone().any(|id| id.starts_with("bad")) {
            return Err(RecordsError::Unfit);
        }
        self.written.lock().unwrap().extend(&mut ids);
        Ok(())
    }

    async fn note_gaps(&self, gaps: &[Gap]) -> Result<(), RecordsError> {
        if *self.away.lock().unwrap() {
            return Err(RecordsError::Failed);
        }
        self.gaps.lock().unwrap().extend_from_slice(gaps);
        Ok(())
    }

    async fn probe(&self) -> Result<(), RecordsError> {
        Ok(())
    }
}

fn ended(id: &str, lane: Lane, outcome: Outcome) -> Ended {
    let mut job = in_hand("a", id);
    job.job.head.lane = lane;
    Settlement::of(job, outcome, Timestamp::UNIX_EPOCH).ended
}

fn many(name: &str, count: usize, lane: Lane, outcome: Outcome) -> Vec<Ended> {
    let id = |number| format!("{name}-{number}");
    let ids = (0..count).map(id);
    ids.map(|id| ended(&id, lane, outcome)).collect()
}

/// Receipts, told apart by their tags.
fn receipts(count: usize) -> Vec<Receipt> {
    let tags = 1..=count as u64;
    let receipt = |tag| Receipt { epoch: 1, tag };
    tags.map(receipt).collect()
}

struct Rig {
    ledger: Arc<Ledger>,
    books: Books<Ledger>,
    telemetry: Telemetry,
}

impl Rig {
    fn new() -> Self {
        let (ledger, telemetry) = (Arc::new(Ledger::default()), Telemetry::unexported());
        Self {
            books: Books::new(Arc::clone(&ledger), telemetry.clone()),
            ledger,
            telemetry,
        }
    }

    fn away(&self, away: bool) {
        *self.ledger.away.lock().unwrap() = away;
    }

    /// Settles jobs while the ledger is away, and says which are acknowledged.
    async fn while_away(&mut self, ended: Vec<Ended>) -> Vec<u64> {
        self.away(true);
        assert!(!self.books.write(&ended).await);
        let receipts = receipts(ended.len());
        let done = self.books.put_off(receipts, ended);
        done.into_iter().map(|receipt| receipt.tag).collect()
    }

    fn written(&self) -> usize {
        self.ledger.written.lock().unwrap().len()
    }

    /// How many jobs each gap is of that was noted.
    fn gaps(&self) -> Vec<u64> {
        let gaps = self.ledger.gaps.lock().unwrap();
        gaps.iter().map(|gap| gap.jobs).collect()
    }

    fn lost(&self) -> u64 {
        let counts = self.telemetry.counts();
        counts
            .ledger_lost
            .load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Otherwise the same entries would be tried each second for ever, and marketing stop for good.
#[tokio::test(start_paused = true)]
async fn one_entry_that_the_database_cannot_take_keeps_out_no_other() {
    let mut rig = Rig::new();
    let mut batch = many("good", 300, Lane::Marketing, Outcome::Dispatched);
    batch[17] = ended("bad-1", Lane::Marketing, REFUSED);
    batch[299] = ended("bad-2", Lane::Transactional, Outcome::Dispatched);
    assert!(rig.books.write(&batch).await);
    assert!(rig.books.keep_up());
    assert_eq!((rig.written(), rig.lost()), (298, 2));
}

#[tokio::test(start_paused = true)]
async fn it_keeps_out_no_other_when_it_was_put_off_either() {
    let mut rig = Rig::new();
    let mut batch = many("good", 20, Lane::Marketing, REFUSED);
    batch[3] = ended("bad", Lane::Marketing, REFUSED);
    assert!(rig.while_away(batch).await.is_empty());
    rig.away(false);
    assert_eq!(rig.books.catch_up().await, receipts(20));
    assert!(rig.books.keep_up());
    assert_eq!((rig.written(), rig.lost()), (19, 1));
}

/// An error that says nothing of a value is no reason to give an entry up.
#[tokio::test(start_paused = true)]
async fn while_the_ledger_is_away_nothing_is_given_up() {
    let mut rig = Rig::new();
    rig.while_away(many("j", 20, Lane::Transactional, REFUSED))
        .await;
    assert!(rig.books.catch_up().await.is_empty());
    assert!(!rig.books.keep_up());
    assert_eq!((rig.books.left(), rig.lost()), (20, 0));
}

/// Left with the broker, a job that was sent would come again when its claim is forgotten.
#[tokio::test(start_paused = true)]
async fn what_was_sent_is_acknowledged_while_the_ledger_is_away() {
    let mut rig = Rig::new();
    let batch = vec![
        ended("1", Lane::Marketing, Outcome::Dispatched),
        ended("2", Lane::Marketing, REFUSED),
        ended("3", Lane::Transactional, Outcome::Dispatched),
        ended("4", Lane::Transactional, REFUSED),
    ];
    assert_eq!(rig.while_away(batch).await, [1, 3, 4]);
    assert_eq!(rig.books.left(), 4);
}

#[tokio::test(start_paused = true)]
async fn when_there_is_no_room_marketing_stays_with_the_broker() {
    let mut rig = Rig::new();
    let full = many("j", BUFFER, Lane::Transactional, Outcome::Dispatched);
    rig.while_away(full).await;
    let more = vec![
        ended("m", Lane::Marketing, Outcome::Dispatched),
        ended("t", Lane::Transactional, Outcome::Dispatched),
    ];
    assert_eq!(rig.while_away(more).await, [2]);
    assert_eq!((rig.books.left(), rig.lost()), (BUFFER + 1, 1));
}

/// New ends are settled between the batches.
#[tokio::test(start_paused = true)]
async fn catching_up_takes_one_batch_at_a_time_without_a_pause() {
    let mut rig = Rig::new();
    rig.while_away(many("t", 2 * BATCH, Lane::Transactional, REFUSED))
        .await;
    rig.while_away(many("m", BATCH, Lane::Marketing, REFUSED))
        .await;
    rig.away(false);
    for (round, acknowledged) in [(1, 0), (2, 0), (3, BATCH)] {
        assert_eq!(rig.books.catch_up().await.len(), acknowledged);
        assert_eq!(rig.written(), round * BATCH);
        assert_eq!(rig.books.left(), (3 - round) * BATCH);
        let next = rig.books.next_try();
        assert_eq!(next, (round < 3).then(Instant::now));
    }
    assert!(rig.books.keep_up());
}

/// Whoever counts a batch's ends would wait for them for ever.
#[tokio::test(start_paused = true)]
async fn what_found_no_room_is_noted_as_one_gap_once_the_ledger_is_back() {
    let mut rig = Rig::new();
    let sent = |name, count| many(name, count, Lane::Transactional, Outcome::Dispatched);
    rig.while_away(sent("j", BUFFER)).await;
    rig.while_away(sent("k", 2)).await;
    let mut later = sent("l", 1);
    later[0].settled_at = Timestamp::constant(9, 0);
    rig.while_away(later).await;
    rig.books.catch_up().await;
    assert_eq!(rig.gaps(), [0; 0], "it is away");
    rig.away(false);
    while rig.books.next_try().is_some() {
        rig.books.catch_up().await;
    }
    let noted = rig.ledger.gaps.lock().unwrap().clone();
    let gap = Gap {
        account: Some(crate::domain::AccountId::parse("a").unwrap()),
        began_at: Timestamp::UNIX_EPOCH,
        ended_at: Timestamp::constant(9, 0),
        jobs: 3,
    };
    assert_eq!(noted, [gap]);
}

#[tokio::test(start_paused = true)]
async fn what_the_database_cannot_take_is_noted_too_and_keeps_up_no_lane() {
    let mut rig = Rig::new();
    for (round, expected) in [(1, vec![1]), (2, vec![1, 1])] {
        let bad = ended(&format!("bad-{round}"), Lane::Marketing, REFUSED);
        assert!(rig.books.write(&[bad]).await && rig.books.keep_up());
        let due = rig.books.next_try().expect("there is something to note");
        assert_eq!(due > Instant::now(), round > 1, "few notes in a short time");
        tokio::time::sleep_until(due).await;
        rig.books.catch_up().await;
        assert_eq!(rig.gaps(), expected);
        assert_eq!(rig.books.next_try(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_at_the_end_is_noted_where_the_ledger_still_hears_of_it() {
    let mut rig = Rig::new();
    rig.while_away(many("j", 5, Lane::Marketing, Outcome::Dispatched))
        .await;
    rig.away(false);
    let ledger = Arc::clone(&rig.ledger);
    rig.books.close().await;
    assert_eq!(ledger.gaps.lock().unwrap()[0].jobs, 5);
}
