//! Bodies that are heard out.
//!
//! A connection that is closed while its client still talks is reset, and many a client then sees
//! the reset instead of the answer. So a body that nobody reads to its end is read and forgotten for
//! a while, beside the answer: a wrong key, a wrong path and a body that is too large are told.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// How long a client is listened to after its answer.
const LISTEN_FOR: Duration = Duration::from_secs(5);

/// A request's body that is heard out when it is dropped.
#[derive(Debug)]
pub(super) struct Heard {
    /// `None` once it has come to its end.
    body: Option<Incoming>,
    /// The client sends nothing before it is told to.
    waits: bool,
}

impl Heard {
    /// The body of a request with these headers.
    pub(super) fn new(headers: &HeaderMap, body: Incoming) -> Self {
        Self {
            body: Some(body),
            waits: headers.contains_key(header::EXPECT),
        }
    }
}

impl Body for Heard {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // Being asked for a piece is what tells the client to send.
        self.waits = false;
        let Some(body) = self.body.as_mut() else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref();
        body.map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        let Some(body) = self.body.take() else {
            return;
        };
        if self.waits || body.is_end_stream() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(timeout(LISTEN_FOR, forget(body)));
        }
    }
}

async fn forget(mut body: Incoming) {
    let next = async |body: &mut Incoming| {
        std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
    };
    while let Some(Ok(_)) = next(&mut body).await {}
}
