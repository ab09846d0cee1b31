use super::*;
use crate::dispatch::ports::{Broker as _, Route};
use crate::domain::Decoded;

fn job(n: usize) -> String {
    format!(r#"{{"id":"{n}","account_id":"a","channel":"sms","to":"+447700900123"}}"#)
}

fn ids(batches: Vec<Vec<Delivery>>) -> Vec<String> {
    let id = |delivery: Delivery| match delivery.decoded {
        Decoded::Job(job) => job.head.id.to_string(),
        other => panic!("{other:?}"),
    };
    batches.into_iter().flatten().map(id).collect()
}

fn received(deliveries: &mut mpsc::UnboundedReceiver<Vec<Delivery>>) -> Vec<Vec<Delivery>> {
    std::iter::from_fn(|| deliveries.try_recv().ok()).collect()
}

#[tokio::test(start_paused = true)]
async fn prefetch_bounds_what_is_unsettled_and_acks_make_room() {
    let queues = EmbeddedQueues::new(Delays::default());
    (0..5).for_each(|n| queues.publish(Lane::Marketing, job(n), JobHeaders::default()));
    let (session, mut deliveries) = queues.connect(2);
    let first = received(&mut deliveries);
    let receipts: Vec<_> = first
        .iter()
        .flatten()
        .map(|delivery| delivery.receipt)
        .collect();
    assert_eq!(ids(first), ["0", "1"]);
    session.acknowledge(receipts);
    assert_eq!(ids(received(&mut deliveries)), ["2", "3"]);
    assert_eq!((queues.unsettled(), queues.ready(Lane::Marketing)), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn what_was_not_settled_comes_again_in_order() {
    let queues = EmbeddedQueues::new(Delays::default());
    (0..3).for_each(|n| queues.publish(Lane::Transactional, job(n), JobHeaders::default()));
    let (session, mut deliveries) = queues.connect(10);
    let stale: Vec<_> = received(&mut deliveries)
        .iter()
        .flatten()
        .map(|delivery| delivery.receipt)
        .collect();
    session.reconnect();
    assert!(!session.is_live(&stale[0]));
    session.acknowledge(stale);
    assert_eq!(ids(received(&mut deliveries)), ["0", "1", "2"]);
    drop(session);
    assert_eq!(
        (queues.unsettled(), queues.ready(Lane::Transactional)),
        (0, 3)
    );
}

#[tokio::test(start_paused = true)]
async fn a_shed_job_is_back_after_the_delay() {
    let queues = EmbeddedQueues::new(Delays::default());
    let (session, mut deliveries) = queues.connect(10);
    let shed = Requeue {
        id: crate::domain::JobId::parse("7").unwrap(),
        account: crate::domain::AccountId::parse("a").unwrap(),
        lane: Lane::Marketing,
        route: Route::Shed,
        headers: JobHeaders {
            sheds: 1,
            ..JobHeaders::default()
        },
        payload: crate::domain::Payload::new(job(7)),
    };
    assert_eq!(session.requeue(vec![shed]).await, [Ok(())]);
    tokio::time::sleep(Duration::from_millis(999)).await;
    assert_eq!((queues.away(), received(&mut deliveries).len()), (1, 0));
    assert_eq!(queues.left(), [job(7)]);
    tokio::time::sleep(Duration::from_millis(2)).await;
    let back = received(&mut deliveries);
    assert_eq!(back[0][0].headers.sheds, 1);
}
