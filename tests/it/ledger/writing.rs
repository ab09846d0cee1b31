//! One row for each job, whatever is told how often and by whom.

use std::sync::Arc;
use std::time::Duration;

use lanekeeper::dispatch::ports::RecordsError;
use lanekeeper::domain::{Failure, Field, Outcome, Refusal};
use lanekeeper::ledger::{RecipientForm, write};
use lanekeeper::postgres::records_error;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{ended, repeated, rows, write_all};
use crate::support::heavy;
use crate::support::postgres::TestDatabase;

const NOON: &str = "2026-03-01T12:00:00Z";

#[tokio::test]
async fn a_row_tells_everything_to_the_millisecond() {
    let database = TestDatabase::create().await;
    let mut one = ended(
        "j-1",
        Outcome::Refused(Refusal::QuietHours),
        "2026-03-01T23:59:59.999Z",
    );
    one.next_allowed_at = Some("2026-03-02T08:00:00Z".parse().unwrap());
    one.detail = Some("outside 08:00-21:00".into());
    let mut bare = ended("j-2", Outcome::Expired, "2026-03-02T00:00:00Z");
    (
        bare.carrier,
        bare.carrier_ref,
        bare.admission,
        bare.recipient,
    ) = (None, None, None, None);
    (bare.head.origin, bare.head.enqueued_at) = (None, None);
    (bare.head.campaign_id, bare.head.batch_id) = (None, None);
    write_all(&database, &[one, bare]).await;
    let instant = |name| {
        format!("coalesce(to_char({name} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS'), '-')")
    };
    let columns = [
        "account_id, id, day, lane, lane_rule, coalesce(origin, '-'), coalesce(campaign_id, '-'),
         coalesce(journey_id, '-'), coalesce(batch_id, '-'), channel, coalesce(recipient, '-'),
         outcome, coalesce(reason, '-'), coalesce(detail, '-'), coalesce(carrier, '-'),
         coalesce(carrier_ref, '-'), attempts, sheds, coalesce(admitted_as, -1),
         coalesce(meter, '-')"
            .to_owned(),
        instant("enqueued_at"),
        instant("admitted_at"),
        instant("settled_at"),
        instant("next_allowed_at"),
    ];
    assert_eq!(
        rows(&database, &columns.join(", ")).await,
        [
            "acme|j-1|2026-03-01|marketing|priority|campaign|spring|-|b-7|sms|***0123|refused|\
             quiet_hours|outside 08:00-21:00|default|ref-1|1|3|17|shared|2026-03-01 08:00:00.001|\
             2026-03-01 09:00:00.500|2026-03-01 23:59:59.999|2026-03-02 08:00:00.000",
            "acme|j-2|2026-03-02|marketing|priority|-|-|-|-|sms|-|expired|-|-|-|-|1|3|-1|-|-|-|\
             2026-03-02 00:00:00.000|-",
        ]
    );
}

#[tokio::test]
async fn recipients_are_kept_in_the_form_of_the_settings() {
    let database = TestDatabase::create().await;
    let key = b"a key of the operator".as_slice().into();
    let forms = [
        RecipientForm::Hashed { key },
        RecipientForm::Masked,
        RecipientForm::Absent,
    ];
    for (number, form) in forms.iter().enumerate() {
        let one = ended(&format!("j-{number}"), Outcome::Dispatched, NOON);
        write(database.pool(), &[one], form).await.unwrap();
    }
    let kept = rows(&database, "coalesce(recipient, '-')").await;
    assert_eq!((kept[0].len(), &*kept[1], &*kept[2]), (32, "***0123", "-"));
    let everything = rows(&database, "ledger::text").await.concat();
    assert!(!everything.contains("+447700900123"));
}

#[tokio::test]
async fn doing_it_twice_changes_nothing() {
    let database = TestDatabase::create().await;
    let batch = [
        ended("j-1", Outcome::Dispatched, NOON),
        ended("j-2", Outcome::Cancelled, NOON),
    ];
    write_all(&database, &batch).await;
    let before = rows(&database, "ledger::text, xmin::text").await;
    write_all(&database, &batch).await;
    assert_eq!(rows(&database, "ledger::text, xmin::text").await, before);
}

/// What is known, what is told next on the same day, and what then stands there.
#[tokio::test]
async fn dispatched_wins_and_otherwise_the_first() {
    let refused = Outcome::Refused(Refusal::OptedOut);
    let failed = Outcome::Failed(Failure::CarrierRejected);
    let table = [
        (failed, Outcome::Dispatched, "dispatched"),
        (Outcome::Dispatched, failed, "dispatched"),
        (refused, failed, "refused"),
        (failed, refused, "failed"),
        (Outcome::Dispatched, Outcome::Dispatched, "dispatched"),
        (Outcome::Expired, Outcome::Dispatched, "dispatched"),
        (
            Outcome::Cancelled,
            Outcome::Refused(Refusal::Invalid(Field::To)),
            "cancelled",
        ),
    ];
    for (number, (first, second, stands)) in table.into_iter().enumerate() {
        for together in [true, false] {
            let database = TestDatabase::create().await;
            let first = ended("j-1", first, NOON);
            let mut second = ended("j-1", second, NOON);
            second.sheds = 99;
            if together {
                write_all(&database, &[first, second]).await;
            } else {
                write_all(&database, &[first]).await;
                write_all(&database, &[second]).await;
            }
            assert_eq!(
                rows(&database, "outcome").await,
                [stands],
                "row {number}, {together}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_told_again_on_another_day_has_no_second_row() {
    let database = TestDatabase::create().await;
    let first = ended("j-1", Outcome::Dispatched, "2026-03-01T23:59:59.999Z");
    let again = repeated(ended("j-1", Outcome::Dispatched, "2026-03-02T00:00:01Z"));
    let unknown = repeated(ended("j-2", Outcome::Dispatched, "2026-03-02T00:00:01Z"));
    let mut other = repeated(ended("j-1", Outcome::Dispatched, "2026-03-02T00:00:01Z"));
    other.head.account = lanekeeper::domain::AccountId::parse("other").unwrap();
    write_all(&database, &[first]).await;
    write_all(&database, &[again, unknown, other]).await;
    assert_eq!(
        rows(&database, "account_id, id, day").await,
        [
            "acme|j-1|2026-03-01",
            "acme|j-2|2026-03-02",
            "other|j-1|2026-03-02"
        ]
    );
}

#[tokio::test]
async fn a_nul_fails_no_batch() {
    let database = TestDatabase::create().await;
    let mut one = ended("j-1", Outcome::Failed(Failure::CarrierRejected), NOON);
    one.detail = Some("status 400: a\0b".into());
    one.carrier_ref = Some("\0".into());
    one.head.campaign_id = Some("c\0".into());
    one.head.channel = "s\0ms".into();
    write_all(&database, &[one, ended("j-2", Outcome::Dispatched, NOON)]).await;
    assert_eq!(
        rows(&database, "detail, carrier_ref, campaign_id, channel").await,
        [
            "status 400: a\u{fffd}b|\u{fffd}|c\u{fffd}|s\u{fffd}ms",
            "ref-1|spring|sms"
        ]
    );
}

/// Such an entry is left out and the others are written: it must be told from an outage.
#[tokio::test]
async fn an_instant_that_the_database_does_not_know_is_an_unfit_value() {
    let database = TestDatabase::create().await;
    let mut one = ended("j-1", Outcome::Dispatched, NOON);
    one.head.enqueued_at = Some("-009977-01-01T00:00:00Z".parse().unwrap());
    let error = write(database.pool(), &[one], &RecipientForm::Absent).await;
    assert_eq!(records_error(&error.unwrap_err()), RecordsError::Unfit);
    // The first and the last that are read from a job.
    let mut edges = ["j-2", "j-3"].map(|id| ended(id, Outcome::Dispatched, NOON));
    edges[0].head.enqueued_at = Some("0000-01-01T00:00:00+14:00".parse().unwrap());
    edges[1].head.enqueued_at = Some(jiff::Timestamp::MAX);
    write_all(&database, &edges).await;
}

/// Replicas that tell of the same jobs in opposite orders do not block each other.
#[tokio::test]
async fn many_may_write_the_same_at_once() {
    let database = TestDatabase::create().await;
    let barrier = Arc::new(Barrier::new(4));
    let mut writers = JoinSet::new();
    for writer in 0..4 {
        let (pool, barrier) = (database.pool().clone(), Arc::clone(&barrier));
        writers.spawn(async move {
            for round in 0..20 {
                let outcome = if writer % 2 == 0 {
                    Outcome::Dispatched
                } else {
                    Outcome::Expired
                };
                let mut batch: Vec<_> = (0..50)
                    .map(|number| ended(&format!("j-{round}-{number}"), outcome, NOON))
                    .collect();
                if writer >= 2 {
                    batch.reverse();
                }
                barrier.wait().await;
                write(&pool, &batch, &RecipientForm::Absent).await.unwrap();
            }
        });
    }
    let all = tokio::time::timeout(Duration::from_secs(30), writers.join_all());
    all.await.expect("nobody waits for ever");
    let outcomes = rows(&database, "outcome").await;
    assert_eq!(outcomes.len(), 1_000);
    assert!(outcomes.iter().all(|outcome| outcome == "dispatched"));
}

#[tokio::test]
#[ignore = "a measurement: run it alone, in a release build, with --nocapture"]
async fn rows_per_second() {
    let _heavy = heavy().await;
    let database = TestDatabase::create().await;
    let now = jiff::Timestamp::now();
    lanekeeper::ledger::maintain(database.pool(), now, None)
        .await
        .unwrap();
    for size in [256, 1_024] {
        let batches: Vec<Vec<_>> = (0..100)
            .map(|batch| {
                let of = |number| format!("j-{size}-{batch}-{number}");
                let one = |number| ended(&of(number), Outcome::Dispatched, &now.to_string());
                (0..size).map(one).collect()
            })
            .collect();
        let began = Instant::now();
        for batch in &batches {
            write(database.pool(), batch, &RecipientForm::Absent)
                .await
                .unwrap();
        }
        let rate = f64::from(100 * size) / began.elapsed().as_secs_f64();
        println!("{size} rows at a time: {rate:.0} rows/s");
    }
}
