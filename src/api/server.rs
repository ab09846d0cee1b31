//! Connections: taken, limited, and let finish.
//!
//! A connection that says nothing, or nothing any more, is closed after a while, and earlier when
//! there are too many: the one that has been idle longest makes room.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use super::hearing::Heard;

/// How long a request's head may take to arrive, and how long a connection may be idle.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 32 * 1024;

/// The pause after an accept that failed, as when all file descriptors are in use.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The same when a connection was closed to make room: that is done at once.
const ROOM_AFTER: Duration = Duration::from_millis(1);

/// How often it is said that accepting fails.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// File descriptors that are left for all else: the broker, the databases, carriers, operators.
const SPARE_DESCRIPTORS: usize = 200;

/// Connections that may wait to be taken; the system may allow fewer. When there are more, a client
/// tries again only after a second.
const MAY_WAIT: u32 = 4_096;

/// Listens at an address.
///
/// # Errors
/// When the system does not let it.
pub fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // Connections of a server that was here before do not keep this one out.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(MAY_WAIT)
}

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
    let most = server.max_connections.min(descriptors_allow());
    if most < server.max_connections {
        let wanted = server.max_connections;
        tracing::warn!(
            wanted,
            most,
            "the API takes fewer connections than api.max_connections: the limit of file descriptors is too low"
        );
    }
    let mut open = Connections::default();
    let mut said: Option<Instant> = None;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = server.stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                if open.make_room(most) {
                    open.add(stream, &router, &server.stop);
                }
            }
            Err(error) if is_of_the_client(error.kind()) => {}
            Err(error) => {
                if said.is_none_or(|said| said.elapsed() >= SAID_EVERY) {
                    tracing::warn!(kind = %error.kind(), "the API cannot accept connections");
                    said = Some(Instant::now());
                }
                let made_room = open.close_an_idle_one();
                sleep(if made_room {
                    ROOM_AFTER
                } else {
                    ACCEPT_AGAIN_AFTER
                })
                .await;
            }
        }
    }
    drop(listener);
    tokio::select! {
        () = open.finished() => {}
        () = hard.cancelled() => {}
    }
}

/// How many connections the limit of file descriptors has room for.
fn descriptors_allow() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    limit.map_or(usize::MAX, |limit| {
        limit.saturating_sub(SPARE_DESCRIPTORS).max(limit / 2)
    })
}

/// Whether a client has gone before it was let in.
const fn is_of_the_client(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
    )
}

/// What a connection does.
#[derive(Default)]
struct Activity {
    /// Requests that are being answered: none or one.
    requests: AtomicUsize,
    /// Its place among all that have fallen idle: the lower, the longer ago.
    idle_since: AtomicU64,
}

impl Activity {
    fn new() -> Arc<Self> {
        let activity = Self::default();
        activity.falls_idle();
        Arc::new(activity)
    }

    fn falls_idle(&self) {
        static PLACES: AtomicU64 = AtomicU64::new(0);
        let place = PLACES.fetch_add(1, Relaxed);
        self.idle_since.store(place, Relaxed);
    }

    fn is_idle(&self) -> bool {
        self.requests.load(Relaxed) == 0
    }
}

struct Connection {
    activity: Arc<Activity>,
    task: JoinHandle<()>,
}

/// The open connections.
#[derive(Default)]
struct Connections(Vec<Connection>);

impl Connections {
    /// Whether there is room for one more, by closing an idle one if need be.
    fn make_room(&mut self, most: usize) -> bool {
        if self.0.len() < most {
            return true;
        }
        self.0.retain(|open| !open.task.is_finished());
        self.0.len() < most || self.close_an_idle_one()
    }

    /// Whether there was one.
    fn close_an_idle_one(&mut self) -> bool {
        let open = self.0.iter().enumerate();
        let idle = open.filter(|(_, open)| open.activity.is_idle() && !open.task.is_finished());
        let longest = idle.min_by_key(|(_, open)| open.activity.idle_since.load(Relaxed));
        let Some((place, _)) = longest else {
            return false;
        };
        self.0.swap_remove(place).task.abort();
        true
    }

    fn add(&mut self, stream: TcpStream, router: &Router, stop: &CancellationToken) {
        let activity = Activity::new();
        let talking = converse(stream, router.clone(), Arc::clone(&activity), stop.clone());
        let task = tokio::spawn(talking);
        self.0.push(Connection { activity, task });
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
    activity: Arc<Activity>,
    stop: CancellationToken,
) {
    // Answers are small, and nobody should wait for a second one before the first is sent.
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let under_way = UnderWay::begin(&activity);
        let (head, body) = request.into_parts();
        let body = Heard::new(&head.headers, body);
        let answering = router.clone().call(Request::from_parts(head, body));
        async move {
            let _under_way = under_way;
            answering.await
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        // A client that has said all it has to say still waits for its answer.
        .half_close(true)
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
struct UnderWay(Arc<Activity>);

impl UnderWay {
    fn begin(activity: &Arc<Activity>) -> Self {
        activity.requests.fetch_add(1, Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.falls_idle();
        self.0.requests.fetch_sub(1, Relaxed);
    }
}
