//! Looks at an account as server-sent events.
//!
//! An event a second; a reader that is too slow misses looks, and one that reads nothing for
//! [`STALLED`] is left. No stream lasts longer than [`LONGEST`]: whoever still watches comes again.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream::unfold;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::streams::Place;
use super::watches::Tick;
use crate::accounts::keys::{KeyId, KeyScope};
use crate::api::app::App;
use crate::api::error::{ApiError, ApiResult, Code};
use crate::domain::AccountId;
use crate::overview::{LanesView, SecondView};

/// How long a reader may take nothing.
const STALLED: Duration = Duration::from_secs(10);

/// How long a stream lasts at most.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// After how long without a look a sign of life is sent.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// How soon a reader should come again that was cut off, in milliseconds.
const AGAIN_MS: u64 = 1_000;

/// Who looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum Viewer {
    /// Whoever has this key: for as long as it allows that.
    Key(KeyId),
    /// Somebody at this machine, with `dev`.
    Local,
}

/// What one event holds.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct LanesEvent<'a> {
    /// How the lanes stand.
    pub lanes: &'a LanesView,
    /// The last minute second by second in the first event, and in the others those of its last
    /// seconds that may be new, or other than they were told before.
    pub seconds: &'a [SecondView],
}

/// Why a stream ends from this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The server stops.
    Stopping,
    /// The key is revoked, or allows this no longer.
    KeyRevoked,
    /// It has lasted long enough.
    Renew,
}

impl End {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Stopping => "stopping",
            Self::KeyRevoked => "key_revoked",
            Self::Renew => "renew",
        }
    }
}

/// Begins a stream of looks at an account.
///
/// # Errors
/// [`Code::RateLimitExceeded`], when too many are open.
pub(in crate::api) fn stream(
    app: &Arc<App>,
    viewer: Viewer,
    account: &AccountId,
) -> ApiResult<Response> {
    let key = match viewer {
        Viewer::Key(key) => Some(key),
        Viewer::Local => None,
    };
    let place = app.lanes.streams.enter(key).map_err(|full| too_many(full.0))?;
    let (sender, frames) = mpsc::channel(1);
    let looks = app.lanes.watch(account);
    tokio::spawn(send(Arc::clone(app), viewer, looks, sender, place));
    let body = unfold(frames, async |mut frames| {
        let frame: Bytes = frames.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(frame), frames))
    });
    let mut response = Body::from_stream(body).into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/event-stream");
    headers.insert(header::CONTENT_TYPE, kind);
    // For proxies that gather answers before they pass them on.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

fn too_many(limit: usize) -> ApiError {
    let message = format!("{limit} streams are open already: close one, or wait");
    ApiError::new(Code::RateLimitExceeded, message)
        .retry_after(5)
        .detail("limit", limit)
        .detail("limit_type", "streams")
}

async fn send(
    app: Arc<App>,
    viewer: Viewer,
    mut looks: tokio::sync::watch::Receiver<Option<Arc<Tick>>>,
    frames: mpsc::Sender<Bytes>,
    _place: Place,
) {
    let ends = Instant::now() + LONGEST;
    let mut is_first = true;
    loop {
        let look = tokio::select! {
            look = timeout(SIGN_OF_LIFE, looks.changed()) => look,
            () = app.stop.cancelled() => return say_goodbye(&frames, End::Stopping).await,
            () = frames.closed() => return,
        };
        if let Some(end) = end(&app, viewer, ends) {
            return say_goodbye(&frames, end).await;
        }
        let frame = match look {
            Ok(Ok(())) => looks.borrow_and_update().as_ref().map(|tick| frame(tick, is_first)),
            Ok(Err(_)) => return,
            Err(_) => Some(":\n\n".into()),
        };
        if let Some(frame) = frame {
            is_first = is_first && look.is_err();
            if !matches!(timeout(STALLED, frames.send(frame)).await, Ok(Ok(()))) {
                return;
            }
        }
    }
}

fn end(app: &App, viewer: Viewer, ends: Instant) -> Option<End> {
    if app.stop.is_cancelled() {
        return Some(End::Stopping);
    }
    if let Viewer::Key(key) = viewer {
        let ring = app.keys.ring();
        let grant = ring.as_ref().and_then(|ring| ring.grant(key));
        if !grant.is_some_and(|grant| grant.scopes.allow(KeyScope::Admin)) {
            return Some(End::KeyRevoked);
        }
    }
    (Instant::now() >= ends).then_some(End::Renew)
}

async fn say_goodbye(frames: &mpsc::Sender<Bytes>, end: End) {
    let goodbye = format!("event: end\ndata: {{\"reason\":\"{}\"}}\n\n", end.as_str());
    let _ = timeout(Duration::from_secs(1), frames.send(goodbye.into())).await;
}

fn frame(tick: &Tick, is_first: bool) -> Bytes {
    let seconds = if is_first { &tick.minute } else { &tick.news };
    let event = LanesEvent {
        lanes: &tick.lanes,
        seconds,
    };
    let json = serde_json::to_string(&event).expect("texts and numbers always have a JSON form");
    let retry = if is_first {
        format!("retry: {AGAIN_MS}\n")
    } else {
        String::new()
    };
    format!("{retry}event: lanes\ndata: {json}\n\n").into()
}
