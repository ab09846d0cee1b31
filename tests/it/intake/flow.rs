//! The way of a job when nothing is broken.

use lanekeeper::intake::{
    AmqpOptions, Endpoint, IntakeError, Names, Verdict, connection, topology,
};
use lapin::options::{QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::AMQPValue;

use super::*;
use crate::support::rabbit::Rabbit;

#[tokio::test]
async fn a_topology_can_be_declared_again() {
    let rig = Rig::shared().await;
    let options = AmqpOptions::new(&rig.url);
    let names = Names::new(&rig.prefix).unwrap();
    topology::declare(&rig.outside, &names, &options)
        .await
        .unwrap();
    rig.close().await;
}

#[tokio::test]
async fn a_queue_with_other_arguments_is_named_and_the_start_given_up() {
    let rig = Rig::shared().await;
    let mut options = AmqpOptions::new(&rig.url);
    options.prefix.clone_from(&rig.prefix);
    options.shed_delay = Duration::from_secs(5);
    let (sender, _deliveries) = mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let telemetry = Telemetry::unexported();
    let mut other = Intake::start(options, telemetry, sender, stop).unwrap();
    let error = timeout(LIMIT, other.gave_up()).await.unwrap();
    assert_eq!(error.verdict(), Verdict::GiveUp);
    let text = error.to_string();
    for part in [
        "transactional.delay",
        "x-message-ttl",
        "wanted 5000",
        "found 1000",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    other.close(Instant::now() + LIMIT).await;
    // The one that was there first goes on.
    assert!(rig.broker.readiness().is_ready());
    rig.close().await;
}

#[tokio::test]
async fn jobs_come_from_their_lanes_and_are_gone_when_acknowledged() {
    let mut rig = Rig::shared().await;
    rig.publish_jobs(Lane::Transactional, 0, 10).await;
    rig.publish_jobs(Lane::Marketing, 10, 10).await;
    let taken = rig.take(20).await;
    assert_eq!(ids(&taken).len(), 20);
    for delivery in &taken {
        assert_eq!(delivery.source_lane, job_of(delivery).lane());
        assert!(rig.broker.is_live(&delivery.receipt));
    }
    assert_eq!(rig.telemetry.counts().deliveries.get(0, 0), 10);
    rig.acknowledge(&taken);
    rig.intake.close(Instant::now() + LIMIT).await;
    assert!(!rig.broker.is_live(&taken[0].receipt));
    for lane in Lane::ALL {
        assert_eq!(rig.queues.ready(lane.as_str()).await, 0, "{lane}");
    }
    rig.queues.remove().await;
}

#[tokio::test]
async fn what_is_not_acknowledged_returns_to_its_queue() {
    let mut rig = Rig::shared().await;
    rig.publish_jobs(Lane::Marketing, 0, 10).await;
    let taken = rig.take(10).await;
    // With a hole in it, so that acknowledging takes both forms.
    rig.acknowledge(&taken[..3]);
    rig.acknowledge(&taken[5..]);
    rig.intake.close(Instant::now() + LIMIT).await;
    let deadline = Instant::now() + LIMIT;
    while rig.queues.ready("marketing").await != 2 {
        assert!(Instant::now() < deadline);
        sleep(Duration::from_millis(50)).await;
    }
    rig.queues.remove().await;
}

#[tokio::test]
async fn no_more_than_the_prefetch_is_taken_until_something_is_settled() {
    let prefetch = 7;
    let mut rig = Rig::on(amqp_url(), |options| {
        options.prefetch = prefetch.try_into().unwrap();
    })
    .await;
    rig.publish_jobs(Lane::Marketing, 0, 20).await;
    let taken = rig.take(7).await;
    rig.awaits_in("marketing", 13).await;
    assert!(rig.deliveries.try_recv().is_err());
    rig.acknowledge(&taken[..2]);
    assert_eq!(rig.take(2).await.len(), 2);
    rig.awaits_in("marketing", 11).await;
    rig.close().await;
}

#[tokio::test]
async fn deliveries_above_an_open_one_are_acknowledged_all_the_same() {
    let mut rig = Rig::on(amqp_url(), |options| {
        options.prefetch = 50.try_into().unwrap();
    })
    .await;
    rig.publish_jobs(Lane::Marketing, 0, 200).await;
    let first = rig.take(50).await;
    let (open, rest) = first.split_first().unwrap();
    let since = Instant::now();
    rig.acknowledge(rest);
    let more = rig.take(49).await;
    assert!(
        since.elapsed() < Duration::from_millis(500),
        "{:?}",
        since.elapsed()
    );
    assert_eq!(more.len(), 49);
    assert!(rig.broker.is_live(&open.receipt));
    rig.close().await;
}

#[tokio::test]
async fn a_shed_job_is_back_in_its_lane_after_a_second_with_its_headers() {
    let mut rig = Rig::shared().await;
    // A marketing job in the other lane's queue, published straight to it by name.
    let queue = rig.name("transactional");
    let mut received = FieldTable::default();
    received.insert("x-death".into(), AMQPValue::LongString("malformed".into()));
    received.insert("lk-enqueued-ms".into(), AMQPValue::LongLongInt(1_234));
    rig.publish(
        "",
        queue.as_str(),
        received,
        job(1, Lane::Marketing).as_bytes(),
    )
    .await;
    let delivery = rig.take_one().await;
    assert_eq!(delivery.source_lane, Lane::Transactional);
    let since = Instant::now();
    rig.requeue(&delivery, Route::Shed).await.unwrap();
    rig.acknowledge(std::slice::from_ref(&delivery));
    let back = rig.take_one().await;
    let took = since.elapsed();
    assert!(
        took >= Duration::from_millis(990) && took < Duration::from_secs(3),
        "{took:?}"
    );
    assert_eq!(back.source_lane, Lane::Marketing);
    assert_eq!((back.headers.sheds, back.headers.attempts), (1, 0));
    assert_eq!(back.headers.enqueued_ms, Some(1_234));
    assert_eq!(job_of(&back).payload, job_of(&delivery).payload);
    rig.close().await;
}

#[tokio::test]
async fn a_job_can_be_shed_many_times() {
    let mut rig = Rig::on(amqp_url(), |options| {
        options.shed_delay = Duration::from_millis(50);
    })
    .await;
    rig.publish_jobs(Lane::Marketing, 0, 1).await;
    for sheds in 0..10 {
        let delivery = rig.take_one().await;
        assert_eq!(delivery.headers.sheds, sheds);
        rig.requeue(&delivery, Route::Shed).await.unwrap();
        rig.acknowledge(&[delivery]);
    }
    assert_eq!(rig.take_one().await.headers.sheds, 10);
    rig.close().await;
}

#[tokio::test]
async fn a_parked_job_waits_longer() {
    let mut rig = Rig::on(amqp_url(), |options| {
        options.park_delay_transactional = Duration::from_secs(2);
    })
    .await;
    rig.publish_jobs(Lane::Transactional, 0, 1).await;
    let delivery = rig.take_one().await;
    let since = Instant::now();
    rig.requeue(&delivery, Route::Park).await.unwrap();
    rig.acknowledge(&[delivery]);
    rig.take_one().await;
    assert!(since.elapsed() >= Duration::from_millis(1_990));
    rig.close().await;
}

#[tokio::test]
async fn an_unknown_key_leads_to_the_transactional_lane() {
    let mut rig = Rig::shared().await;
    rig.publish(
        "send",
        "urgent.acme",
        FieldTable::default(),
        job(1, Lane::Marketing).as_bytes(),
    )
    .await;
    let delivery = rig.take_one().await;
    assert_eq!(delivery.source_lane, Lane::Transactional);
    assert_eq!(job_of(&delivery).lane(), Lane::Marketing);
    rig.close().await;
}

#[tokio::test]
async fn one_bad_message_concerns_no_other() {
    let mut rig = Rig::shared().await;
    let bodies: [&[u8]; 5] = [b"", b"null", b"{", b"\xff\xfe", b"[]"];
    for body in bodies {
        rig.publish("send", "marketing.acme", FieldTable::default(), body)
            .await;
    }
    rig.publish_jobs(Lane::Marketing, 0, 1).await;
    let taken = rig.take(6).await;
    let bad = taken
        .iter()
        .filter(|d| matches!(d.decoded, Decoded::Undecodable { .. }));
    assert_eq!(bad.count(), 5);
    let buried = rig.broker.bury(vec![letter("one"), letter("two")]).await;
    assert_eq!(buried, [Ok(()), Ok(())]);
    rig.awaits_in("dead", 2).await;
    let options = lapin::options::BasicGetOptions::default();
    let dead = rig
        .channel
        .basic_get(rig.name("dead"), options)
        .await
        .unwrap()
        .unwrap();
    let headers = dead.properties.headers().clone().unwrap();
    let reason = headers.inner().get("x-reason").cloned();
    assert_eq!(reason, Some(AMQPValue::LongString("undecodable".into())));
    rig.close().await;
}

#[tokio::test]
async fn events_reach_whoever_listens_and_nobody_has_to() {
    let rig = Rig::shared().await;
    assert_eq!(rig.broker.announce(vec![events()]).await, [Ok(())]);
    let channel = &rig.channel;
    let (queue, none) = (rig.name("listener"), FieldTable::default());
    let options = QueueDeclareOptions::default();
    channel
        .queue_declare(queue.clone(), options, none.clone())
        .await
        .unwrap();
    let (exchange, key) = (rig.name("outcomes"), "dispatched.*".into());
    let options = QueueBindOptions::default();
    channel
        .queue_bind(queue, exchange, key, options, none)
        .await
        .unwrap();
    assert_eq!(rig.broker.announce(vec![events()]).await, [Ok(())]);
    rig.awaits_in("listener", 1).await;
    let (queue, options) = (rig.name("listener"), QueueDeleteOptions::default());
    channel.queue_delete(queue, options).await.unwrap();
    rig.close().await;
}

#[tokio::test]
async fn api_admissions_count_only_from_their_own_queue() {
    let mut rig = Rig::shared().await;
    let mut headers = FieldTable::default();
    headers.insert(JobHeaders::ADMITTED_MS.into(), AMQPValue::LongLongInt(77));
    let body = job(1, Lane::Transactional);
    for exchange in ["send", "admitted"] {
        rig.publish(
            exchange,
            "transactional.acme",
            headers.clone(),
            body.as_bytes(),
        )
        .await;
        let delivery = rig.take_one().await;
        let expected = (exchange == "admitted").then_some(77);
        assert_eq!(delivery.headers.admitted_ms, expected);
        assert_eq!(delivery.source_lane, Lane::Transactional);
    }
    rig.close().await;
}

#[tokio::test]
async fn hints_that_nobody_understands_are_counted() {
    let mut rig = Rig::shared().await;
    let body = job(1, Lane::Marketing).replace("\"body\"", "\"priority\":\"urgent\",\"body\"");
    rig.publish(
        "send",
        "marketing.acme",
        FieldTable::default(),
        body.as_bytes(),
    )
    .await;
    rig.take_one().await;
    assert_eq!(rig.telemetry.counts().hints.get(1, 0), 1);
    rig.close().await;
}

#[tokio::test]
async fn a_connection_has_a_name_and_logs_in_with_any_password() {
    let rabbit = Rabbit::start().await;
    let password = "a#b$c/d@e%f";
    rabbit.ctl(&["add_user", "us@er", password]).await;
    rabbit.ctl(&["add_vhost", "/msg lanes"]).await;
    let all = [".*"; 3];
    let grant = ["set_permissions", "-p", "/msg lanes", "us@er"];
    rabbit.ctl(&[&grant[..], &all[..]].concat()).await;
    let url = rabbit.url_with("us%40er:a%23b%24c%2Fd%40e%25f", "/%2Fmsg%20lanes");
    let rig = Rig::on(url, |options| options.host_name = "box".to_owned()).await;
    let rows = rabbit
        .list(&["list_connections", "client_properties"])
        .await
        .concat()
        .concat();
    assert!(rows.contains("lanekeeper worker box consume"), "{rows}");
    assert!(rows.contains("lanekeeper worker box publish"), "{rows}");
    rig.intake.close(Instant::now() + LIMIT).await;

    let raw = rabbit.url_with(&format!("us@er:{password}"), "/lanes");
    let error = Endpoint::parse(&raw).unwrap_err().to_string();
    assert!(
        error.contains("percent-encode") && !error.contains("c/d"),
        "{error}"
    );

    let wrong = rabbit.url_with("us%40er:S3NTINEL", "/%2Fmsg%20lanes");
    let endpoint = Endpoint::parse(&wrong).unwrap();
    let options = AmqpOptions::new(wrong);
    let refused = connection::connect(&endpoint, &options, connection::Purpose::Consume).await;
    let error: IntakeError = refused.unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(
        text.contains("ACCESS_REFUSED") && !text.contains("S3NTINEL"),
        "{text}"
    );
    assert_eq!(error.verdict(), Verdict::Retry);
}
