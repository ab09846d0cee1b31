//! Publishes one job and says whether it is stored.
//!
//!     cargo run -p lanekeeper-client --example publish -- order-1042-code

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use lanekeeper_client::{Channel, Job, Options, Origin, PublishError, Publisher, Verdict};

#[tokio::main]
async fn main() -> ExitCode {
    let or = |name: &str, default: &str| env::var(name).unwrap_or_else(|_| default.to_owned());
    let id = env::args().nth(1).unwrap_or("order-1042-code".to_owned());
    let mut options = Options::new(or(
        "LANEKEEPER__AMQP__URL",
        "amqp://guest:guest@127.0.0.1:5672",
    ));
    options.prefix = or("LANEKEEPER__AMQP__PREFIX", "lanekeeper");
    options.name = "checkout journey".into();
    match publish(options, &id).await {
        Ok(()) => println!("stored: {id}"),
        Err(error) => {
            eprintln!("not known to be stored: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Makes the job, publishes it, and tries again with the same id while that may help.
async fn publish(options: Options, id: &str) -> Result<(), PublishError> {
    let job = Job::new(id, "acme", Channel::Sms, "+447700900123")?
        .body("Your code is 123456")
        .origin(Origin::Api);
    for pause in [1, 2] {
        match connect_and_publish(&options, &job).await {
            Err(error) if error.verdict() == Verdict::RetrySameId => {
                eprintln!("trying again: {error}");
            }
            decided => return decided,
        }
        tokio::time::sleep(Duration::from_secs(pause)).await;
    }
    connect_and_publish(&options, &job).await
}

/// A program that goes on publishing keeps its publisher, which connects anew by itself.
async fn connect_and_publish(options: &Options, job: &Job) -> Result<(), PublishError> {
    let publisher = Publisher::connect(options.clone()).await?;
    let result = publisher.publish(job).await;
    publisher.close().await;
    result
}
