//! `lanekeeper dead` as an operator runs it, on a real broker.

mod asking;
mod interruptions;
mod looking;
mod settling;
mod turns;

use std::process::{Output, Stdio};
use std::time::{Duration, SystemTime};

use lanekeeper::intake::{AmqpOptions, Feed};
use lapin::options::{BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection};
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::support::queues::Queues;
use crate::support::rabbit::connection;
use crate::support::{amqp_url, eventually, unique_prefix};

/// How long anything that must happen may take.
const LIMIT: Duration = Duration::from_secs(60);

const HOUR: u64 = 3_600;

/// The queues of one prefix, declared, and nothing in them.
struct Yard {
    amqp: String,
    prefix: String,
    channel: Channel,
    queues: Queues,
    _connection: Connection,
}

/// A message taken out of a queue.
struct Taken {
    body: String,
    properties: BasicProperties,
}

impl Yard {
    /// On the shared broker.
    async fn new(name: &str) -> Self {
        Self::on(name, amqp_url()).await
    }

    /// On this broker.
    async fn on(name: &str, amqp: String) -> Self {
        let mut options = AmqpOptions::new(amqp.clone());
        options.prefix = unique_prefix(name);
        let prefix = options.prefix.clone();
        let feed = Feed::connect(options).await.unwrap();
        feed.close(Instant::now() + LIMIT).await;
        let connection = connection(&amqp).await;
        let channel = connection.create_channel().await.unwrap();
        let confirms = ConfirmSelectOptions::default();
        channel.confirm_select(confirms).await.unwrap();
        Self {
            queues: Queues::connect(&amqp, &prefix).await,
            amqp,
            prefix,
            channel,
            _connection: connection,
        }
    }

    /// Puts a message into the dead queue as a worker would have, so many seconds ago.
    async fn bury(&self, body: impl AsRef<[u8]>, reason: &str, age: u64) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let properties = headers(&[("x-reason", reason), ("x-detail", "`id` is missing")])
            .with_timestamp(now.unwrap().as_secs() - age);
        self.put(body, properties).await;
    }

    /// Puts a message with any properties into the dead queue.
    async fn put(&self, body: impl AsRef<[u8]>, properties: BasicProperties) {
        let key = format!("{}.dead", self.prefix);
        let options = BasicPublishOptions::default();
        let confirm = self
            .channel
            .basic_publish("".into(), key.into(), options, body.as_ref(), properties)
            .await;
        confirm.unwrap().await.unwrap();
    }

    /// Buries so many jobs, `j-0` and on, with the reason that each number is given.
    async fn fill(&self, count: usize, reason: impl Fn(usize) -> &'static str) {
        let key = format!("{}.dead", self.prefix);
        let mut confirms = Vec::with_capacity(count);
        for number in 0..count {
            let body = job(&format!("j-{number}"));
            let confirm = self.channel.basic_publish(
                "".into(),
                key.as_str().into(),
                BasicPublishOptions::default(),
                body.as_bytes(),
                headers(&[("x-reason", reason(number))]),
            );
            confirms.push(confirm.await.unwrap());
        }
        for confirm in confirms {
            confirm.await.unwrap();
        }
    }

    /// The program with this prefix and these arguments after `dead`.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanekeeper"));
        command
            .arg("dead")
            .args(arguments)
            .env_clear()
            .env("LANEKEEPER__AMQP__URL", &self.amqp)
            .env("LANEKEEPER__AMQP__PREFIX", &self.prefix)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    async fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().await.unwrap()
    }

    /// Runs it, expects an exit code, and gives standard output and standard error.
    async fn run(&self, arguments: &[&str], code: i32) -> (String, String) {
        let output = self.output(arguments).await;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {out}{err}"
        );
        (out, err)
    }

    /// The lines of `dead list --json`.
    async fn list(&self, arguments: &[&str]) -> Vec<Value> {
        let (out, _) = self
            .run(&[&["list", "--json"], arguments].concat(), 0)
            .await;
        out.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The report of a command with `--json`.
    async fn report(&self, arguments: &[&str], code: i32) -> Value {
        let (out, _) = self.run(&[arguments, &["--json"]].concat(), code).await;
        serde_json::from_str(&out).unwrap()
    }

    /// Waits until so many messages are ready in a queue.
    async fn holds(&self, queue: &str, count: usize) {
        let what = format!("{count} messages in {queue}");
        eventually(&what, LIMIT, async || {
            self.queues.ready(queue).await == count
        })
        .await;
    }

    /// Takes all messages out of a queue.
    async fn take_all(&self, queue: &str) -> Vec<Taken> {
        let queue = format!("{}.{queue}", self.prefix);
        let options = BasicGetOptions { no_ack: true };
        let mut taken = Vec::new();
        while let Some(message) = self
            .channel
            .basic_get(queue.as_str().into(), options)
            .await
            .unwrap()
        {
            taken.push(Taken {
                body: String::from_utf8(message.delivery.data).unwrap(),
                properties: message.delivery.properties,
            });
        }
        taken
    }

    async fn end(self) {
        self.queues.remove().await;
    }
}

fn headers(entries: &[(&str, &str)]) -> BasicProperties {
    let mut table = FieldTable::default();
    for (name, value) in entries {
        table.insert((*name).into(), AMQPValue::LongString((*value).into()));
    }
    BasicProperties::default().with_headers(table)
}

/// A job that every decoder reads.
fn job(id: &str) -> String {
    format!(
        r#"{{"id":"{id}","account_id":"acme","channel":"sms","to":"+447700900123","body":"x","origin":"campaign"}}"#
    )
}

fn column<'a>(lines: &'a [Value], name: &str) -> Vec<&'a str> {
    lines
        .iter()
        .map(|line| line[name].as_str().unwrap_or("-"))
        .collect()
}

/// The references of all messages, in the order of the queue.
async fn references(yard: &Yard) -> Vec<String> {
    let lines = yard.list(&["--limit", "100000"]).await;
    column(&lines, "reference")
        .into_iter()
        .map(str::to_owned)
        .collect()
}
