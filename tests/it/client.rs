//! The client's publisher on a real broker.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use lanekeeper_client::{
    Channel, ConnectError, Job, Options, Origin, PublishError, Publisher, Verdict,
};
use tokio::time::Instant;

use crate::support::exchange::SendExchange;
use crate::support::rabbit::Rabbit;
use crate::support::worker::free_port;
use crate::support::{amqp_url, unique_prefix};

/// By how much a machine that does other things as well may be late.
const BUSY: Duration = Duration::from_secs(10);

fn options(url: &str) -> Options {
    let mut options = Options::new(url);
    options.prefix = unique_prefix("client");
    options
}

fn job(id: impl std::fmt::Display) -> Job {
    let job = Job::new(&id.to_string(), "acme", Channel::Sms, "+447700900123");
    job.unwrap().body("S3NTINEL").origin(Origin::Api)
}

/// A publisher, and the exchange that it publishes to.
async fn pair(url: &str) -> (Publisher, SendExchange) {
    let options = options(url);
    let exchange = SendExchange::declare(url, &options.prefix).await;
    (Publisher::connect(options).await.unwrap(), exchange)
}

#[tokio::test]
async fn a_job_is_stored_as_the_contract_says() {
    let (publisher, exchange) = pair(&amqp_url()).await;
    exchange.bind("all", "#").await;
    publisher.publish(&job("j-1")).await.unwrap();
    let stored = exchange.take_all("all").await;
    let [message] = &stored[..] else {
        panic!("{} stored", stored.len())
    };
    assert_eq!(message.key, "transactional.acme");
    assert_eq!(message.job["id"], "j-1");
    let properties = &message.properties;
    assert_eq!(properties.delivery_mode(), &Some(2));
    assert_eq!(properties.expiration(), &None);
    let content_type = properties.content_type().as_ref().unwrap();
    assert_eq!(content_type.as_str(), "application/json");
    let message_id = properties.message_id().as_ref().unwrap();
    assert_eq!(message_id.as_str(), "j-1");
    publisher.close().await;
    exchange.delete().await;
}

#[tokio::test]
async fn of_many_jobs_each_has_its_own_result() {
    let (publisher, exchange) = pair(&amqp_url()).await;
    exchange.bind("transactional", "transactional.#").await;
    let kind = |i: usize| match i % 10 {
        // No queue takes it.
        3 => job(i).origin(Origin::Journey),
        // No worker would.
        7 => job(i).from("\n"),
        _ => job(i),
    };
    let jobs: Vec<_> = (0..1_000).map(kind).collect();
    let results = publisher.publish_all(&jobs).await;
    assert_eq!(results.len(), jobs.len());
    for (i, result) in results.iter().enumerate() {
        match i % 10 {
            3 => assert!(matches!(result, Err(PublishError::Returned { .. })), "{i}"),
            7 => assert!(matches!(result, Err(PublishError::Job(_))), "{i}"),
            _ => assert_eq!(result, &Ok(()), "{i}"),
        }
    }
    let stored = exchange.take_all("transactional").await;
    let ids: HashSet<_> = stored.iter().map(|s| s.job["id"].to_string()).collect();
    assert_eq!((stored.len(), ids.len()), (800, 800));
    publisher.close().await;
    exchange.delete().await;
}

#[tokio::test]
async fn tasks_may_share_a_publisher() {
    let (publisher, exchange) = pair(&amqp_url()).await;
    exchange.bind("all", "#").await;
    let publisher = Arc::new(publisher);
    let tasks = (0..100).map(|i| {
        let publisher = Arc::clone(&publisher);
        tokio::spawn(async move { publisher.publish(&job(i)).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap().unwrap();
    }
    assert_eq!(exchange.take_all("all").await.len(), 100);
    publisher.close().await;
    assert_eq!(publisher.publish(&job(0)).await, Err(PublishError::Closed));
    exchange.delete().await;
}

#[tokio::test]
async fn a_missing_exchange_is_named_and_the_publisher_works_once_it_is_there() {
    let options = options(&amqp_url());
    let prefix = options.prefix.clone();
    let publisher = Publisher::connect(options).await.unwrap();
    let jobs: Vec<_> = (0..600).map(job).collect();
    let results = publisher.publish_all(&jobs).await;
    let exchange = format!("{prefix}.send");
    let missing = Err(PublishError::NoExchange { exchange });
    assert!(results[..256].iter().all(|result| *result == missing));
    let rest = &results[256..];
    assert!(
        rest.iter()
            .all(|result| *result == Err(PublishError::NotTried))
    );
    let exchange = SendExchange::declare(&amqp_url(), &prefix).await;
    exchange.bind("all", "#").await;
    assert_eq!(publisher.publish(&job("j")).await, Ok(()));
    exchange.delete().await;
}

#[tokio::test]
async fn a_full_queue_refuses() {
    let (publisher, exchange) = pair(&amqp_url()).await;
    exchange.bind_full("full", "#").await;
    let refused = publisher.publish(&job("j")).await;
    assert_eq!(refused, Err(PublishError::Refused));
    exchange.delete().await;
}

#[tokio::test]
async fn who_cannot_connect_is_told_why_without_the_password() {
    let refused = |url: String| async move {
        let error = Publisher::connect(options(&url)).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("S3NTINEL"), "{shown}");
        error
    };
    let port = free_port();
    let nobody = refused(format!("amqp://user:S3NTINEL@127.0.0.1:{port}")).await;
    assert!(
        matches!(nobody, ConnectError::Unreachable { .. }),
        "{nobody:?}"
    );
    assert_eq!(nobody.verdict(), Verdict::RetrySameId);
    let broker = amqp_url();
    let broker = broker.rsplit_once('@').unwrap().1;
    let stranger = refused(format!("amqp://stranger:S3NTINEL@{broker}")).await;
    assert!(
        matches!(stranger, ConnectError::Denied { .. }),
        "{stranger:?}"
    );
    assert_eq!(stranger.verdict(), Verdict::DoNotRetry);
    let unreadable = refused("amqp://user:S3NTINEL#@host".to_owned()).await;
    assert!(matches!(unreadable, ConnectError::Url(_)), "{unreadable:?}");
}

#[tokio::test]
async fn only_what_somebody_has_to_put_right_is_final_when_connecting() {
    let rabbit = Rabbit::start().await;
    let verdict = async |url: String| {
        let error = Publisher::connect(options(&url)).await.unwrap_err();
        (error.verdict(), error.to_string())
    };
    rabbit.ctl(&["add_vhost", "forbidden"]).await;
    for (vhost, expected) in [("/forbidden", "refused for user"), ("/none", "not found")] {
        let (verdict, said) = verdict(rabbit.url_with("guest:guest", vhost)).await;
        assert!(said.contains(expected), "{said}");
        assert_eq!(verdict, Verdict::DoNotRetry, "{said}");
    }
    let none = r#"{"max-connections": 0}"#;
    for (limit, lift) in [
        (vec!["set_vhost_limits", none], vec!["clear_vhost_limits"]),
        (
            vec!["set_user_limits", "guest", none],
            vec!["clear_user_limits", "guest", "all"],
        ),
    ] {
        rabbit.ctl(&limit).await;
        let (verdict, said) = verdict(rabbit.url()).await;
        assert!(said.contains("is reached"), "{said}");
        assert_eq!(verdict, Verdict::RetrySameId, "{said}");
        rabbit.ctl(&lift).await;
    }
}

#[tokio::test]
async fn after_a_loss_the_next_publish_connects_anew() {
    let rabbit = Rabbit::start().await;
    let (publisher, exchange) = pair(&rabbit.url()).await;
    exchange.bind("all", "#").await;
    publisher.publish(&job("before")).await.unwrap();
    rabbit.stop_app().await;
    let error = publisher.publish(&job("meanwhile")).await.unwrap_err();
    assert_eq!(error.verdict(), Verdict::RetrySameId, "{error:?}");
    rabbit.start_app().await;
    // The queue ended with the connection that it was exclusive to, and so did the exchange.
    let error = publisher.publish(&job("after")).await.unwrap_err();
    assert!(
        matches!(error, PublishError::NoExchange { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn under_an_alarm_a_publish_ends_by_its_deadline_and_so_does_closing() {
    let rabbit = Rabbit::start().await;
    let mut options = options(&rabbit.url());
    options.confirm_timeout = Duration::from_secs(1);
    options.connect_timeout = Duration::from_secs(1);
    // For a publish as for closing, and what a busy machine takes on top.
    let promised = options.connect_timeout + 2 * options.confirm_timeout + BUSY;
    let exchange = SendExchange::declare(&options.url, &options.prefix).await;
    exchange.bind("all", "#").await;
    let publisher = Publisher::connect(options).await.unwrap();
    publisher.publish(&job("before")).await.unwrap();
    rabbit.raise_memory_alarm().await;
    for id in ["first", "second"] {
        let since = Instant::now();
        let error = publisher.publish(&job(id)).await.unwrap_err();
        assert!(matches!(error, PublishError::TimedOut { .. }), "{error:?}");
        assert_eq!(error.verdict(), Verdict::RetrySameId);
        assert!(since.elapsed() < promised, "{:?}", since.elapsed());
    }
    rabbit.clear_memory_alarm().await;
    publisher.publish(&job("after")).await.unwrap();
    rabbit.raise_memory_alarm().await;
    publisher.publish(&job("again")).await.unwrap_err();
    let since = Instant::now();
    publisher.close().await;
    assert!(since.elapsed() < promised, "{:?}", since.elapsed());
}
