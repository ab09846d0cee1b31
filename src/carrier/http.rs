//! A carrier behind HTTP.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use reqwest::{Client, Response, redirect};
use serde::Serialize;
use serde_json::value::RawValue;
use url::Url;

use super::{classify, reference, retry_after};
use crate::dispatch::ports::{Accepted, Clock, SendError, SendVerdict};
use crate::domain::Job;
use crate::settings;

/// The header by which the carrier recognises a second try.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// How long an unused connection is kept, in seconds. Common servers close theirs after five; a
/// request sent just then would end without a known result.
const IDLE_FOR: Duration = Duration::from_secs(4);

/// Posts each job to one URL.
pub struct Http {
    client: Client,
    url: Url,
    retry_after_cap: Duration,
    clock: Arc<dyn Clock>,
}

/// The request's body. Its names are a contract with carriers.
#[derive(Serialize)]
struct Message<'a> {
    id: &'a str,
    account_id: &'a str,
    lane: &'static str,
    channel: &'static str,
    to: &'a str,
    from: Option<&'a str>,
    service_id: Option<&'a str>,
    body: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    attempt: u32,
}

impl Http {
    /// The carrier at the settings' URL, with at most `max_in_flight` connections kept, and
    /// `timeout` for each call in all. `retry_after_cap` bounds how long it may ask to be left alone.
    ///
    /// # Errors
    /// When no TLS client can be made, or the token does not fit into a header.
    pub fn open(
        settings: &settings::Http,
        max_in_flight: u16,
        timeout: Duration,
        retry_after_cap: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .user_agent(concat!(
                env!("CARGO_PKG_NAME"),
                "/",
                env!("CARGO_PKG_VERSION")
            ))
            .default_headers(default_headers(settings))
            .redirect(redirect::Policy::none())
            // Each try is metered and claimed: none may happen inside the client.
            .retry(reqwest::retry::never())
            .connect_timeout(settings.connect_timeout.min(timeout))
            .timeout(timeout)
            .pool_max_idle_per_host(usize::from(max_in_flight))
            .pool_idle_timeout(IDLE_FOR)
            .build()?;
        Ok(Self {
            client,
            url: settings.url.expose().clone(),
            retry_after_cap,
            clock,
        })
    }

    pub(super) async fn send(&self, job: &Job, attempt: u32) -> Result<Accepted, SendError> {
        let request = self
            .client
            .post(self.url.clone())
            .header(IDEMPOTENCY_KEY, job.idempotency_key())
            .body(message(job, attempt)?);
        let response = request.send().await;
        let response = response.map_err(|error| classify::of_error(&error))?;
        match classify::of_status(response.status()) {
            None => Ok(Accepted {
                carrier_ref: reference::of(response).await,
            }),
            Some(verdict) => Err(self.failure(verdict, response).await),
        }
    }

    async fn failure(&self, verdict: SendVerdict, response: Response) -> SendError {
        let header = response.headers().get(RETRY_AFTER);
        let header = header.and_then(|value| value.to_str().ok());
        let cap = self.retry_after_cap;
        let wait = header.and_then(|text| retry_after::wait(text, self.clock.now(), cap));
        let detail = format!(
            "the carrier answered with status {}",
            response.status().as_u16()
        );
        // Read to its end, so that the connection can serve the next try.
        let _ = reference::read_bounded(response).await;
        SendError {
            verdict,
            retry_after: wait.filter(|_| verdict != SendVerdict::Rejected),
            detail: detail.into(),
        }
    }
}

fn message(job: &Job, attempt: u32) -> Result<Vec<u8>, SendError> {
    let unwritable = |_| SendError {
        verdict: SendVerdict::NotSent,
        retry_after: None,
        detail: "the request to the carrier could not be written".into(),
    };
    let content = job.content().map_err(unwritable)?;
    let message = Message {
        id: job.head.id.as_str(),
        account_id: job.head.account.as_str(),
        lane: job.lane().as_str(),
        channel: job.channel.as_str(),
        to: &job.to,
        from: job.from.as_deref(),
        service_id: job.service_id.as_deref(),
        body: content.body,
        content: content.content,
        metadata: content.metadata,
        attempt,
    };
    serde_json::to_vec(&message).map_err(unwritable)
}

/// What every request carries. A token that fits no header was refused with the settings, and its
/// header is marked, so that no debug output shows it.
fn default_headers(settings: &settings::Http) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let Some(token) = &settings.auth_token else {
        return headers;
    };
    let (name, value) = match &settings.auth_header {
        None => (Ok(AUTHORIZATION), format!("Bearer {}", token.expose())),
        Some(name) => (
            HeaderName::from_bytes(name.as_bytes()),
            token.expose().to_owned(),
        ),
    };
    if let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_str(&value)) {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    headers
}
