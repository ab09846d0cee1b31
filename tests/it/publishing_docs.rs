//! docs/PUBLISHING.md, tried out: its programs run as the page shows them.

use std::time::Duration;

use futures_util::future::join_all;
use lapin::options::QueueDeleteOptions;

use crate::support::exchange::SendExchange;
use crate::support::programs::{Language, Place, Programs, on_the_page};
use crate::support::queues::Queues;
use crate::support::rabbit::{Rabbit, connection};
use crate::support::worker::{Worker, WorkerConfig, free_port};
use crate::support::{amqp_url, eventually, unique_prefix};

const LISTENERS: [Language; 2] = [Language::Python, Language::Node];

fn place() -> Place {
    Place {
        url: amqp_url(),
        prefix: unique_prefix("docs"),
    }
}

fn queue(place: &Place, language: Language) -> String {
    format!("{}.listener-{language:?}", place.prefix)
}

/// What each program says when it publishes a job there, which must fail.
async fn failures(place: &Place) -> Vec<(Language, String)> {
    let programs = Programs::written();
    let published = Language::ALL.map(|language| programs.publish(language, place, "j-1"));
    let results = Language::ALL.into_iter().zip(join_all(published).await);
    results
        .map(|(language, result)| (language, result.expect_err("not stored")))
        .collect()
}

fn each_says(failures: &[(Language, String)], expected: [&str; 3]) {
    for ((language, said), expected) in failures.iter().zip(expected) {
        assert!(said.contains(expected), "{language:?}: {said}");
    }
}

#[test]
fn the_page_shows_the_example_of_the_client() {
    let example = include_str!("../../client/examples/publish.rs");
    assert_eq!(on_the_page("publish.rs"), example.trim_end());
}

#[tokio::test]
async fn jobs_published_as_the_page_shows_are_sent_and_heard_of_once() {
    let (place, programs) = (place(), Programs::written());
    let record = tempfile::NamedTempFile::new().unwrap();
    let record_path = record.path().to_str().unwrap();
    let config = WorkerConfig::new(&place.prefix)
        .set("CARRIERS__DEFAULT__KIND", "sandbox")
        .set("CARRIERS__DEFAULT__SANDBOX_RECORD_FILE", record_path);
    let worker = Worker::start(&config).await;
    let mut listeners = Vec::new();
    for language in LISTENERS {
        let mut listener = programs.listen(language, &place, &queue(&place, language));
        assert_eq!(listener.line().await, "listening");
        listeners.push(listener);
    }

    // Each program twice with the same id, as after an error.
    for _ in 0..2 {
        for language in Language::ALL {
            let id = format!("{language:?}");
            programs.publish(language, &place, &id).await.unwrap();
        }
    }
    programs
        .publish(Language::Rust, &place, "last")
        .await
        .unwrap();

    eventually("all are sent", Duration::from_secs(30), async || {
        let sent = std::fs::read_to_string(record.path()).unwrap();
        sent.contains("\"last\"")
    })
    .await;
    let sent = std::fs::read_to_string(record.path()).unwrap();
    for id in ["Rust", "Python", "Node", "last"] {
        let id = format!("\"id\":\"{id}\"");
        assert_eq!(sent.matches(&id).count(), 1, "{sent}");
    }
    for mut listener in listeners {
        let mut heard = Vec::new();
        for _ in 0..4 {
            heard.push(listener.line().await.trim_end().to_owned());
        }
        heard.sort();
        let expected = ["Node", "Python", "Rust", "last"];
        assert_eq!(heard, expected.map(|id| format!("acme {id} dispatched")));
        listener.end().await;
    }
    worker.stop().await;
    remove_listeners(&place).await;
    Queues::connect(&place.url, &place.prefix)
        .await
        .remove()
        .await;
}

async fn remove_listeners(place: &Place) {
    let connection = connection(&place.url).await;
    let channel = connection.create_channel().await.unwrap();
    for language in LISTENERS {
        let (name, options) = (queue(place, language), QueueDeleteOptions::default());
        channel.queue_delete(name.into(), options).await.unwrap();
    }
}

#[tokio::test]
async fn where_no_worker_has_run_each_program_says_so() {
    let place = place();
    let failures = failures(&place).await;
    let expected = format!("there is no exchange {}.send", place.prefix);
    each_says(&failures, [&expected; 3]);
    let programs = Programs::written();
    for language in LISTENERS {
        let listener = programs.listen(language, &place, &queue(&place, language));
        let said = listener.failure().await;
        assert!(said.contains("no exchange"), "{language:?}: {said}");
    }
    remove_listeners(&place).await;
}

#[tokio::test]
async fn a_returned_job_is_an_error_in_each_program() {
    let place = place();
    let exchange = SendExchange::declare(&place.url, &place.prefix).await;
    let expected = format!("no queue is bound to the exchange {}.send", place.prefix);
    let short = format!("no queue is bound to {}.send", place.prefix);
    each_says(&failures(&place).await, [&expected, &short, &short]);
    exchange.delete().await;
}

#[tokio::test]
async fn a_refused_job_is_an_error_in_each_program() {
    let place = place();
    let exchange = SendExchange::declare(&place.url, &place.prefix).await;
    exchange.bind_full("full", "#").await;
    each_says(&failures(&place).await, ["refused"; 3]);
    exchange.delete().await;
}

#[tokio::test]
async fn without_a_broker_each_program_ends_with_an_error() {
    let mut place = place();
    place.url = format!("amqp://guest:guest@127.0.0.1:{}", free_port());
    for (language, said) in failures(&place).await {
        assert!(!said.trim().is_empty(), "{language:?}");
        assert!(!said.contains("guest:guest"), "{language:?}: {said}");
    }
}

#[tokio::test]
async fn a_refused_log_in_is_not_tried_again() {
    let mut place = place();
    let broker = place.url.rsplit_once('@').unwrap().1;
    place.url = format!("amqp://stranger:S3NTINEL@{broker}");
    for (language, said) in failures(&place).await {
        assert_eq!(
            said.matches("ACCESS_REFUSED").count(),
            1,
            "{language:?}: {said}"
        );
        assert!(!said.contains("S3NTINEL"), "{language:?}: {said}");
    }
}

#[tokio::test]
async fn a_missing_virtual_host_is_not_tried_again_and_a_reached_limit_is() {
    let rabbit = Rabbit::start().await;
    let mut place = place();
    place.url = rabbit.url_with("guest:guest", "/none");
    tried(&failures(&place).await, "not found", 1);
    place.url = rabbit.url();
    let limits = r#"{"max-connections": 0}"#;
    rabbit.ctl(&["set_user_limits", "guest", limits]).await;
    tried(&failures(&place).await, "is reached", 3);
}

/// amqplib says the same of every refusal at this point, so that program tries them all again.
fn tried(failures: &[(Language, String)], refusal: &str, times: usize) {
    for (language, said) in failures {
        let (refusal, times) = match language {
            Language::Rust | Language::Python => (refusal, times),
            Language::Node => ("ConnectionClose", 3),
        };
        assert_eq!(said.matches(refusal).count(), times, "{language:?}: {said}");
    }
}

#[tokio::test]
async fn under_an_alarm_each_program_ends_by_its_time_out() {
    let rabbit = Rabbit::start().await;
    let mut place = place();
    place.url = rabbit.url();
    let exchange = SendExchange::declare(&place.url, &place.prefix).await;
    exchange.bind("all", "#").await;
    rabbit.raise_memory_alarm().await;
    each_says(&failures(&place).await, ["may yet arrive"; 3]);
}
