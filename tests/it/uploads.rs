//! How far uploads have come: the same in PostgreSQL and in memory.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lanekeeper::batch::{BatchId, Digest, RowError};
use lanekeeper::clock::SystemClock;
use lanekeeper::domain::AccountId;
use lanekeeper::enqueueing::{Counts, Mark};
use lanekeeper::uploads::{
    Begun, Contents, Difference, End, LEASE, Lease, MemoryUploads, Note, PgUploads, Place, Uploads,
    forget_old,
};

use tokio_util::sync::CancellationToken;

use crate::support::eventually;
use crate::support::postgres::TestDatabase;

fn contents(content: &str, options: &str) -> Contents {
    let digest = |text: &str| Digest::of(text.as_bytes());
    Contents::new(digest(content), digest(options))
}

fn mark(line: u64, queued: u64, rejected: u64) -> Mark {
    let counts = Counts {
        queued,
        rejected,
        ..Counts::default()
    };
    Mark { line, counts }
}

fn rejected(line: u64) -> RowError {
    RowError {
        line,
        field: "to".to_owned(),
        reason: "expected another".to_owned(),
    }
}

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 123_000_000);

/// A batch and two runs of it.
struct Runs {
    account: AccountId,
    batch: BatchId,
    leases: [Lease; 2],
}

impl Runs {
    fn new() -> Self {
        Self {
            account: AccountId::parse("acme").unwrap(),
            batch: BatchId::parse("spring").unwrap(),
            leases: [Lease::new(), Lease::new()],
        }
    }

    fn place(&self, run: usize) -> Place<'_> {
        Place {
            account: &self.account,
            batch: &self.batch,
            lease: self.leases[run],
        }
    }
}

async fn begin(uploads: &Uploads, place: &Place<'_>, contents: &Contents) -> Begun {
    uploads.begin(place, contents, NOW).await.unwrap()
}

async fn note(uploads: &Uploads, place: &Place<'_>, note: Note<'_>) -> bool {
    uploads.note(place, &note).await.unwrap()
}

async fn lines(uploads: &Uploads, runs: &Runs, behind: u64, most: u32) -> Vec<u64> {
    let rows = uploads.rejections(&runs.account, "spring", behind, most);
    rows.await
        .unwrap()
        .into_iter()
        .map(|row| row.line)
        .collect()
}

async fn behaves(uploads: &Uploads) {
    let (runs, own) = (Runs::new(), contents("rows", "options"));
    let (first, second) = (runs.place(0), runs.place(1));
    assert_eq!(uploads.find(&runs.account, "spring").await.unwrap(), None);
    let Begun::Queue(start) = begin(uploads, &first, &own).await else {
        panic!("nobody has it")
    };
    assert_eq!((start.enqueued_at, start.mark), (NOW, Mark::default()));
    let Begun::Busy(upload) = begin(uploads, &second, &own).await else {
        panic!("the first run has it")
    };
    assert!(upload.busy_for.is_some_and(|left| left <= LEASE));

    let bad = [rejected(3), rejected(7)];
    let noted = Note {
        mark: mark(10, 8, 2),
        rejected: &bad,
        end: None,
    };
    assert!(!note(uploads, &second, noted).await, "it is not its own");
    assert_eq!(lines(uploads, &runs, 0, 10).await, [0; 0]);
    for _ in 0..2 {
        assert!(note(uploads, &first, noted).await);
    }
    assert_eq!(lines(uploads, &runs, 0, 10).await, [3, 7]);
    assert_eq!(lines(uploads, &runs, 3, 10).await, [7]);
    assert_eq!(lines(uploads, &runs, 0, 1).await, [3]);

    let stopped = Note {
        mark: mark(20, 18, 2),
        rejected: &[],
        end: Some(End::Stopped),
    };
    assert!(note(uploads, &first, stopped).await);
    let other = [
        (contents("others", "options"), Difference::Content),
        (contents("rows", "others"), Difference::Options),
    ];
    for (other, difference) in &other {
        let begun = begin(uploads, &second, other).await;
        assert_eq!(begun, Begun::Other(*difference));
    }
    let Begun::Queue(start) = begin(uploads, &second, &own).await else {
        panic!("the first run has given it back")
    };
    assert_eq!((start.enqueued_at, start.mark), (NOW, mark(20, 18, 2)));
    assert!(!note(uploads, &first, noted).await, "it has passed on");

    let finished = Note {
        mark: mark(30, 28, 2),
        rejected: &[],
        end: Some(End::Finished),
    };
    for _ in 0..2 {
        assert!(
            note(uploads, &second, finished).await,
            "the last may be made twice"
        );
    }
    let Begun::Finished(upload) = begin(uploads, &first, &own).await else {
        panic!("it is finished")
    };
    assert_eq!((upload.mark(), upload.busy_for), (mark(30, 28, 2), None));
    assert!(upload.finished_at.is_some());
    let stranger = AccountId::parse("stranger").unwrap();
    assert_eq!(uploads.find(&stranger, "spring").await.unwrap(), None);
}

/// Whoever has forgotten a parameter, so that each row was rejected, uploads the same name again.
async fn gives_way_when_it_came_to_nothing(uploads: &Uploads) {
    let runs = Runs::new();
    let (first, second) = (runs.place(0), runs.place(1));
    begin(uploads, &first, &contents("rows", "without channel")).await;
    let bad = [rejected(2)];
    let all_bad = Note {
        mark: mark(2, 0, 1),
        rejected: &bad,
        end: Some(End::Finished),
    };
    assert!(note(uploads, &first, all_bad).await);
    let same = begin(uploads, &second, &contents("rows", "without channel")).await;
    assert!(matches!(same, Begun::Finished(_)), "{same:?}");
    let mended = contents("rows", "with channel");
    let begun = begin(uploads, &second, &mended).await;
    assert!(matches!(begun, Begun::Queue(start) if start.mark == Mark::default()));
    assert_eq!(lines(uploads, &runs, 0, 10).await, [0; 0]);
    let one_good = Note {
        mark: mark(2, 1, 0),
        rejected: &[],
        end: Some(End::Finished),
    };
    assert!(note(uploads, &second, one_good).await);
    let other = begin(uploads, &first, &contents("rows", "others")).await;
    assert_eq!(other, Begun::Other(Difference::Options));
}

#[tokio::test]
async fn uploads_behave_in_memory() {
    let uploads = || Uploads::Memory(MemoryUploads::new(Arc::new(SystemClock)));
    behaves(&uploads()).await;
    gives_way_when_it_came_to_nothing(&uploads()).await;
}

#[tokio::test]
async fn uploads_behave_in_postgresql() {
    let database = TestDatabase::create().await;
    let uploads = Uploads::Postgres(PgUploads::new(database.database()));
    behaves(&uploads).await;
    database
        .execute("DELETE FROM batches; DELETE FROM batch_rejections")
        .await;
    gives_way_when_it_came_to_nothing(&uploads).await;
}

/// A run that died keeps nobody away for ever, and one that only seemed to have died stops.
#[tokio::test]
async fn a_lease_that_is_not_renewed_passes_on() {
    let database = TestDatabase::create().await;
    let uploads = Uploads::Postgres(PgUploads::new(database.database()));
    let (runs, own) = (Runs::new(), contents("rows", "options"));
    begin(&uploads, &runs.place(0), &own).await;
    let ended = "UPDATE batches SET lease_until = now() - interval '1 ms'";
    database.execute(ended).await;
    let renewed = Note {
        mark: mark(5, 5, 0),
        rejected: &[],
        end: None,
    };
    assert!(
        note(&uploads, &runs.place(0), renewed).await,
        "nobody has taken it"
    );
    database.execute(ended).await;
    let begun = begin(&uploads, &runs.place(1), &own).await;
    assert!(matches!(begun, Begun::Queue(start) if start.mark == mark(5, 5, 0)));
    assert!(!note(&uploads, &runs.place(0), renewed).await);
}

/// One of any number of runs that begin at the same time gets the batch.
#[tokio::test]
async fn of_many_that_begin_at_once_one_has_the_batch() {
    let database = TestDatabase::create().await;
    let uploads = Uploads::Postgres(PgUploads::new(database.database()));
    let (runs, own) = (Runs::new(), contents("rows", "options"));
    let beginning = (0..16).map(|_| async {
        let place = Place {
            lease: Lease::new(),
            ..runs.place(0)
        };
        matches!(begin(&uploads, &place, &own).await, Begun::Queue(_))
    });
    let begun = futures_util::future::join_all(beginning).await;
    assert_eq!(begun.into_iter().filter(|has| *has).count(), 1);
}

/// However many rejected rows they leave, and without an upload that would have to wait for it.
#[tokio::test]
async fn all_that_is_old_is_forgotten_in_one_go() {
    let database = TestDatabase::create().await;
    let uploads = PgUploads::new(database.database());
    database
        .execute(
            "INSERT INTO batches (account_id, batch_id, content, options, enqueued_ms, lease, lease_until, updated_at)
             SELECT 'acme', id, repeat('0', 64), repeat('0', 64), 0, 0, now(), now() - age
             FROM (VALUES ('old', interval '3 h'), ('new', interval '1 h')) AS batch (id, age);
             INSERT INTO batch_rejections SELECT 'acme', id, line, 'to', 'x'
             FROM (VALUES ('old'), ('new')) AS batch (id), generate_series(1, 12001) AS line",
        )
        .await;
    let stop = CancellationToken::new();
    let age = Duration::from_secs(2 * 3_600);
    let forgetting = tokio::spawn(forget_old(uploads, age, stop.clone()));
    let left = async |table: &str| {
        let select = format!("SELECT count(*) FROM {table} WHERE batch_id = 'old'");
        let select = sqlx::query_scalar::<_, i64>(&select);
        select.fetch_one(database.pool()).await.unwrap()
    };
    eventually("the old one is gone", Duration::from_secs(30), async || {
        left("batches").await + left("batch_rejections").await == 0
    })
    .await;
    let kept = "SELECT count(*) FROM batch_rejections JOIN batches USING (account_id, batch_id)";
    let kept = sqlx::query_scalar::<_, i64>(kept).fetch_one(database.pool());
    assert_eq!(kept.await.unwrap(), 12_001);
    stop.cancel();
    forgetting.await.unwrap();
}
