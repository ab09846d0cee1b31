//! Losing the broker, or a part of it, and coming back.

use lanekeeper::dispatch::ports::Receipt;
use lapin::options::{ExchangeDeclareOptions, ExchangeDeleteOptions, QueueDeleteOptions};

use super::*;
use crate::support::rabbit::Rabbit;

/// The time in which a worker must consume again once the broker is back.
const COMEBACK: Duration = Duration::from_secs(10);

/// Opens the outside publisher again, after its broker was away.
async fn reopen_outside(rig: &mut Rig) {
    rig.outside = connection(&rig.url).await;
    rig.channel = rig.outside.create_channel().await.unwrap();
    let options = ConfirmSelectOptions::default();
    rig.channel.confirm_select(options).await.unwrap();
}

/// New jobs of both lanes arrive; older ones may be among them.
async fn works(rig: &mut Rig, first: usize) {
    rig.publish_jobs(Lane::Transactional, first, 5).await;
    rig.publish_jobs(Lane::Marketing, first + 5, 5).await;
    let wanted: Vec<_> = (first..first + 10)
        .map(|number| format!("j-{number}"))
        .collect();
    let mut seen = Vec::new();
    while !wanted.iter().all(|id| seen.contains(id)) {
        let taken = rig.take(1).await;
        seen.extend(ids(&taken));
        rig.acknowledge(&taken);
    }
}

#[tokio::test]
async fn a_broker_that_stops_and_starts_is_consumed_from_again() {
    let rabbit = Rabbit::start().await;
    let mut rig = Rig::on(rabbit.url(), |_| {}).await;
    rig.publish_jobs(Lane::Marketing, 0, 5).await;
    let before = rig.take(5).await;
    rabbit.stop_app().await;
    rig.becomes(|r| r.consuming == [false; 2] && !r.publishing)
        .await;
    assert!(rig.broker.readiness().last_error.is_some());
    assert!(
        before
            .iter()
            .all(|delivery| !rig.broker.is_live(&delivery.receipt))
    );
    let lost = rig.requeue(&before[0], Route::Shed).await;
    assert_eq!(lost, Err(PublishError::Disconnected));
    sleep(Duration::from_secs(10)).await;
    rabbit.start_app().await;
    rig.becomes_within(COMEBACK, Readiness::is_ready).await;
    // Receipts of the old connection acknowledge nothing on the new one.
    rig.acknowledge(&before);
    assert_eq!(ids(&rig.take(5).await), ids(&before));
    reopen_outside(&mut rig).await;
    works(&mut rig, 100).await;
    rig.intake.close(Instant::now() + LIMIT).await;
}

/// While the ledger does not keep up, no marketing is taken. Passwords must not wait for its return
/// when the connection breaks meanwhile.
#[tokio::test]
async fn a_lost_connection_is_rebuilt_while_a_lane_is_paused() {
    let rabbit = Rabbit::start().await;
    let mut rig = Rig::on(rabbit.url(), |_| {}).await;
    rig.publish_jobs(Lane::Marketing, 0, 1).await;
    let marketing = rig.take_one().await;
    rig.broker.take(Lane::Marketing, false);
    rig.becomes(|r| r.consuming == [true, false]).await;
    rabbit.ctl(&["close_all_connections", "a test"]).await;
    dies_within(&rig, &marketing, COMEBACK).await;
    rig.becomes_within(COMEBACK, |r| r.consuming == [true, false] && r.publishing)
        .await;
    reopen_outside(&mut rig).await;
    rig.publish_jobs(Lane::Transactional, 1, 1).await;
    let transactional = rig.take_one().await;
    assert_eq!(job_of(&transactional).head.id.as_str(), "j-1");
    rig.broker.take(Lane::Marketing, true);
    assert_eq!(job_of(&rig.take_one().await).head.id.as_str(), "j-0");
    rig.intake.close(Instant::now() + LIMIT).await;
}

/// Whoever holds a receipt must not believe it live when the broker has given the job to another.
#[tokio::test]
async fn receipts_die_with_the_connection_while_both_lanes_are_paused() {
    let rabbit = Rabbit::start().await;
    let mut rig = Rig::on(rabbit.url(), |_| {}).await;
    rig.publish_jobs(Lane::Transactional, 0, 1).await;
    let delivery = rig.take_one().await;
    for lane in Lane::ALL {
        rig.broker.take(lane, false);
    }
    rig.becomes(|r| r.consuming == [false; 2]).await;
    rabbit.ctl(&["close_all_connections", "a test"]).await;
    dies_within(&rig, &delivery, COMEBACK).await;
    rig.intake.close(Instant::now() + LIMIT).await;
}

async fn dies_within(rig: &Rig, delivery: &Delivery, limit: Duration) {
    let since = Instant::now();
    while rig.broker.is_live(&delivery.receipt) {
        assert!(since.elapsed() < limit, "a receipt of a lost connection");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_emptied_broker_gets_everything_declared_again() {
    let mut rabbit = Rabbit::start().await;
    let mut rig = Rig::on(rabbit.url(), |_| {}).await;
    rabbit.restart_empty().await;
    rig.becomes_within(COMEBACK, Readiness::is_ready).await;
    reopen_outside(&mut rig).await;
    works(&mut rig, 0).await;
    rig.intake.close(Instant::now() + LIMIT).await;
}

#[tokio::test]
async fn a_silent_broker_is_noticed_within_two_heartbeats() {
    let mut rabbit = Rabbit::start().await;
    let heartbeat = Duration::from_secs(5);
    let mut rig = Rig::on(rabbit.url(), |options| options.heartbeat = heartbeat).await;
    rabbit.freeze();
    let noticed = rig
        .becomes_within(heartbeat * 2 + Duration::from_secs(5), |r| {
            r.consuming == [false; 2] && !r.publishing
        })
        .await;
    assert!(noticed > heartbeat, "{noticed:?}");
    rabbit.thaw();
    rig.becomes_within(COMEBACK * 2, Readiness::is_ready).await;
    reopen_outside(&mut rig).await;
    works(&mut rig, 0).await;
    let consumers = rabbit.list(&["list_consumers"]).await;
    assert_eq!(consumers.len(), 4, "{consumers:?}");
    rig.intake.close(Instant::now() + LIMIT).await;
}

#[tokio::test]
async fn a_deleted_queue_is_declared_and_consumed_again() {
    let mut rig = Rig::shared().await;
    rig.publish_jobs(Lane::Transactional, 0, 1).await;
    let other_lane = rig.take_one().await;
    let options = QueueDeleteOptions::default();
    rig.channel
        .queue_delete(rig.name("marketing"), options)
        .await
        .unwrap();
    rig.becomes(|r| r.consuming == [true, false]).await;
    rig.becomes(Readiness::is_ready).await;
    // The other lane's channel was left alone.
    assert!(rig.broker.is_live(&other_lane.receipt));
    works(&mut rig, 1).await;
    rig.close().await;
}

/// Nobody here publishes to it, so nobody here would miss it; publishers and delay queues do.
#[tokio::test]
async fn a_deleted_exchange_is_declared_again_before_long() {
    let mut rig = Rig::shared().await;
    let options = ExchangeDeleteOptions::default();
    let name = rig.name("send");
    rig.channel.exchange_delete(name, options).await.unwrap();
    let gone = Instant::now();
    let passive = ExchangeDeclareOptions {
        passive: true,
        ..ExchangeDeclareOptions::default()
    };
    loop {
        let channel = rig.outside.create_channel().await.unwrap();
        let topic = lapin::ExchangeKind::Topic;
        let found =
            channel.exchange_declare(rig.name("send"), topic, passive, FieldTable::default());
        if found.await.is_ok() {
            break;
        }
        assert!(gone.elapsed() < 2 * LIMIT, "it is still missing");
        sleep(LIMIT / 40).await;
    }
    works(&mut rig, 0).await;
    rig.close().await;
}

#[tokio::test]
async fn a_channel_that_the_broker_closes_is_opened_again() {
    let mut rig = Rig::shared().await;
    rig.publish_jobs(Lane::Marketing, 0, 2).await;
    let taken = rig.take(2).await;
    // A tag that was never delivered: the broker closes the channel with 406.
    let receipt = taken[1].receipt;
    let all = (1..=1_000).map(|tag| Receipt { tag, ..receipt }).collect();
    rig.broker.acknowledge(all);
    let gone = Instant::now();
    while rig.broker.is_live(&taken[0].receipt) {
        assert!(gone.elapsed() < LIMIT);
        sleep(Duration::from_millis(10)).await;
    }
    rig.becomes(Readiness::is_ready).await;
    works(&mut rig, 10).await;
    rig.close().await;
}

#[tokio::test]
async fn a_broker_that_is_down_at_the_start_is_waited_for_and_shutdown_does_not() {
    let url = "amqp://guest:guest@127.0.0.1:1";
    let (sender, _deliveries) = mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let options = AmqpOptions::new(url);
    let mut intake = Intake::start(options, Telemetry::unexported(), sender, stop.clone()).unwrap();
    let gave_up = timeout(Duration::from_secs(2), intake.gave_up()).await;
    assert!(gave_up.is_err(), "{gave_up:?}");
    assert!(!intake.broker().readiness().is_ready());
    let error = intake.broker().readiness().last_error.unwrap();
    assert!(error.contains("127.0.0.1:1"), "{error}");
    let since = Instant::now();
    intake.close(since + LIMIT).await;
    assert!(
        since.elapsed() < Duration::from_secs(1),
        "{:?}",
        since.elapsed()
    );
}

#[tokio::test]
async fn after_stopping_nothing_more_is_handed_on_but_the_rest_can_be_settled() {
    let mut rig = Rig::shared().await;
    rig.publish_jobs(Lane::Marketing, 0, 5).await;
    let taken = rig.take(5).await;
    rig.stop.cancel();
    rig.becomes(|r| r.consuming == [false; 2]).await;
    rig.publish_jobs(Lane::Marketing, 5, 5).await;
    rig.awaits_in("marketing", 5).await;
    assert!(rig.deliveries.try_recv().is_err());
    assert!(rig.broker.is_live(&taken[0].receipt));
    rig.acknowledge(&taken);
    rig.intake.close(Instant::now() + LIMIT).await;
    assert_eq!(rig.queues.ready("marketing").await, 5);
    rig.queues.remove().await;
}
