//! A partition for each day, made ahead and dropped when it is old.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lanekeeper::clock::SystemClock;
use lanekeeper::dispatch::ports::Gap;
use lanekeeper::domain::{AccountId, Outcome};
use lanekeeper::ledger::{Maintained, Maintenance, Obstacle, has_gap, maintain, note_gaps};
use lanekeeper::telemetry::Telemetry;
use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{ended, rows, write_all};
use crate::support::eventually;
use crate::support::postgres::TestDatabase;

const DAY: Duration = Duration::from_secs(86_400);

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

async fn partitions(pool: &PgPool) -> Vec<String> {
    let names = "SELECT relname::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
         WHERE inhparent = 'ledger'::regclass AND relname <> 'ledger_other' ORDER BY 1";
    sqlx::query_scalar(names).fetch_all(pool).await.unwrap()
}

async fn without_obstacle(pool: &PgPool, now: &str, retention: Option<Duration>) -> Maintained {
    let maintained = maintain(pool, at(now), retention).await.unwrap();
    assert_eq!(maintained.obstacle, None);
    maintained
}

/// Where there is no room for new days, dropping old ones makes some.
#[tokio::test]
async fn old_days_are_dropped_although_no_new_one_can_be_made() {
    let database = TestDatabase::create().await;
    without_obstacle(database.pool(), "2026-02-01T12:00:00Z", None).await;
    // A table brings a type of its name with it.
    database
        .execute("CREATE DOMAIN ledger_2026_03_10 AS integer")
        .await;
    let now = at("2026-03-10T12:00:00Z");
    assert!(maintain(database.pool(), now, Some(DAY)).await.is_err());
    assert!(partitions(database.pool()).await.is_empty());
}

#[tokio::test]
async fn today_and_three_more_days_have_one() {
    let database = TestDatabase::create().await;
    without_obstacle(database.pool(), "2026-02-27T23:59:59Z", None).await;
    let made = [
        "ledger_2026_02_27",
        "ledger_2026_02_28",
        "ledger_2026_03_01",
        "ledger_2026_03_02",
    ];
    assert_eq!(partitions(database.pool()).await, made);
    let again = without_obstacle(database.pool(), "2026-02-28T00:00:00Z", None).await;
    assert_eq!(again.made, [jiff::civil::date(2026, 3, 3)]);

    write_all(
        &database,
        &[
            ended("j-1", Outcome::Dispatched, "2026-02-28T23:59:59.999Z"),
            ended("j-2", Outcome::Dispatched, "2026-03-01T00:00:00Z"),
            ended("j-3", Outcome::Dispatched, "2026-04-01T00:00:00Z"),
        ],
    )
    .await;
    assert_eq!(
        rows(&database, "id, tableoid::regclass").await,
        [
            "j-1|ledger_2026_02_28",
            "j-2|ledger_2026_03_01",
            "j-3|ledger_other"
        ]
    );
}

#[tokio::test]
async fn old_days_go_and_with_them_old_rows_of_the_default_partition() {
    let database = TestDatabase::create().await;
    let pool = database.pool();
    without_obstacle(pool, "2026-03-01T12:00:00Z", None).await;
    write_all(
        &database,
        &[
            ended("old", Outcome::Dispatched, "2026-03-01T12:00:00Z"),
            ended("kept", Outcome::Dispatched, "2026-03-04T12:00:00Z"),
            ended("other-old", Outcome::Dispatched, "2026-02-01T12:00:00Z"),
            ended("other-kept", Outcome::Dispatched, "2026-03-09T12:00:00Z"),
        ],
    )
    .await;
    let gap = |ended_at: &str| Gap {
        account: Some(AccountId::parse("acme").unwrap()),
        began_at: at("2026-02-01T00:00:00Z"),
        ended_at: at(ended_at),
        jobs: 7,
    };
    let gaps = ["2026-03-02T12:00:00Z", "2026-03-06T12:00:01.25Z"].map(gap);
    note_gaps(pool, &gaps).await.unwrap();
    let maintained = without_obstacle(pool, "2026-03-07T01:00:00Z", Some(3 * DAY)).await;
    assert_eq!((maintained.dropped.len(), maintained.swept), (3, 1));
    assert_eq!(rows(&database, "id").await, ["kept", "other-kept"]);
    let mut connection = pool.acquire().await.unwrap();
    let mut known = async |account: &str, since: &str| {
        let asking = has_gap(&mut connection, account, at(since));
        asking.await.unwrap()
    };
    assert!(known("acme", "2026-03-06T12:00:01.250Z").await);
    assert!(!known("acme", "2026-03-06T12:00:02Z").await);
    assert!(!known("other", "2026-01-01T00:00:00Z").await);
    // What was never written is forgotten with what was written at that time.
    let kept = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM ledger_gaps");
    assert_eq!(kept.fetch_one(pool).await.unwrap(), 1);
    let first = partitions(pool).await.remove(0);
    assert_eq!(
        first, "ledger_2026_03_04",
        "the last day within the retention"
    );
}

#[tokio::test]
async fn without_a_retention_nothing_goes() {
    let database = TestDatabase::create().await;
    without_obstacle(database.pool(), "2020-01-01T00:00:00Z", None).await;
    let maintained = without_obstacle(database.pool(), "2026-03-01T00:00:00Z", None).await;
    assert!(maintained.dropped.is_empty());
}

/// Rows came before the partition: the day stays where it is, and nothing is lost or moved.
#[tokio::test]
async fn a_day_with_rows_in_the_default_partition_stays_there() {
    let database = TestDatabase::create().await;
    let early = [ended("early", Outcome::Dispatched, "2026-03-01T00:00:01Z")];
    write_all(&database, &early).await;
    let maintained = without_obstacle(database.pool(), "2026-03-01T00:00:02Z", None).await;
    assert_eq!(maintained.made.len(), 3);
    write_all(
        &database,
        &[ended("late", Outcome::Dispatched, "2026-03-01T00:00:03Z")],
    )
    .await;
    write_all(&database, &early).await;
    assert_eq!(
        rows(&database, "id, tableoid::regclass").await,
        ["early|ledger_other", "late|ledger_other"]
    );
}

/// To make a partition the server reads the default one while everybody waits: not if it is large.
#[tokio::test]
async fn no_partition_is_made_beside_a_default_one_that_is_large() {
    let database = TestDatabase::create().await;
    database
        .execute(
            "ALTER TABLE ledger_other ALTER COLUMN detail SET STORAGE PLAIN;
             INSERT INTO ledger (account_id, id, day, lane, lane_rule, channel, outcome, detail,
                attempts, sheds, settled_at)
             SELECT 'acme', 'j-' || n, '2026-01-01', 'marketing', 'default', 'sms', 'expired',
                repeat('x', 7000), 0, 0, '2026-01-01T00:00:00Z' FROM generate_series(1, 8300) AS n",
        )
        .await;
    let now = at("2026-03-01T00:00:00Z");
    let maintained = maintain(database.pool(), now, Some(DAY)).await.unwrap();
    assert_eq!(maintained.obstacle, Some(Obstacle::Crowded));
    assert_eq!(
        (maintained.made.len(), maintained.swept),
        (0, 8_300),
        "old rows go all the same"
    );
}

#[tokio::test]
async fn ten_workers_may_do_it_at_once_while_others_write() {
    let database = TestDatabase::create().await;
    for day in 1..=5 {
        let mut all = JoinSet::new();
        for worker in 0..10 {
            let pool = database.pool().clone();
            let now = at(&format!("2026-03-0{day}T00:00:00Z"));
            all.spawn(async move {
                if worker % 5 == 0 {
                    let one = ended(
                        &format!("j-{day}-{worker}"),
                        Outcome::Dispatched,
                        &now.to_string(),
                    );
                    let form = lanekeeper::ledger::RecipientForm::Absent;
                    lanekeeper::ledger::write(&pool, &[one], &form)
                        .await
                        .unwrap();
                }
                maintain(&pool, now, Some(2 * DAY)).await.unwrap()
            });
        }
        let done = all.join_all().await;
        let harmless = |one: &Maintained| one.obstacle.is_none_or(|why| why != Obstacle::Forbidden);
        assert!(done.iter().all(harmless));
    }
    without_obstacle(database.pool(), "2026-03-05T00:00:00Z", Some(2 * DAY)).await;
    let all = partitions(database.pool()).await;
    assert_eq!(all.last().unwrap(), "ledger_2026_03_08");
    assert!(all[0].as_str() >= "ledger_2026_03_03");
}

/// Somebody reads the ledger for long, as a backup does: changes of partitions wait for later, and
/// those who write wait for a moment at most.
#[tokio::test]
async fn a_long_reader_puts_it_off_and_holds_up_nobody() {
    let database = TestDatabase::create().await;
    let pool = database.pool();
    let mut reader = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE ledger_other IN ACCESS SHARE MODE")
        .execute(&mut *reader)
        .await
        .unwrap();
    let began = Instant::now();
    let maintaining = maintain(pool, at("2026-03-01T00:00:00Z"), None);
    let writing = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let one = [ended("j-1", Outcome::Dispatched, "2026-03-02T00:00:00Z")];
        let asked = Instant::now();
        write_all(&database, &one).await;
        asked.elapsed()
    };
    let (maintained, waited) = tokio::join!(maintaining, writing);
    assert_eq!(maintained.unwrap().obstacle, Some(Obstacle::InUse));
    assert!(began.elapsed() < Duration::from_secs(3));
    assert!(
        waited < Duration::from_millis(800),
        "a writer waited {waited:?}"
    );

    reader.rollback().await.unwrap();
    without_obstacle(pool, "2026-03-03T00:00:00Z", None).await;
}

#[tokio::test]
async fn a_user_without_the_right_to_make_tables_is_told_and_does_no_harm() {
    let database = TestDatabase::create().await;
    let role = format!("{}_writer", database.name());
    database
        .execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'x';
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}"
        ))
        .await;
    let mut url = url::Url::parse(database.url()).unwrap();
    url.set_username(&role).unwrap();
    url.set_password(Some("x")).unwrap();
    let options = PgPoolOptions::new().max_connections(2);
    let writer = options.connect(url.as_str()).await.unwrap();
    let maintained = maintain(&writer, at("2026-03-01T00:00:00Z"), Some(DAY))
        .await
        .unwrap();
    assert_eq!(maintained.obstacle, Some(Obstacle::Forbidden));
    let one = [ended("j-1", Outcome::Dispatched, "2026-03-01T00:00:00Z")];
    let form = lanekeeper::ledger::RecipientForm::Absent;
    lanekeeper::ledger::write(&writer, &one, &form)
        .await
        .unwrap();
    assert_eq!(
        rows(&database, "tableoid::regclass").await,
        ["ledger_other"]
    );
    writer.close().await;
    database
        .execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .await;
}

#[tokio::test]
async fn a_worker_makes_them_as_it_starts_and_stops_when_told() {
    let database = TestDatabase::create().await;
    let stop = CancellationToken::new();
    let maintenance = Maintenance {
        pool: database.pool().clone(),
        clock: Arc::new(SystemClock),
        retention: Some(DAY),
        telemetry: Telemetry::unexported(),
    };
    let running = tokio::spawn(maintenance.run(stop.clone()));
    let made = async || partitions(database.pool()).await.len() == 4;
    eventually("four partitions", Duration::from_secs(10), made).await;
    stop.cancel();
    timeout(Duration::from_secs(1), running)
        .await
        .unwrap()
        .unwrap();
}
