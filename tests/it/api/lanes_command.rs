//! `lanekeeper lanes` as an operator runs it.

use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::eventually;
use crate::support::jobs::Offer;
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::worker::{Worker, WorkerConfig, free_port};

/// How long the command may take.
pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// `lanekeeper lanes` as it will be run.
pub(super) fn command(config: &WorkerConfig, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanekeeper"));
    command
        .arg("lanes")
        .args(arguments)
        .env_clear()
        .envs(config.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// What it prints.
pub(super) async fn lanes(config: &WorkerConfig, arguments: &[&str]) -> Output {
    let output = command(config, arguments).output();
    timeout(LIMIT, output).await.expect("it ends").unwrap()
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn it_tells_what_workers_do_whoever_runs_it() {
    let (scene, database) = Scene::with_database("lanes-cli").await;
    let worker = Worker::start(&scene.config).await;
    database
        .execute(
            "INSERT INTO holds (account_id, kind, target, state, reason)
             VALUES ('acme', 'journey', 'welcome', 'paused', 'wrong prices')",
        )
        .await;
    let offers = Offer::many(7, "otp", |id| Offer::otp(ACCOUNT, id).queued_now());
    scene.publisher().await.publish_all(&offers).await;
    let told = async || {
        let output = lanes(&scene.config, &[ACCOUNT, "--json"]).await;
        let view: Value = serde_json::from_slice(&output.stdout).unwrap();
        view["lanes"][0]["dispatched_last_minute"] == 7
    };
    eventually("the seven are told", Duration::from_secs(20), told).await;
    let output = lanes(&scene.config, &[ACCOUNT]).await;
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{shown}");
    for part in [
        "acme: ",
        "of 100 in this window",
        "transactional",
        "marketing",
        "paused journey welcome: wrong prices",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let row: Vec<_> = shown
        .lines()
        .find(|line| line.starts_with("transactional"))
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(row[1..6], ["100", "7", "0", "0", "0"]);
    worker.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn watching_goes_on_by_the_second() {
    let scene = Scene::new("lanes-watch").await;
    let mut child = command(&scene.config, &[ACCOUNT, "--watch", "--json"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let line = timeout(LIMIT, lines.next_line()).await.expect("it goes on");
        let view: Value = serde_json::from_str(&line.unwrap().unwrap()).unwrap();
        assert_eq!(
            (&view["account_id"], &view["lanes"][1]["limit"]),
            (&ACCOUNT.into(), &80.into())
        );
    }
    child.kill().await.unwrap();
}

#[tokio::test]
async fn where_nothing_answers_it_says_so_and_fails() {
    let nowhere = format!("127.0.0.1:{}", free_port());
    let config = WorkerConfig::new("lanes-nowhere")
        .set("REDIS__URL", &*format!("redis://{nowhere}"))
        .set("AMQP__URL", &*format!("amqp://{nowhere}"));
    let output = lanes(&config, &[ACCOUNT]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nothing of it answers"));
}
