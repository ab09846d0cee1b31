//! Taking jobs in.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use lanekeeper::dispatch::ports::{Due, TargetCeiling, WaitReason, WaitingJob};
use lanekeeper::domain::{JobHeaders, Lane};
use lanekeeper::waiting::keep;
use sqlx::PgPool;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::{due_job, job, left, of_account};
use crate::support::postgres::TestDatabase;

/// A job that waits for the ceiling of a number or service.
fn in_turn(id: &str, reason: WaitReason, target: &str, per_second: u32) -> WaitingJob {
    let ceiling = TargetCeiling {
        target: target.into(),
        per_second,
    };
    job(id, reason, Due::InTurn(ceiling))
}

/// When each row is due, in microseconds since the Unix epoch, in that order.
async fn instants(pool: &PgPool) -> Vec<i64> {
    let instants = "SELECT (extract(epoch FROM due_at) * 1000000)::bigint FROM waiting ORDER BY 1";
    sqlx::query_scalar(instants).fetch_all(pool).await.unwrap()
}

fn gaps(instants: &[i64]) -> HashSet<i64> {
    instants.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[tokio::test]
async fn a_row_has_everything_that_its_job_came_with() {
    let database = TestDatabase::create().await;
    let due: Timestamp = "2026-03-29T00:59:59.987Z".parse().unwrap();
    let mut one = job("j-1", WaitReason::QuietHours, Due::At(due));
    one.lane = Lane::Transactional;
    (one.campaign, one.journey, one.batch) = (Some("ü".into()), Some("j".into()), Some("".into()));
    one.headers = JobHeaders {
        attempts: 2,
        sheds: 7,
        enqueued_ms: Some(1_767_322_845_678),
        admitted_ms: Some(1),
    };
    let two = job("j-2", WaitReason::Paused, Due::Resumed);
    keep(database.pool(), &[one, two]).await.unwrap();
    let rows: Vec<String> = sqlx::query_scalar(
        "SELECT concat_ws('|', account_id, id, lane, reason,
            coalesce(to_char(due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS'), '-'),
            coalesce(campaign_id, '-'), coalesce(journey_id, '-'), coalesce(batch_id, '-'),
            convert_from(job, 'UTF8'), attempts, sheds, coalesce(enqueued_ms, 0))
         FROM waiting ORDER BY row_number",
    )
    .fetch_all(database.pool())
    .await
    .unwrap();
    assert_eq!(
        rows,
        [
            r#"acme|j-1|transactional|quiet_hours|2026-03-29 00:59:59.987|ü|j||{"id":"j-1"}|2|7|1767322845678"#,
            r#"acme|j-2|marketing|paused|-|-|-|-|{"id":"j-2"}|0|0|0"#,
        ]
    );
}

#[tokio::test]
async fn a_job_that_waits_again_has_a_row_of_its_own() {
    let database = TestDatabase::create().await;
    for _ in 0..2 {
        keep(database.pool(), &[due_job("j-1")]).await.unwrap();
    }
    assert_eq!(left(&database).await, ["j-1", "j-1"]);
}

#[tokio::test]
async fn all_jobs_of_a_batch_are_kept_or_none() {
    let database = TestDatabase::create().await;
    database
        .execute("ALTER TABLE waiting ADD CHECK (id <> 'bad')")
        .await;
    let turn = |id| in_turn(id, WaitReason::Number, "+1", 1);
    for jobs in [
        vec![due_job("good"), due_job("bad")],
        vec![turn("good"), turn("bad")],
    ] {
        assert!(keep(database.pool(), &jobs).await.is_err());
    }
    assert!(left(&database).await.is_empty());
    let queues: i64 = sqlx::query_scalar("SELECT count(*) FROM ceiling_turns")
        .fetch_one(database.pool())
        .await
        .unwrap();
    assert_eq!(queues, 0, "turns of jobs that are not there");
}

#[tokio::test]
async fn no_text_of_a_publisher_is_too_long() {
    let database = TestDatabase::create().await;
    // Nothing that could be compressed.
    let long: String = (0..200_000).map(|_| fastrand::alphanumeric()).collect();
    let mut one = job("j-1", WaitReason::Paused, Due::Resumed);
    (one.campaign, one.journey, one.batch) = (
        Some(long.as_str().into()),
        Some(long.as_str().into()),
        Some(long.as_str().into()),
    );
    keep(database.pool(), &[one]).await.unwrap();
    assert_eq!(left(&database).await.len(), 1);
}

#[tokio::test]
async fn turns_are_handed_out_at_the_ceilings_rate_whoever_takes_them() {
    let database = TestDatabase::create().await;
    // Long enough that it does not run empty, however slow the machine is.
    database
        .execute(
            "INSERT INTO ceiling_turns
             VALUES ('acme', 'number', '+447700900123', 'marketing', now() + interval '1 hour')",
        )
        .await;
    let mut workers = JoinSet::new();
    for worker in 0..8 {
        let pool = database.pool().clone();
        workers.spawn(async move {
            for batch in 0..5 {
                let jobs: Vec<_> = (0..10)
                    .map(|number| {
                        let id = format!("j-{worker}-{batch}-{number}");
                        in_turn(&id, WaitReason::Number, "+447700900123", 250)
                    })
                    .collect();
                keep(&pool, &jobs).await.unwrap();
            }
        });
    }
    workers.join_all().await;
    let instants = instants(database.pool()).await;
    assert_eq!(instants.len(), 400);
    assert_eq!(gaps(&instants), HashSet::from([4_000]));
}

#[tokio::test]
async fn each_ceiling_has_a_queue_of_its_own() {
    let database = TestDatabase::create().await;
    let jobs = [
        in_turn("1", WaitReason::Number, "same", 1),
        in_turn("2", WaitReason::Service, "same", 1),
        of_account(in_turn("3", WaitReason::Number, "same", 1), "other"),
        in_turn("4", WaitReason::Number, "other", 1),
        in_turn("5", WaitReason::Number, "same", 1),
    ];
    keep(database.pool(), &jobs).await.unwrap();
    let instants = instants(database.pool()).await;
    let spread = instants[3] - instants[0];
    assert!(spread < 900_000, "four first turns within {spread} us");
    let second = instants[4] - instants[0];
    assert!(
        (1_000_000..1_900_000).contains(&second),
        "the second after {second} us"
    );
}

/// A password does not wait for a whole campaign of its sender's.
#[tokio::test]
async fn a_lane_does_not_wait_for_the_others_turns() {
    let database = TestDatabase::create().await;
    let turn = |id: usize| in_turn(&id.to_string(), WaitReason::Number, "+1", 1);
    let campaign: Vec<_> = (0..200).map(turn).collect();
    keep(database.pool(), &campaign).await.unwrap();
    let mut password = turn(200);
    password.lane = Lane::Transactional;
    let before = Timestamp::now().as_microsecond();
    keep(database.pool(), &[password, turn(201)]).await.unwrap();
    let due = "SELECT (extract(epoch FROM due_at) * 1000000)::bigint FROM waiting
               WHERE id IN ('200', '201') ORDER BY id";
    let due: Vec<i64> = sqlx::query_scalar(due)
        .fetch_all(database.pool())
        .await
        .unwrap();
    let wait = Duration::from_micros((due[0] - before).unsigned_abs());
    assert!(
        wait < Duration::from_secs(10),
        "the password waits {wait:?}"
    );
    let wait = Duration::from_micros((due[1] - before).unsigned_abs());
    assert!(
        wait > Duration::from_secs(150),
        "the campaign's last waits {wait:?}"
    );
}

/// When the turns at the ceiling of that number end, in seconds from now; `None`: nobody has one.
async fn taken_for(database: &TestDatabase, number: &str) -> Option<i32> {
    let taken = "SELECT extract(epoch FROM taken_until - now())::integer FROM ceiling_turns
                 WHERE kind = 'number' AND target = $1";
    let taken = sqlx::query_scalar(taken).bind(number);
    taken.fetch_optional(database.pool()).await.unwrap()
}

#[tokio::test]
async fn a_ceiling_that_is_changed_or_removed_forgets_the_turns_at_its_old_rate() {
    let database = TestDatabase::create().await;
    database
        .execute(
            "INSERT INTO accounts (account_id) VALUES ('acme');
             INSERT INTO ceilings SELECT 'acme', 'number', n, 1 FROM unnest('{+1,+2,+3}'::text[]) AS n;
             INSERT INTO ceiling_turns
             SELECT 'acme', kind, n, 'marketing', now() + interval '1 hour'
             FROM unnest('{+1,+2,+3}'::text[]) AS n, unnest('{number,service}'::text[]) AS kind",
        )
        .await;
    database
        .execute(
            "UPDATE ceilings SET per_second = 50 WHERE target = '+1';
             DELETE FROM ceilings WHERE target = '+2';
             UPDATE ceilings SET per_second = 1 WHERE target = '+3'",
        )
        .await;
    assert_eq!(taken_for(&database, "+1").await, None, "changed");
    assert_eq!(taken_for(&database, "+2").await, None, "removed");
    assert!(taken_for(&database, "+3").await > Some(3_000), "as it was");
    let services: i64 =
        sqlx::query_scalar("SELECT count(*) FROM ceiling_turns WHERE kind = 'service'")
            .fetch_one(database.pool())
            .await
            .unwrap();
    assert_eq!(services, 3, "services of the same name");
    database.execute("DELETE FROM accounts").await;
    assert_eq!(
        taken_for(&database, "+3").await,
        None,
        "its account is removed"
    );
}

#[tokio::test]
async fn a_queue_that_has_run_empty_begins_anew_in_a_second() {
    let database = TestDatabase::create().await;
    database
        .execute(
            "INSERT INTO ceiling_turns
             VALUES ('acme', 'number', '+1', 'marketing', now() - interval '1 hour')",
        )
        .await;
    let before = Timestamp::now().as_microsecond();
    let turn = in_turn("1", WaitReason::Number, "+1", 1);
    keep(database.pool(), &[turn]).await.unwrap();
    let after = Timestamp::now().as_microsecond();
    let due = instants(database.pool()).await[0] - 1_000_000;
    assert!((before..=after).contains(&due), "in {} us", due - before);
}

/// Replicas lock the rows of several queues in the same order, whatever the order of their jobs is.
#[tokio::test]
async fn batches_that_need_the_same_queues_in_opposite_orders_do_not_block_each_other() {
    let database = TestDatabase::create().await;
    let barrier = std::sync::Arc::new(Barrier::new(4));
    let mut workers = JoinSet::new();
    for worker in 0..4 {
        let (pool, barrier) = (database.pool().clone(), barrier.clone());
        workers.spawn(async move {
            for round in 0..25 {
                let mut jobs: Vec<_> = (0..20)
                    .map(|number| {
                        let id = format!("{worker}-{round}-{number}");
                        in_turn(&id, WaitReason::Service, &format!("s{number}"), 1_000)
                    })
                    .collect();
                if worker % 2 == 0 {
                    jobs.reverse();
                }
                barrier.wait().await;
                keep(&pool, &jobs).await.unwrap();
            }
        });
    }
    let all = tokio::time::timeout(Duration::from_secs(30), workers.join_all());
    all.await.expect("nobody waits for ever");
    assert_eq!(left(&database).await.len(), 4 * 25 * 20);
}
