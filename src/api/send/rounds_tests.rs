use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::dispatch::ports::{AccountAnswer, Conclusion, Ended, Gap, WaitingJob};
use crate::domain::{Budget, Decoded, MeterMode, Reserve};
use crate::intake::decode::decode;

/// A meter that forgets to answer for one account.
struct Forgetful;

impl Meter for Forgetful {
    async fn admit(&self, requests: Vec<AccountRequest>) -> Vec<AccountAnswer> {
        let answered = requests.iter().take(1);
        let answer = |request: &AccountRequest| AccountAnswer {
            verdicts: Vec::new(),
            counter: Counter {
                count: 7,
                window_left: Duration::ZERO,
            },
            mode: MeterMode::Shared,
            at_ms: u64::try_from(request.jobs.len()).unwrap(),
        };
        answered.map(answer).collect()
    }

    async fn conclude(&self, _: Vec<Conclusion>) {}
}

fn asked(account: &str) -> Asked {
    Asked {
        account: AccountId::parse(account).unwrap(),
        ceilings: Ceilings::of(
            Budget::per_second(100).unwrap(),
            Reserve::percent(20).unwrap(),
        ),
        job: None,
    }
}

#[tokio::test]
async fn a_missing_answer_is_nobody_elses() {
    let decided = decide(&Forgetful, vec![asked("a"), asked("b"), asked("a")]).await;
    let counts: Vec<_> = decided
        .iter()
        .map(|decision| decision.as_ref().map(|one| one.counter.count))
        .collect();
    assert_eq!(counts, [Some(7), None, Some(7)]);
}

/// Records that cannot be asked about a job named `poison`, and of which a job named `gone` ends all
/// answers. They remember how many were asked about at a time.
#[derive(Default)]
struct Picky(Mutex<Vec<usize>>);

impl Records for Picky {
    fn exist(&self) -> bool {
        true
    }

    async fn facts(&self, inquiries: &[Inquiry<'_>]) -> Result<Vec<Facts>, RecordsError> {
        self.0.lock().unwrap().push(inquiries.len());
        let asks = |id: &str| inquiries.iter().any(|one| one.id.as_str() == id);
        if asks("gone") {
            return Err(RecordsError::Failed);
        }
        if asks("poison") {
            return Err(RecordsError::Unfit);
        }
        Ok(inquiries.iter().map(|_| Facts::default()).collect())
    }

    async fn keep(&self, _: &[WaitingJob]) -> Result<(), RecordsError> {
        Ok(())
    }

    async fn write(&self, _: &[Ended]) -> Result<(), RecordsError> {
        Ok(())
    }

    async fn note_gaps(&self, _: &[Gap]) -> Result<(), RecordsError> {
        Ok(())
    }

    async fn probe(&self) -> Result<(), RecordsError> {
        Ok(())
    }
}

fn jobs(ids: &[&str]) -> Vec<(Arc<Job>, bool)> {
    let job = |id: &&str| {
        let json = format!(
            r#"{{"id":"{id}","account_id":"acme","channel":"sms","to":"+447700900123","body":"x"}}"#
        );
        match decode(json.into(), None).decoded {
            Decoded::Job(job) => (Arc::from(job), true),
            other => panic!("{other:?}"),
        }
    };
    ids.iter().map(job).collect()
}

#[tokio::test]
async fn one_poisoned_question_is_found_by_halving() {
    let records = Picky::default();
    let answers = look_up(
        &records,
        &jobs(&["0", "1", "2", "poison", "4", "5", "6", "7"]),
    )
    .await;
    let wrong = answers.iter().position(Result::is_err);
    assert_eq!(wrong, Some(3));
    assert_eq!(answers.iter().filter(|one| one.is_err()).count(), 1);
    assert!(records.0.lock().unwrap().len() <= 7);
}

#[tokio::test]
async fn a_database_that_goes_away_is_asked_no_further() {
    let records = Picky::default();
    let answers = look_up(&records, &jobs(&["gone", "1", "poison", "3"])).await;
    assert_eq!(answers, vec![Err(RecordsError::Failed); 4]);
    assert_eq!(*records.0.lock().unwrap(), [4]);
}
