//! A client that costs little: prepared requests over kept connections.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::quantile;

/// Requests before it counts.
pub const WARM_UP: usize = 200;

/// So many requests over so many connections, each of which waits for its answer.
pub struct Load {
    pub address: String,
    pub request: Vec<u8>,
    pub requests: usize,
    pub connections: usize,
}

/// What was measured.
pub struct Measured {
    took: Duration,
    answers: Vec<Duration>,
}

impl Measured {
    #[expect(clippy::cast_precision_loss, reason = "a few hundred thousand at most")]
    pub fn per_second(&self) -> f64 {
        self.answers.len() as f64 / self.took.as_secs_f64()
    }

    pub fn p50(&self) -> Duration {
        quantile(&self.answers, 0.5)
    }

    pub fn p99(&self) -> Duration {
        quantile(&self.answers, 0.99)
    }
}

/// The bytes of a request.
pub fn request(address: &str, key: &str, message: &Value) -> Vec<u8> {
    let body = message.to_string();
    let head = format!(
        "POST /api/v1/messages/sms HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

impl Load {
    pub async fn run(self) -> Measured {
        self.over(WARM_UP, self.connections).await;
        let started = Instant::now();
        let answers = self.over(self.requests, self.connections).await;
        Measured {
            took: started.elapsed(),
            answers,
        }
    }

    async fn over(&self, requests: usize, connections: usize) -> Vec<Duration> {
        let mut asking = JoinSet::new();
        for number in 0..connections {
            let share = requests / connections + usize::from(number < requests % connections);
            let (address, request) = (self.address.clone(), self.request.clone());
            asking.spawn(async move { ask(&address, &request, share).await });
        }
        asking.join_all().await.concat()
    }
}

async fn ask(address: &str, request: &[u8], count: usize) -> Vec<Duration> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut answers = Vec::with_capacity(count);
    let mut buffer = Vec::with_capacity(4_096);
    for _ in 0..count {
        let started = Instant::now();
        stream.write_all(request).await.unwrap();
        read_answer(&mut stream, &mut buffer).await;
        answers.push(started.elapsed());
    }
    answers
}

/// Reads one answer, which must be a 202 that says how long its body is.
async fn read_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) {
    buffer.clear();
    loop {
        assert_ne!(
            stream.read_buf(buffer).await.unwrap(),
            0,
            "the server has hung up"
        );
        let Some(head) = buffer.windows(4).position(|end| end == b"\r\n\r\n") else {
            continue;
        };
        let text = std::str::from_utf8(&buffer[..head]).unwrap();
        assert!(
            text.starts_with("HTTP/1.1 202"),
            "{text}\n{}",
            String::from_utf8_lossy(&buffer[head..])
        );
        let length = text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.trim().parse::<usize>().unwrap())
        });
        let length = length.expect("both servers say how long");
        if buffer.len() >= head + 4 + length {
            return;
        }
    }
}
