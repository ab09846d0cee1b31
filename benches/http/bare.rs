//! The least: a handler that publishes and waits for the confirm.

use std::process::Stdio;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use lapin::options::{
    BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::support::rabbit::connection;
use crate::support::worker::free_port;
use crate::support::{amqp_url, eventually, unique_prefix};

/// The argument that makes this program the server.
pub const SERVE: &str = "--serve-bare";

/// The server, a process of its own.
pub struct Server {
    pub address: String,
    queue: String,
    process: Child,
}

impl Server {
    pub async fn start() -> Self {
        let address = format!("127.0.0.1:{}", free_port());
        let queue = unique_prefix("bench-bare");
        let process = Command::new(std::env::current_exe().unwrap())
            .args([SERVE, &address, &queue])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        eventually(
            "the bare server listens",
            std::time::Duration::from_secs(10),
            async || TcpStream::connect(&address).await.is_ok(),
        )
        .await;
        Self {
            address,
            queue,
            process,
        }
    }

    pub async fn stop(mut self) {
        self.process.kill().await.unwrap();
        let connection = connection(&amqp_url()).await;
        let channel = connection.create_channel().await.unwrap();
        let options = QueueDeleteOptions::default();
        let deleted = channel.queue_delete(self.queue.as_str().into(), options);
        deleted.await.unwrap();
    }
}

struct Publishing {
    channel: Channel,
    queue: String,
}

/// Serves until killed.
pub async fn serve(address: &str, queue: &str) {
    let connection = connection(&amqp_url()).await;
    let channel = connection.create_channel().await.unwrap();
    let mut arguments = FieldTable::default();
    arguments.insert(
        "x-queue-type".into(),
        AMQPValue::LongString("quorum".into()),
    );
    let options = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    channel
        .queue_declare(queue.into(), options, arguments)
        .await
        .unwrap();
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await
        .unwrap();
    let publishing = Arc::new(Publishing {
        channel,
        queue: queue.to_owned(),
    });
    let router = Router::new()
        .route("/api/v1/messages/sms", post(publish))
        .with_state(publishing);
    let listener = TcpListener::bind(address).await.unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let router = router.clone();
        tokio::spawn(async move {
            let service = TowerToHyperService::new(router);
            let connection = hyper::server::conn::http1::Builder::new();
            let _ = connection
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn publish(State(to): State<Arc<Publishing>>, body: Bytes) -> StatusCode {
    let publishing = to.channel.basic_publish(
        "".into(),
        to.queue.as_str().into(),
        BasicPublishOptions::default(),
        &body,
        BasicProperties::default().with_delivery_mode(2),
    );
    let confirm = publishing.await.unwrap().await.unwrap();
    assert!(confirm.is_ack());
    StatusCode::ACCEPTED
}
