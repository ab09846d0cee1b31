//! Accounts' own queues as operators and the accounts themselves see them.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::time::{Instant, timeout};

use super::lanes_command::{LIMIT, command, lanes, text};
use crate::support::api::{ApiServer, issue_key};
use crate::support::eventually;
use crate::support::jobs::Offer;
use crate::support::own_queues::{Own, OwnQueues};
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::worker::{Worker, WorkerConfig, free_port};

const SOON: Duration = Duration::from_secs(10);

async fn listed(config: &WorkerConfig) -> Value {
    let output = lanes(config, &["--json"]).await;
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The account's marketing lane, as the API tells it.
async fn marketing(api: &ApiServer, key: &str) -> Value {
    let answer = api.get("/api/v1/lanes", key).await;
    answer.body["data"]["lanes"][1].clone()
}

#[tokio::test]
async fn an_account_that_is_split_off_is_listed_with_its_rate_and_its_end() {
    let (scene, database) = Scene::with_database("lanes-hot").await;
    let scene = scene
        .with_own_queues()
        .set("LANES__BUDGET_PER_SECOND", 5)
        .set("HOT__JOBS", 10);
    let key = issue_key(&database, ACCOUNT).await;
    let worker = Worker::start(&scene.config).await;
    let api = ApiServer::start(&scene.config).await;
    let jobs = Offer::many(400, "j", |id| Offer::marketing(ACCOUNT, id).queued_now());
    scene.publisher().await.publish_all(&jobs).await;

    let mut own = Value::Null;
    let is_listed = async || {
        let view = listed(&scene.config).await;
        own = view["queues"][0].clone();
        assert_eq!(view["missing"], json!([]));
        own["drained_by"] == "rate"
            && own["in_own_queue"].as_u64() > Some(100)
            && own["in_workers"].as_u64() > Some(0)
    };
    eventually("it is listed at work", 3 * SOON, is_listed).await;
    assert_eq!(own["account_id"], ACCOUNT);
    assert_eq!(
        (&own["lane"], &own["state"], &own["limit"], &own["paused"]),
        (
            &json!("marketing"),
            &json!("open"),
            &json!(4),
            &json!(false)
        )
    );
    let count = |name: &str| own[name].as_u64().unwrap();
    assert_eq!(count("queued"), count("in_own_queue") + count("in_workers"));
    let rate = own["dispatched_per_second"].as_f64().unwrap();
    // Windows need not begin with seconds.
    assert!((1.0..=8.0).contains(&rate), "{rate}");
    assert!(count("drained_in_seconds") >= count("queued") / 8);
    assert!(own["oldest_seconds"].is_number(), "{own}");

    let is_told = async || {
        let lane = marketing(&api, &key).await;
        let figure = |name: &str| lane[name].as_u64().unwrap_or(0);
        lane["own_queue_state"] == "open"
            && figure("in_own_queue") > 100
            && figure("queued") >= figure("in_own_queue")
            && figure("queued_all_accounts") >= figure("in_own_queue")
    };
    eventually("its own account is told", SOON, is_told).await;
    api.process.stop().await;
    worker.stop().await;
    let number = own["number"].as_i64().unwrap();
    let queues = OwnQueues::connect(&scene).await;
    queues.remove(&[Own::open(number, ACCOUNT, 0)]).await;
    scene.end().await;
}

/// So many queues of which some do not exist, two of an account, and one of another deployment.
fn many() -> Vec<Own> {
    let mut queues: Vec<_> = (1..=60)
        .map(|number| {
            Own::open(
                number,
                &format!("a{number}"),
                usize::try_from(number % 7).unwrap(),
            )
        })
        .collect();
    for number in [5_usize, 6, 31, 60] {
        queues[number - 1] = queues[number - 1].clone().gone();
    }
    queues[9] = Own::open(10, "a10", 40).in_state("draining");
    queues.push(Own {
        lane: "transactional",
        ..Own::open(61, "a10", 30)
    });
    queues.push(Own::open(62, "paused", 20));
    queues.push(Own::open(63, "halted", 10));
    queues
}

/// Every queue is told as it was made, the longest first.
fn assert_listed(rows: &[Value], made: &[Own]) {
    assert_eq!(rows.len(), made.len());
    let order: Vec<_> = rows.iter().map(|row| row["queued"].as_u64()).collect();
    assert!(order.is_sorted_by(|one, next| one >= next), "{order:?}");
    for own in made {
        let row = rows.iter().find(|row| row["number"] == own.number).unwrap();
        let jobs = own.jobs.unwrap_or(0);
        assert_eq!(
            (&row["in_own_queue"], &row["state"]),
            (&json!(jobs), &json!(own.state))
        );
    }
    let first = rows[..4].iter();
    let first: Vec<_> = first
        .map(|row| {
            json!([
                row["account_id"],
                row["drained_in_seconds"],
                row["drained_by"]
            ])
        })
        .collect();
    // No worker runs.
    let expected = [
        json!(["a10", null, "no_consumer"]),
        json!(["a10", null, "no_consumer"]),
        json!(["paused", null, "paused"]),
        json!(["halted", null, "limit_is_zero"]),
    ];
    assert_eq!(first, expected);
}

#[tokio::test]
async fn all_are_listed_the_longest_first_quickly_and_none_of_others() {
    let (scene, database) = Scene::with_database("lanes-many").await;
    let scene = scene.with_own_queues();
    scene.declare().await;
    let (made, hands) = (many(), OwnQueues::connect(&scene).await);
    hands.make(&database, &made).await;
    database
        .execute(
            "INSERT INTO hot_queues (number, prefix, lane, account_id, state)
             VALUES (1000, 'elsewhere', 'marketing', 'stranger', 'open');
             INSERT INTO holds (account_id, kind, target, state)
             VALUES ('paused', 'account', 'paused', 'paused');
             INSERT INTO accounts (account_id, budget_per_second) VALUES ('halted', 0)",
        )
        .await;
    let mut view = Value::Null;
    let settled = async || {
        view = listed(&scene.config).await;
        view["queues"][3]["queued"] == 10
    };
    eventually("the broker has counted them", SOON, settled).await;
    assert_listed(view["queues"].as_array().unwrap(), &made);

    let asked = Instant::now();
    let shown = text(&lanes(&scene.config, &[]).await.stdout);
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
    for part in [
        "63 queues of accounts' own, 200 at most",
        "never: the account is paused",
        "never: the limit is 0",
        "draining",
        "never: no worker consumes from it",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("stranger"), "{shown}");
    let existing: Vec<_> = made.into_iter().filter(|own| own.jobs.is_some()).collect();
    hands.remove(&existing).await;
    scene.end().await;
}

#[tokio::test]
async fn an_account_sees_its_own_queue_alone() {
    let (scene, database) = Scene::with_database("lanes-own").await;
    scene.declare().await;
    let keys = [
        issue_key(&database, ACCOUNT).await,
        issue_key(&database, "other").await,
    ];
    let made = [
        Own::open(1, ACCOUNT, 3).in_state("draining"),
        Own::open(2, "stranger", 4),
    ];
    let queues = OwnQueues::connect(&scene).await;
    queues.make(&database, &made).await;
    let api = ApiServer::start(&scene.config).await;
    let is_told = async || {
        let lane = marketing(&api, &keys[0]).await;
        (
            &lane["in_own_queue"],
            &lane["own_queue_state"],
            &lane["queued"],
            &lane["queued_all_accounts"],
        ) == (&json!(3), &json!("draining"), &json!(3), &json!(7))
    };
    eventually("its own, and all of them together", SOON, is_told).await;
    let other = marketing(&api, &keys[1]).await;
    assert_eq!(
        (
            &other["in_own_queue"],
            &other["own_queue_state"],
            &other["queued"]
        ),
        (&Value::Null, &Value::Null, &json!(0))
    );
    assert_eq!(other["queued_all_accounts"], 7);
    let shown = text(&lanes(&scene.config, &[ACCOUNT]).await.stdout);
    assert!(shown.contains("3 (draining)"), "{shown}");
    api.process.stop().await;
    queues.remove(&made).await;
    scene.end().await;
}

#[tokio::test]
async fn where_there_is_none_it_says_what_that_means() {
    let (scene, _database) = Scene::with_database("lanes-none").await;
    let scene = scene.with_own_queues();
    let output = lanes(&scene.config, &[]).await;
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(
        shown.contains("No account has a queue of its own: none"),
        "{shown}"
    );
    let off = scene.config.clone().set("HOT__MOST", 0);
    let shown = text(&lanes(&off, &[]).await.stdout);
    assert!(shown.contains("hot.most is 0"), "{shown}");
    assert_eq!(listed(&scene.config).await["queues"], json!([]));
}

#[tokio::test]
async fn without_a_database_it_says_that_accounts_share_and_why() {
    let scene = Scene::new("lanes-nodb").await;
    let output = lanes(&scene.config, &[]).await;
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(shown.contains("These settings name no database"), "{shown}");
    let view = listed(&scene.config).await;
    assert_eq!(
        (&view["has_database"], &view["queues"]),
        (&json!(false), &json!([]))
    );
}

#[tokio::test]
async fn a_database_that_does_not_answer_is_a_failure() {
    let nowhere = format!("postgres://nobody@127.0.0.1:{}/none", free_port());
    let scene = Scene::new("lanes-dbaway").await.recorded_at(&nowhere);
    let output = lanes(&scene.config, &[]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output.stderr).contains("does not answer"),
        "{output:?}"
    );
    assert_eq!(text(&output.stdout), "");
}

#[tokio::test]
async fn watching_goes_on_by_the_second_and_ends_with_its_reader() {
    let (scene, _database) = Scene::with_database("lanes-hotwatch").await;
    let mut child = command(&scene.config, &["--watch", "--json"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let line = timeout(LIMIT, lines.next_line()).await.expect("it goes on");
        let view: Value = serde_json::from_str(&line.unwrap().unwrap()).unwrap();
        assert_eq!(view["queues"], json!([]));
    }
    drop(lines);
    let ended = timeout(LIMIT, child.wait()).await.expect("nobody reads");
    assert!(ended.unwrap().success());
}
