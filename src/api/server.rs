//! Connections: taken, limited, and let finish.
//!
//! A connection that says nothing, or nothing any more, is closed after a while, and earlier when
//! there are too many: the one that has been idle longest makes room.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::Service as _;

/// How long a request's head may take to arrive, and how long a connection may be idle.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 32 * 1024;

/// The pause after an accept that failed, as when all file descriptors are in use.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// How it serves.
#[derive(Debug, Clone)]
pub struct Server {
    /// Connections at one time, at most.
    pub max_connections: usize,
    /// No connection is taken any more, and none is kept alive after its answer.
    pub stop: CancellationToken,
}

/// Serves until told to stop, and then until every answer is out, or `hard` is cancelled.
pub async fn serve(server: Server, listener: TcpListener, router: Router, hard: CancellationToken) {
    let mut open = Connections::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = server.stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                if open.make_room(server.max_connections) {
                    open.add(stream, &router, &server.stop);
                }
            }
            Err(error) => {
                tracing::warn!(kind = %error.kind(), "the API cannot accept a connection");
                open.close_an_idle_one();
                sleep(ACCEPT_AGAIN_AFTER).await;
            }
        }
    }
    drop(listener);
    tokio::select! {
        () = open.finished() => {}
        () = hard.cancelled() => {}
    }
}

struct Connection {
    /// Requests that are being answered: none or one.
    busy: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

/// The open connections, the oldest first.
#[derive(Default)]
struct Connections(VecDeque<Connection>);

impl Connections {
    /// Whether there is room for one more, by closing an idle one if need be.
    fn make_room(&mut self, most: usize) -> bool {
        if self.0.len() < most {
            return true;
        }
        self.0.retain(|open| !open.task.is_finished());
        if self.0.len() < most {
            return true;
        }
        self.close_an_idle_one()
    }

    /// Whether there was one.
    fn close_an_idle_one(&mut self) -> bool {
        let idle = self.0.iter().position(|open| open.busy.load(Relaxed) == 0);
        let idle = idle.and_then(|place| self.0.remove(place));
        idle.map(|idle| idle.task.abort()).is_some()
    }

    fn add(&mut self, stream: TcpStream, router: &Router, stop: &CancellationToken) {
        let busy = Arc::new(AtomicUsize::new(0));
        let talking = converse(stream, router.clone(), Arc::clone(&busy), stop.clone());
        let task = tokio::spawn(talking);
        self.0.push_back(Connection { busy, task });
    }

    async fn finished(mut self) {
        for connection in std::mem::take(&mut self.0) {
            // One that was closed has finished.
            let _ = connection.task.await;
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.0.iter().for_each(|open| open.task.abort());
    }
}

async fn converse(
    stream: TcpStream,
    router: Router,
    busy: Arc<AtomicUsize>,
    stop: CancellationToken,
) {
    // Answers are small, and nobody should wait for a second one before the first is sent.
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let under_way = UnderWay::begin(&busy);
        let answering = router.clone().call(request);
        async move {
            let _under_way = under_way;
            answering.await
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_header_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // A client that breaks off or is too slow is its own affair.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// Marks a connection as busy.
struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    fn begin(busy: &Arc<AtomicUsize>) -> Self {
        busy.fetch_add(1, Relaxed);
        Self(Arc::clone(busy))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
