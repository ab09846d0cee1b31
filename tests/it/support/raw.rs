//! HTTP by hand, over a socket: what no client library would send.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// What came back on one connection.
#[derive(Debug, Clone)]
pub struct Heard {
    pub text: String,
    /// Whether the server has closed the connection.
    pub closed: bool,
}

impl Heard {
    /// The statuses of all answers, interim ones included, in order.
    pub fn statuses(&self) -> Vec<u16> {
        let lines = self.text.split("HTTP/1.").skip(1);
        lines
            .filter_map(|line| line.get(2..5)?.parse().ok())
            .collect()
    }

    /// The status of the last answer; 0 where there is none.
    pub fn status(&self) -> u16 {
        self.statuses().last().copied().unwrap_or(0)
    }

    /// The body of the last answer.
    pub fn body(&self) -> &str {
        let (_, last) = self.text.rsplit_once("HTTP/1.").unwrap_or_default();
        last.split_once("\r\n\r\n").unwrap_or_default().1
    }

    /// The same, which must be the API's own form.
    pub fn json(&self) -> Value {
        let json = serde_json::from_str(self.body());
        json.unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

/// One connection.
pub struct Line {
    stream: TcpStream,
    heard: Vec<u8>,
}

impl Line {
    pub async fn open(address: &str) -> Self {
        Self {
            stream: TcpStream::connect(address).await.unwrap(),
            heard: Vec::new(),
        }
    }

    /// Sends bytes, and first of all listens to nothing; a server that has closed the connection
    /// does not want them.
    pub async fn say(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// Says that nothing more will come.
    pub async fn end(&mut self) {
        // The server may have gone first.
        let _ = self.stream.shutdown().await;
    }

    /// Listens until there are so many answers, or the server closes the connection, for `limit` at most.
    pub async fn hear_answers(&mut self, count: usize, limit: Duration) -> Heard {
        let started = Instant::now();
        loop {
            let left = limit.saturating_sub(started.elapsed());
            let mut piece = [0; 4096];
            let read = timeout(left, self.stream.read(&mut piece)).await;
            let closed = matches!(read, Ok(Ok(0) | Err(_)));
            let read = read.map_or(0, |read| read.unwrap_or(0));
            self.heard.extend(&piece[..read]);
            let text = String::from_utf8_lossy(&self.heard).into_owned();
            let heard = Heard { text, closed };
            if read == 0 || heard.statuses().len() >= count {
                return heard;
            }
        }
    }

    /// Listens until the server closes the connection, for `limit` at most.
    pub async fn hear(&mut self, limit: Duration) -> Heard {
        let ended = timeout(limit, self.stream.read_to_end(&mut self.heard)).await;
        Heard {
            text: String::from_utf8_lossy(&self.heard).into_owned(),
            closed: ended.is_ok(),
        }
    }
}
