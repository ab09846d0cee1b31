//! A client of server-sent events.

use std::time::Duration;

use reqwest::Response;
use serde_json::Value;
use tokio::time::timeout;

/// An event must have come within this.
const LIMIT: Duration = Duration::from_secs(15);

/// One event.
#[derive(Debug)]
pub struct ServerEvent {
    pub name: String,
    pub data: Value,
}

/// A stream, closed when dropped.
pub struct EventStream {
    response: Response,
    rest: String,
}

impl EventStream {
    /// Opens one; the error is the status.
    pub async fn open(url: &str, key: &str) -> Result<Self, u16> {
        let client = super::api::client();
        let response = client.get(url).header("X-API-Key", key).send().await;
        let response = response.unwrap();
        if response.status() != 200 {
            return Err(response.status().as_u16());
        }
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Ok(Self {
            response,
            rest: String::new(),
        })
    }

    /// The next event.
    pub async fn next(&mut self) -> ServerEvent {
        let next = timeout(LIMIT, self.read()).await;
        next.expect("an event comes in time")
    }

    /// The next event of that name.
    pub async fn until(&mut self, name: &str) -> ServerEvent {
        loop {
            let event = self.next().await;
            if event.name == name {
                return event;
            }
        }
    }

    async fn read(&mut self) -> ServerEvent {
        loop {
            if let Some((block, rest)) = self.rest.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.rest = rest;
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
                if let (Some(name), Some(data)) = (field("event: "), field("data: ")) {
                    return ServerEvent {
                        name: name.to_owned(),
                        data: serde_json::from_str(data).unwrap(),
                    };
                }
                continue;
            }
            let piece = self.response.chunk().await.unwrap();
            let piece = piece.expect("the stream goes on");
            self.rest.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }
}
