//! Confirmed publishing when the broker says no, or nothing.

use std::sync::atomic::Ordering;

use lapin::ExchangeKind;
use lapin::options::{ExchangeDeleteOptions, QueueBindOptions, QueueDeclareOptions};

use super::*;
use crate::support::rabbit::Rabbit;

/// Sheds a fresh copy of a delivery until that works again.
async fn heals(rig: &Rig, delivery: &Delivery) {
    let deadline = Instant::now() + LIMIT;
    loop {
        match rig.requeue(delivery, Route::Shed).await {
            Ok(()) => return,
            Err(error) => assert!(Instant::now() < deadline, "still: {error}"),
        }
        sleep(Duration::from_millis(100)).await;
    }
}

async fn marketing_job(rig: &mut Rig) -> Delivery {
    rig.publish_jobs(Lane::Marketing, 0, 1).await;
    rig.take_one().await
}

#[tokio::test]
async fn a_return_is_a_failure_of_its_own_message_only_and_mended() {
    let mut rig = Rig::shared().await;
    rig.publish_jobs(Lane::Transactional, 0, 100).await;
    rig.publish_jobs(Lane::Marketing, 100, 100).await;
    let taken = rig.take(200).await;
    let (queue, exchange) = (rig.name("marketing.delay"), rig.name("marketing.shed"));
    let none = FieldTable::default();
    rig.channel
        .queue_unbind(queue, exchange.clone(), "".into(), none)
        .await
        .unwrap();
    let jobs: Vec<_> = taken.iter().map(|d| requeue_of(d, Route::Shed)).collect();
    let results = rig.broker.requeue(jobs).await;
    for (delivery, result) in taken.iter().zip(results) {
        let returned = PublishError::Returned {
            exchange: exchange.to_string(),
        };
        match job_of(delivery).lane() {
            Lane::Marketing => assert_eq!(result, Err(returned)),
            Lane::Transactional => assert_eq!(result, Ok(())),
        }
    }
    heals(&rig, &taken[150]).await;
    rig.close().await;
}

#[tokio::test]
async fn a_deleted_exchange_breaks_one_batch_and_comes_back() {
    let mut rig = Rig::shared().await;
    let delivery = marketing_job(&mut rig).await;
    let options = ExchangeDeleteOptions::default();
    rig.channel
        .exchange_delete(rig.name("marketing.shed"), options)
        .await
        .unwrap();
    let failed = rig.requeue(&delivery, Route::Shed).await;
    assert!(matches!(failed, Err(PublishError::Broken(_))), "{failed:?}");
    assert_eq!(rig.broker.announce(vec![events()]).await, [Ok(())]);
    heals(&rig, &delivery).await;
    let failures = &rig.telemetry.counts().publish_failures;
    assert!(failures.load(Ordering::Relaxed) >= 1);
    rig.close().await;
}

#[tokio::test]
async fn a_full_queue_refuses() {
    let mut rig = Rig::shared().await;
    let delivery = marketing_job(&mut rig).await;
    // Beside the delay queue, one that takes nothing.
    let queue = rig.name("full");
    let mut arguments = FieldTable::default();
    arguments.insert(
        "x-max-length".into(),
        lapin::types::AMQPValue::LongLongInt(0),
    );
    arguments.insert(
        "x-overflow".into(),
        lapin::types::AMQPValue::LongString("reject-publish".into()),
    );
    let options = QueueDeclareOptions {
        exclusive: true,
        ..QueueDeclareOptions::default()
    };
    rig.channel
        .queue_declare(queue.clone(), options, arguments)
        .await
        .unwrap();
    let (exchange, options) = (rig.name("marketing.shed"), QueueBindOptions::default());
    let none = FieldTable::default();
    rig.channel
        .queue_bind(queue, exchange, "".into(), options, none)
        .await
        .unwrap();
    assert_eq!(
        rig.requeue(&delivery, Route::Shed).await,
        Err(PublishError::Refused)
    );
    rig.close().await;
}

#[tokio::test]
async fn many_batches_at_once_are_all_confirmed() {
    let mut rig = Rig::shared().await;
    rig.publish_jobs(Lane::Marketing, 0, 500).await;
    let taken = rig.take(500).await;
    let batches = taken.chunks(25).map(|chunk| {
        let jobs = chunk.iter().map(|d| requeue_of(d, Route::Park)).collect();
        rig.broker.requeue(jobs)
    });
    let results = futures_util::future::join_all(batches).await.concat();
    assert_eq!(results.len(), 500);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    rig.awaits_in("marketing.parked", 500).await;
    rig.close().await;
}

#[tokio::test]
async fn without_a_permission_publishes_fail_until_it_is_back() {
    let rabbit = Rabbit::start().await;
    rabbit.ctl(&["add_user", "worker", "worker"]).await;
    rabbit
        .ctl(&["set_permissions", "worker", ".*", ".*", ".*"])
        .await;
    let mut rig = Rig::on(rabbit.url_with("worker:worker", ""), |_| {}).await;
    let delivery = marketing_job(&mut rig).await;
    // All exchanges but the one for marketing sheds may be written to.
    let but_shed = format!(
        "^(?!{}).*$",
        rig.name("marketing.shed").as_str().replace('.', "\\.")
    );
    rabbit
        .ctl(&["set_permissions", "worker", ".*", &but_shed, ".*"])
        .await;
    let failed = rig.requeue(&delivery, Route::Shed).await;
    assert!(
        matches!(&failed, Err(PublishError::Broken(text)) if text.contains("ACCESS_REFUSED")),
        "{failed:?}"
    );
    // The other lane goes on.
    rig.publish_jobs(Lane::Transactional, 1, 1).await;
    let other = rig.take_one().await;
    assert_eq!(rig.requeue(&other, Route::Shed).await, Ok(()));
    assert!(rig.broker.is_live(&delivery.receipt));
    rabbit
        .ctl(&["set_permissions", "worker", ".*", ".*", ".*"])
        .await;
    heals(&rig, &delivery).await;
    rig.intake.close(Instant::now() + LIMIT).await;
}

/// The ports of the worker's publishing connections, which tell one connection from the next.
async fn publishing_ports(rabbit: &Rabbit) -> Vec<String> {
    let rows = rabbit
        .list(&["list_connections", "peer_port", "client_properties"])
        .await;
    let ours = rows
        .into_iter()
        .filter(|row| row[1].contains("localhost publish"));
    ours.map(|row| row[0].clone()).collect()
}

#[tokio::test]
async fn a_refused_exchange_fails_alone_and_the_others_messages_are_stored_once() {
    let rabbit = Rabbit::start().await;
    rabbit.ctl(&["add_user", "worker", "worker"]).await;
    rabbit
        .ctl(&["set_permissions", "worker", ".*", ".*", ".*"])
        .await;
    let mut rig = Rig::on(rabbit.url_with("worker:worker", ""), |options| {
        options.park_delay_transactional = Duration::from_secs(600);
    })
    .await;
    rig.publish_jobs(Lane::Transactional, 0, 50).await;
    rig.publish_jobs(Lane::Marketing, 50, 50).await;
    let mut taken = rig.take(100).await;
    // Both lanes by turns.
    taken.sort_by_key(|delivery| {
        job_of(delivery).head.id.as_str()[2..]
            .parse::<usize>()
            .unwrap()
            % 50
    });
    let but_marketing = format!(
        "^(?!{}).*$",
        rig.name("marketing.park").as_str().replace('.', "\\.")
    );
    rabbit
        .ctl(&["set_permissions", "worker", ".*", &but_marketing, ".*"])
        .await;
    let jobs: Vec<_> = taken.iter().map(|d| requeue_of(d, Route::Park)).collect();
    let results = rig.broker.requeue(jobs).await;
    for (delivery, result) in taken.iter().zip(&results) {
        match job_of(delivery).lane() {
            Lane::Transactional => assert_eq!(result, &Ok(())),
            Lane::Marketing => assert!(
                matches!(result, Err(PublishError::Broken(text)) if text.contains("ACCESS_REFUSED")),
                "{result:?}"
            ),
        }
    }
    let failures = &rig.telemetry.counts().publish_failures;
    assert_eq!(failures.load(Ordering::Relaxed), 50);
    rig.awaits_in("transactional.parked", 50).await;
    assert_eq!(rig.queues.ready("marketing.parked").await, 0);
    rig.intake.close(Instant::now() + LIMIT).await;
}

#[tokio::test]
async fn a_queue_that_confirms_nothing_holds_up_no_other_and_the_connection_is_replaced() {
    let rabbit = Rabbit::start().await;
    let mut rig = Rig::on(rabbit.url(), |options| {
        options.confirm_timeout = Duration::from_secs(1);
    })
    .await;
    let stuck = marketing_job(&mut rig).await;
    rig.publish_jobs(Lane::Transactional, 1, 1).await;
    let healthy = rig.take_one().await;
    let before = publishing_ports(&rabbit).await;
    assert_eq!(before.len(), 1);
    // As without a quorum: the queue's process takes messages and does nothing with them.
    let processes = ["marketing.delay", "marketing.admitted"];
    let processes = processes.map(|queue| format!("'%2F_{}'", rig.name(queue)));
    for process in &processes {
        let suspend = format!("sys:suspend({process}).");
        rabbit.ctl(&["eval", &suspend]).await;
    }
    let timed_out = Err(PublishError::TimedOut);
    // The lanes of what is admitted share an exchange, and do not wait for each other either.
    let at_once = [
        requeue_of(&stuck, Route::Shed),
        requeue_of(&stuck, Route::Admitted),
        requeue_of(&healthy, Route::Admitted),
    ];
    let results = rig.broker.requeue(at_once.to_vec()).await;
    assert_eq!(results, [timed_out.clone(), timed_out, Ok(())]);
    let since = Instant::now();
    let not_tried = Err(PublishError::NotTried);
    assert_eq!(rig.requeue(&stuck, Route::Shed).await, not_tried);
    assert!(since.elapsed() < Duration::from_millis(500));
    assert_eq!(rig.requeue(&healthy, Route::Park).await, Ok(()));
    assert_eq!(rig.broker.announce(vec![events()]).await, [Ok(())]);
    rig.becomes(|readiness| !readiness.publishing).await;
    // The connection is given up by itself, and the old one closed.
    let deadline = Instant::now() + LIMIT;
    loop {
        let now = publishing_ports(&rabbit).await;
        if now.len() == 1 && now != before {
            break;
        }
        assert!(Instant::now() < deadline, "{before:?} {now:?}");
    }
    assert_eq!(rig.broker.announce(vec![events()]).await, [Ok(())]);
    for process in &processes {
        let resume = format!("sys:resume({process}).");
        rabbit.ctl(&["eval", &resume]).await;
    }
    heals(&rig, &stuck).await;
    rig.becomes(Readiness::is_ready).await;
    rig.intake.close(Instant::now() + LIMIT).await;
}

#[tokio::test]
async fn while_the_broker_says_blocked_nothing_is_handed_over_and_the_connection_is_kept() {
    let rabbit = Rabbit::start().await;
    let confirm_timeout = Duration::from_millis(500);
    let mut rig = Rig::on(rabbit.url(), |options| {
        options.confirm_timeout = confirm_timeout;
        options.park_delay_marketing = Duration::from_secs(600);
    })
    .await;
    let delivery = marketing_job(&mut rig).await;
    rig.requeue(&delivery, Route::Park).await.unwrap();
    let before = publishing_ports(&rabbit).await;
    rabbit.raise_memory_alarm().await;
    // The broker says so when it is next published to, and stores that message in the end.
    let first = rig.requeue(&delivery, Route::Park).await;
    assert_eq!(first, Err(PublishError::TimedOut));
    rig.becomes(|readiness| {
        let error = readiness.last_error.as_deref().unwrap_or_default();
        !readiness.publishing && error.contains("alarm")
    })
    .await;
    let since = Instant::now();
    while since.elapsed() < confirm_timeout * 8 {
        let began = Instant::now();
        for route in [Route::Park, Route::Shed] {
            let blocked = rig.requeue(&delivery, route).await;
            assert_eq!(blocked, Err(PublishError::NotTried));
        }
        let events = rig.broker.announce(vec![events()]).await;
        assert_eq!(events, [Err(PublishError::NotTried)]);
        assert!(began.elapsed() < confirm_timeout / 2);
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(publishing_ports(&rabbit).await, before);
    rabbit.clear_memory_alarm().await;
    rig.becomes(Readiness::is_ready).await;
    rig.requeue(&delivery, Route::Park).await.unwrap();
    // One before the alarm, one that had it announced, one after it; nothing was shed.
    rig.awaits_in("marketing.parked", 3).await;
    let shed = timeout(Duration::from_secs(2), rig.deliveries.recv()).await;
    assert!(shed.is_err(), "{shed:?}");
    assert_eq!(publishing_ports(&rabbit).await, before);
    rig.intake.close(Instant::now() + LIMIT).await;
}

#[tokio::test]
async fn under_an_alarm_publishes_end_by_their_deadline_and_do_not_pile_up() {
    let rabbit = Rabbit::start().await;
    let mut rig = Rig::on(rabbit.url(), |options| {
        options.confirm_timeout = Duration::from_secs(1);
    })
    .await;
    let delivery = marketing_job(&mut rig).await;
    rig.requeue(&delivery, Route::Park).await.unwrap();
    rabbit.raise_memory_alarm().await;
    let since = Instant::now();
    let first = rig.requeue(&delivery, Route::Park).await;
    assert_eq!(first, Err(PublishError::TimedOut));
    assert!(
        since.elapsed() < Duration::from_millis(1_500),
        "{:?}",
        since.elapsed()
    );
    // From now on failures come at once.
    let since = Instant::now();
    for _ in 0..100 {
        assert_eq!(
            rig.requeue(&delivery, Route::Park).await,
            Err(PublishError::NotTried)
        );
    }
    assert!(
        since.elapsed() < Duration::from_millis(500),
        "{:?}",
        since.elapsed()
    );
    rig.becomes(|readiness| !readiness.publishing).await;
    // The consuming connection still settles: it has never published.
    rig.acknowledge(&[delivery]);
    let unsettled = ["list_queues", "name", "messages_unacknowledged"];
    let deadline = Instant::now() + LIMIT;
    loop {
        let rows = rabbit.list(&unsettled).await;
        if rows.iter().all(|row| row[1] == "0") {
            break;
        }
        assert!(Instant::now() < deadline, "{rows:?}");
    }
    rabbit.clear_memory_alarm().await;
    rig.becomes(Readiness::is_ready).await;
    assert_eq!(rig.broker.announce(vec![events()]).await, [Ok(())]);
    // What was under way at the deadline was carried out later, and nothing was added since.
    rig.awaits_in("marketing.parked", 2).await;
    rig.intake.close(Instant::now() + LIMIT).await;
}

#[tokio::test]
async fn closing_under_an_alarm_ends_by_its_deadline() {
    let rabbit = Rabbit::start().await;
    let mut rig = Rig::on(rabbit.url(), |options| {
        options.confirm_timeout = Duration::from_millis(500);
    })
    .await;
    let delivery = marketing_job(&mut rig).await;
    rig.requeue(&delivery, Route::Park).await.unwrap();
    rabbit.raise_memory_alarm().await;
    assert!(rig.requeue(&delivery, Route::Park).await.is_err());
    let since = Instant::now();
    rig.intake.close(since + Duration::from_secs(3)).await;
    assert!(
        since.elapsed() < Duration::from_millis(3_500),
        "{:?}",
        since.elapsed()
    );
}

#[tokio::test]
async fn closing_ends_by_its_deadline_when_the_broker_is_frozen() {
    let mut rabbit = Rabbit::start().await;
    let mut rig = Rig::on(rabbit.url(), |_| {}).await;
    let delivery = marketing_job(&mut rig).await;
    rabbit.freeze();
    rig.acknowledge(&[delivery]);
    let since = Instant::now();
    rig.intake.close(since + Duration::from_secs(3)).await;
    assert!(
        since.elapsed() < Duration::from_millis(3_500),
        "{:?}",
        since.elapsed()
    );
}

#[tokio::test]
async fn declaring_an_exchange_of_another_kind_is_told_as_such() {
    let url = amqp_url();
    let outside = connection(&url).await;
    let channel = outside.create_channel().await.unwrap();
    let prefix = unique_prefix("intake");
    let exchange: ShortString = format!("{prefix}.unrouted").into();
    let options = lapin::options::ExchangeDeclareOptions::default();
    let none = FieldTable::default();
    channel
        .exchange_declare(exchange.clone(), ExchangeKind::Direct, options, none)
        .await
        .unwrap();
    let names = lanekeeper::intake::Names::new(&prefix).unwrap();
    let options = AmqpOptions::new(&url);
    let declared = lanekeeper::intake::topology::declare(&outside, &names, &options).await;
    let text = declared.unwrap_err().to_string();
    assert!(
        text.contains("exchange") && text.contains(exchange.as_str()),
        "{text}"
    );
    channel
        .exchange_delete(exchange, ExchangeDeleteOptions::default())
        .await
        .unwrap();
}
