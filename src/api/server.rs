//! Connections: taken, limited, and let finish.
//!
//! A connection that says nothing, or nothing any more, is closed after a while, and earlier when
//! there are too many: the one that has been idle longest makes room; where none is idle, the one
//! whose answer has been on its way for longest, as streams of events are. One whose request is being
//! worked on is never closed for another.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use hyper::Request;
use hyper::body::{Frame, Incoming, SizeHint};
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
                let made_room = open.close_one();
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

/// What a connection does. The lower, the rather it makes room.
const IDLE: u8 = 0;
const ANSWERING: u8 = 1;
const WORKING: u8 = 2;

/// What a connection does, and since when.
#[derive(Default)]
struct Activity {
    phase: AtomicU8,
    /// Its place among all that have begun to do as it does: the lower, the longer ago.
    since: AtomicU64,
}

impl Activity {
    fn new() -> Arc<Self> {
        let activity = Self::default();
        activity.enters(IDLE);
        Arc::new(activity)
    }

    fn enters(&self, phase: u8) {
        static PLACES: AtomicU64 = AtomicU64::new(0);
        let place = PLACES.fetch_add(1, Relaxed);
        self.since.store(place, Relaxed);
        self.phase.store(phase, Relaxed);
    }

    /// Which makes room first; `None`: not this one.
    fn order(&self) -> Option<(u8, u64)> {
        let phase = self.phase.load(Relaxed);
        (phase != WORKING).then(|| (phase, self.since.load(Relaxed)))
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
    /// Whether there is room for one more, by closing another if need be.
    fn make_room(&mut self, most: usize) -> bool {
        if self.0.len() < most {
            return true;
        }
        self.0.retain(|open| !open.task.is_finished());
        self.0.len() < most || self.close_one()
    }

    /// Whether there was one to close.
    fn close_one(&mut self) -> bool {
        let open = self.0.iter().enumerate();
        let open = open.filter(|(_, open)| !open.task.is_finished());
        let orders = open.filter_map(|(place, open)| Some((open.activity.order()?, place)));
        let Some((_, place)) = orders.min() else {
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
            let response = answering.await;
            response.map(|response| response.map(|body| Answer::new(body, under_way)))
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
        activity.enters(WORKING);
        Self(Arc::clone(activity))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.enters(IDLE);
    }
}

/// An answer's body. Its connection is busy until the body has been handed over as a whole.
struct Answer {
    body: Body,
    _under_way: UnderWay,
}

impl Answer {
    fn new(body: Body, under_way: UnderWay) -> Self {
        under_way.0.enters(ANSWERING);
        Self {
            body,
            _under_way: under_way,
        }
    }
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Connection {
        Connection {
            activity: Activity::new(),
            task: tokio::spawn(std::future::pending()),
        }
    }

    #[tokio::test]
    async fn idle_ones_make_room_first_then_the_longest_answer_and_never_a_request_that_is_worked_on()
     {
        let all: Vec<_> = (0..5).map(|_| connection()).collect();
        let at = |number: usize| Arc::clone(&all[number].activity);
        let activities: Vec<_> = (0..5).map(at).collect();
        let mut under_way: Vec<_> = activities.iter().map(UnderWay::begin).collect();
        // The last one goes on being worked on; two answer, the later first; two are idle.
        let _working = under_way.pop();
        let idle = under_way.drain(..2).rev();
        idle.for_each(drop);
        let answers: Vec<_> = under_way
            .into_iter()
            .rev()
            .map(|under_way| Answer::new(Body::empty(), under_way))
            .collect();
        let mut open = Connections(all);
        let closed = |open: &Connections| {
            let left =
                |one: &Arc<Activity>| open.0.iter().any(|open| Arc::ptr_eq(&open.activity, one));
            (0..5)
                .filter(|number| !left(&activities[*number]))
                .collect::<Vec<_>>()
        };
        for expected in [vec![1], vec![0, 1], vec![0, 1, 3], vec![0, 1, 2, 3]] {
            assert!(open.make_room(1));
            assert_eq!(closed(&open), expected);
        }
        assert!(!open.close_one());
        drop(answers);
        assert_eq!(activities[2].order().map(|(phase, _)| phase), Some(IDLE));
    }
}
