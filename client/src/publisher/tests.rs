//! How long it takes where a broker accepts connections and then says nothing.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinHandle, yield_now};

use super::*;
use crate::Channel;

const LIMIT: Duration = Duration::from_secs(1);
/// How many tasks publish at once.
const TASKS: usize = 8;

/// Whom the kernel lets connect, and nobody answers.
fn silent() -> (TcpListener, Arc<Publisher>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut options = Options::new(format!("amqp://user:S3NTINEL@{address}"));
    options.connect_timeout = LIMIT;
    options.confirm_timeout = LIMIT;
    let publisher = Publisher::unconnected(options).unwrap();
    (listener, Arc::new(publisher))
}

fn start(publisher: &Arc<Publisher>) -> Vec<JoinHandle<Stored>> {
    let publish = |i: usize| {
        let publisher = Arc::clone(publisher);
        let job = Job::new(&format!("j-{i}"), "acme", Channel::Sms, "+447700900123");
        tokio::spawn(async move { publisher.publish(&job.unwrap()).await })
    };
    (0..TASKS).map(publish).collect()
}

async fn all_time_out(tasks: Vec<JoinHandle<Stored>>) {
    for task in tasks {
        let error = task.await.unwrap().unwrap_err();
        let timed_out = matches!(error, PublishError::Connect(ConnectError::TimedOut { .. }));
        assert!(timed_out, "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_that_need_a_connection_at_once_wait_for_one_time_out_together() {
    let (_listener, publisher) = silent();
    let since = Instant::now();
    all_time_out(start(&publisher)).await;
    assert!(since.elapsed() < 2 * LIMIT, "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_connections_in_turn() {
    let (_listener, publisher) = silent();
    let tasks = start(&publisher);
    while publisher.under_way.available_permits() > 0 {
        yield_now().await;
    }
    let since = Instant::now();
    publisher.close().await;
    assert!(since.elapsed() < 2 * LIMIT, "{:?}", since.elapsed());
    all_time_out(tasks).await;
    let late = start(&publisher).remove(0).await.unwrap();
    assert_eq!(late, Err(PublishError::Closed));
}
