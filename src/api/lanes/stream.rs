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
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

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

/// Looks at one account; nothing before the first.
type Looks = watch::Receiver<Option<Arc<Tick>>>;

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
    let place = app
        .lanes
        .streams
        .take(key)
        .map_err(|full| too_many(full.limit()))?;
    let (sender, frames) = mpsc::channel(1);
    let looks = app.lanes.watch(account);
    let (asked, until) = (Arc::clone(app), Instant::now() + LONGEST);
    let ends = move || end(&asked, viewer, until);
    let sending = send(looks, sender, ends, app.stop.clone());
    tokio::spawn(async move {
        let _place = place;
        sending.await;
    });
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

/// Sends looks until the reader is gone or takes nothing any more, or there is another reason to end.
async fn send(
    mut looks: Looks,
    frames: mpsc::Sender<Bytes>,
    ends: impl Fn() -> Option<End>,
    stop: CancellationToken,
) {
    let mut is_first = true;
    loop {
        let look = tokio::select! {
            look = timeout(SIGN_OF_LIFE, looks.changed()) => look,
            () = stop.cancelled() => return say_goodbye(&frames, End::Stopping).await,
            () = frames.closed() => return,
        };
        if let Some(end) = ends() {
            return say_goodbye(&frames, end).await;
        }
        let tick = match look {
            Ok(Ok(())) => looks.borrow_and_update().clone(),
            Ok(Err(_)) => return,
            Err(_) => None,
        };
        let event = tick.map(|tick| frame(&tick, std::mem::take(&mut is_first)));
        let sending = frames.send(event.unwrap_or(":\n\n".into()));
        if !matches!(timeout(STALLED, sending).await, Ok(Ok(()))) {
            return;
        }
    }
}

/// Why a stream that should last until then must end now.
fn end(app: &App, viewer: Viewer, until: Instant) -> Option<End> {
    if let Viewer::Key(key) = viewer {
        let ring = app.keys.ring();
        let grant = ring.as_ref().and_then(|ring| ring.grant(key));
        if !grant.is_some_and(|grant| grant.scopes.allow(KeyScope::Admin)) {
            return Some(End::KeyRevoked);
        }
    }
    (Instant::now() >= until).then_some(End::Renew)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overview::{LanesView, MeterView};

    fn tick() -> Arc<Tick> {
        Arc::new(Tick {
            lanes: LanesView {
                account_id: "acme".to_owned(),
                at: String::new(),
                budget_per_second: 100,
                reserve_per_second: 20,
                meter: MeterView {
                    mode: "shared",
                    used: None,
                    window_left_ms: None,
                },
                lanes: Vec::new(),
                paused: Vec::new(),
                paused_is_more: false,
                missing: Vec::new(),
            },
            minute: Vec::new(),
            news: Vec::new(),
        })
    }

    struct Rig {
        looks: watch::Sender<Option<Arc<Tick>>>,
        frames: mpsc::Receiver<Bytes>,
        stop: CancellationToken,
        sending: tokio::task::JoinHandle<()>,
    }

    fn rig(ends: impl Fn() -> Option<End> + Send + 'static) -> Rig {
        let (looks, seen) = watch::channel(None);
        let (sender, frames) = mpsc::channel(1);
        let stop = CancellationToken::new();
        let sending = tokio::spawn(send(seen, sender, ends, stop.clone()));
        Rig {
            looks,
            frames,
            stop,
            sending,
        }
    }

    impl Rig {
        async fn next(&mut self) -> String {
            let frame = self.frames.recv().await.expect("it goes on");
            String::from_utf8(frame.to_vec()).unwrap()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_left_and_no_look_is_kept_for_it() {
        let rig = rig(|| None);
        let began = Instant::now();
        for _ in 0..5 {
            rig.looks.send_replace(Some(tick()));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        rig.sending.await.unwrap();
        // One frame waits for the reader; the second one waited for its place.
        assert_eq!(began.elapsed(), Duration::from_secs(1) + STALLED);
        assert_eq!(rig.frames.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn without_looks_there_are_signs_of_life_and_the_first_look_comes_with_its_retry() {
        let mut rig = rig(|| None);
        assert_eq!(rig.next().await, ":\n\n");
        rig.looks.send_replace(Some(tick()));
        assert!(
            rig.next()
                .await
                .starts_with("retry: 1000\nevent: lanes\ndata: {")
        );
        rig.looks.send_replace(Some(tick()));
        assert!(rig.next().await.starts_with("event: lanes\ndata: {"));
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_with_a_word_when_the_server_stops_or_the_key_is_gone() {
        let mut stopped = rig(|| None);
        stopped.stop.cancel();
        assert!(stopped.next().await.contains("stopping"));
        let mut revoked = rig(|| Some(End::KeyRevoked));
        revoked.looks.send_replace(Some(tick()));
        assert!(revoked.next().await.contains("key_revoked"));
        assert!(revoked.frames.recv().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_at_once_when_the_reader_goes() {
        let rig = rig(|| None);
        drop(rig.frames);
        rig.sending.await.unwrap();
    }
}
