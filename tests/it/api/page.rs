//! The lanes page, in a real browser.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::support::api::{ApiServer, DEV_KEY, issue_key, issue_key_with, message};
use crate::support::browser::{Browser, Look};
use crate::support::heavy;
use crate::support::own_queues::{Own, OwnQueues};
use crate::support::postgres::TestDatabase;
use crate::support::redis::RedisServer;
use crate::support::scene::{ACCOUNT, Scene};
use crate::support::worker::{Worker, WorkerConfig, free_port};

/// Expressions that are true in the page.
const LIVE: &str = "document.getElementById('state').dataset.state === 'live'";
const LOST: &str = "document.getElementById('state').dataset.state === 'lost'";
const ASKS: &str = "!document.getElementById('door').hidden";
const OUTAGE: &str = "!document.getElementById('outage').hidden";
const NO_OUTAGE: &str = "document.getElementById('outage').hidden";
/// How many of the charts have a line: ink in the very colour of what was sent, or is queued.
const DRAWN: &str = "[...document.querySelectorAll('canvas')].filter((canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const lines = ['11,92,173,255', '106,63,181,255'];
    for (let place = 0; place < data.length; place += 4) {
        if (lines.includes(data.slice(place, place + 4).join())) return true;
    }
    return false;
}).length === 5";
/// Neither the page nor a part of it is wider than the window.
const FITS: &str = "document.documentElement.scrollWidth <= innerWidth";

fn figure(lane: &str, name: &str, is: &str) -> String {
    format!(
        "[...document.querySelectorAll('[data-lane={lane}] .figures div')].some((pair) =>
            pair.children[0].innerText === '{name}' && {is}(pair.children[1].innerText))"
    )
}

/// Sends so many messages a second for so many seconds, each in its lane; gives how many of the
/// marketing ones were turned away.
async fn offer(server: &ApiServer, key: &str, seconds: u32) -> usize {
    let mut shed = 0;
    let mut next = Instant::now();
    for _ in 0..seconds * 10 {
        let sends = (0..14).map(|place| {
            let priority = if place < 2 { "high" } else { "low" };
            async move { (priority, server.send(key, &message(priority)).await) }
        });
        for (priority, answer) in futures_util::future::join_all(sends).await {
            shed += usize::from(answer.status == 429);
            assert!(priority == "low" || answer.status == 202, "{answer:?}");
        }
        next += Duration::from_millis(100);
        sleep_until(next).await;
    }
    shed
}

async fn dev_at(address: &str) -> ApiServer {
    let config = WorkerConfig::new("unused");
    let mut server = ApiServer::spawn_at("dev", address, &config);
    let limit = Duration::from_secs(30);
    server.process.await_listening(address, limit).await;
    server
}

#[tokio::test]
async fn it_draws_what_dev_does_and_survives_a_restart() {
    let _alone = heavy().await;
    let address = format!("127.0.0.1:{}", free_port());
    let server = dev_at(&address).await;
    let mut browser = Browser::start();
    assert_eq!(browser.open(&server.url("/"), Look::DESK).await, 200);
    browser.wait(LIVE).await;

    assert!(
        offer(&server, DEV_KEY, 3).await > 0,
        "120 a second are too many"
    );
    let some = "((text) => Number(text.replaceAll(',', '')) > 0)";
    for (lane, name) in [
        ("transactional", "Sent, last minute"),
        ("marketing", "Sent, last minute"),
        ("marketing", "Shed, last minute"),
    ] {
        browser.wait(&figure(lane, name, some)).await;
    }
    let quick = "((text) => text.endsWith(' ms'))";
    browser
        .wait(&figure("transactional", "Took, p50 / p99", quick))
        .await;
    browser.wait(DRAWN).await;
    assert_eq!(browser.value(FITS).await, true);
    browser.assert_good().await;

    by_keyboard(&mut browser).await;

    server.process.stop().await;
    browser.wait(LOST).await;
    browser.wait_for_text("#state", "No connection since").await;
    let again = dev_at(&address).await;
    browser.wait(LIVE).await;
    again.process.stop().await;
}

/// The table opens by keys alone.
async fn by_keyboard(browser: &mut Browser) {
    browser.value("document.body.focus()").await;
    for _ in 0..20 {
        browser.press("Tab").await;
        if browser
            .value("document.activeElement.tagName === 'SUMMARY'")
            .await
            == true
        {
            browser.press("Enter").await;
            let rows = "document.querySelectorAll('#table[open] tbody tr').length >= 60";
            browser.wait(rows).await;
            return browser.assert_good().await;
        }
    }
    panic!("the table is not reached by Tab");
}

#[tokio::test]
async fn it_fits_a_phone_in_the_dark() {
    let server = ApiServer::dev().await;
    let mut browser = Browser::start();
    browser.open(&server.url("/"), Look::PHONE).await;
    browser.wait(LIVE).await;
    assert_eq!(server.send(DEV_KEY, &message("high")).await.status, 202);
    let some = "((text) => text !== '0')";
    browser
        .wait(&figure("transactional", "Sent, last minute", some))
        .await;
    assert_eq!(browser.value(FITS).await, true);
    let paper = "getComputedStyle(document.documentElement).backgroundColor";
    assert_eq!(browser.value(paper).await, "rgb(18, 22, 27)");
    browser.assert_good().await;
    server.process.stop().await;
}

#[tokio::test]
async fn with_api_it_asks_for_an_admin_key_and_for_another_when_that_is_revoked() {
    let (scene, database) = Scene::with_database("page-key").await;
    let key = issue_key(&database, ACCOUNT).await;
    let reader = issue_key_with(&database, ACCOUNT, &["read"], "api").await;
    let server = ApiServer::start(&scene.config).await;
    let mut browser = Browser::start();
    browser.open(&server.url("/"), Look::DESK).await;
    browser.wait(ASKS).await;
    browser.assert_good().await;
    for (wrong, why) in [("lk_nonsense", "not accepted"), (&*reader, "scope admin")] {
        browser.fill("#key", wrong).await;
        browser.press("Enter").await;
        browser.wait_for_text("#door-why", why).await;
    }
    browser.fill("#key", &key).await;
    browser.press("Enter").await;
    browser.wait(LIVE).await;
    browser.wait_for_text("#account", ACCOUNT).await;
    browser.reload().await;
    browser.wait(LIVE).await;
    // Neither the address nor the page shows it.
    let key = json!(key);
    let shown = format!("(location.href + document.documentElement.outerHTML).includes({key})");
    assert_eq!(browser.value(&shown).await, false);

    revoke_all(&database).await;
    browser.wait(ASKS).await;
    browser.wait_for_text("#door-why", "not accepted").await;
    server.process.stop().await;
    scene.end().await;
}

async fn revoke_all(database: &TestDatabase) {
    let revoke = "UPDATE api_keys SET revoked_at = now()";
    database.execute(revoke).await;
}

#[tokio::test]
async fn it_shows_an_outage_of_redis_and_its_end() {
    let mut redis = RedisServer::start().await;
    let database = TestDatabase::create().await;
    let scene = Scene::on("page-outage", crate::support::amqp_url(), redis.url()).await;
    let scene = scene.recorded_at(database.url());
    let key = issue_key(&database, ACCOUNT).await;
    let worker = Worker::start(&scene.config).await;
    let server = ApiServer::start(&scene.config).await;
    let paused = "INSERT INTO holds (account_id, kind, target, state, reason)
        VALUES ('acme', 'campaign', 'spring', 'paused', 'wrong prices')";
    database.execute(paused).await;
    let mut browser = Browser::start();
    browser.open(&server.url("/"), Look::DESK).await;
    browser.wait(ASKS).await;
    browser.fill("#key", &key).await;
    browser.press("Enter").await;
    browser.wait(LIVE).await;
    browser.wait(NO_OUTAGE).await;
    browser
        .wait_for_text("#paused", "campaign spring: paused")
        .await;

    redis.stop().await;
    browser.wait(OUTAGE).await;
    browser
        .wait_for_text("#outage", "each process counts for itself")
        .await;
    browser
        .wait_for_text("#budget", "each process its own")
        .await;
    let unknown = "((text) => text === 'not known')";
    browser
        .wait(&figure("marketing", "Sent, last minute", unknown))
        .await;
    browser.assert_good().await;
    redis.restart().await;
    browser.wait(NO_OUTAGE).await;
    browser
        .wait(&figure(
            "marketing",
            "Sent, last minute",
            "((text) => text === '0')",
        ))
        .await;
    server.process.stop().await;
    worker.stop().await;
    scene.end().await;
}

#[tokio::test]
async fn it_shows_what_lies_in_the_accounts_own_queue() {
    let (scene, database) = Scene::with_database("page-own").await;
    scene.declare().await;
    let key = issue_key(&database, ACCOUNT).await;
    let made = [Own::open(1, ACCOUNT, 3)];
    let queues = OwnQueues::connect(&scene).await;
    queues.make(&database, &made).await;
    let server = ApiServer::start(&scene.config).await;
    let mut browser = Browser::start();
    browser.open(&server.url("/"), Look::DESK).await;
    browser.wait(ASKS).await;
    browser.fill("#key", &key).await;
    browser.press("Enter").await;
    for (lane, shown) in [("marketing", "3"), ("transactional", "none: it shares")] {
        let is = format!("((text) => text === '{shown}')");
        let own = figure(lane, "Of these in its own queue", &is);
        browser.wait(&own).await;
    }
    let draining = "UPDATE hot_queues SET state = 'draining'";
    database.execute(draining).await;
    let is = "((text) => text === '3 (draining)')";
    let own = figure("marketing", "Of these in its own queue", is);
    browser.wait(&own).await;
    browser.assert_good().await;
    server.process.stop().await;
    queues.remove(&made).await;
    scene.end().await;
}

#[tokio::test]
async fn nothing_of_it_comes_from_elsewhere_or_runs_inline() {
    let server = ApiServer::dev().await;
    let get = async |path: &str| {
        let request = server.request(Method::GET, path, DEV_KEY);
        request.send().await.unwrap()
    };
    let page = get("/").await;
    let policy = page.headers()["content-security-policy"].to_str().unwrap();
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
    ] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let reference = get("/docs/").await;
    let policy = reference.headers()["content-security-policy"]
        .to_str()
        .unwrap();
    assert!(policy.contains("default-src 'self'"), "{policy}");
    let starter = get("/docs/swagger-initializer.js").await;
    let starter = starter.text().await.unwrap();
    assert!(starter.contains(r#""validatorUrl": "none""#), "{starter}");
    let licence = get("/page/uPlot.LICENSE.txt").await.text().await.unwrap();
    assert!(licence.contains("MIT"), "{licence}");
    assert_eq!(get("/page/..%2Fassets.rs").await.status(), 404);
    server.process.stop().await;
}
