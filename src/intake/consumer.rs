//! Takes deliveries from one queue, reads them and hands them on.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use lapin::message::Delivery as Message;
use lapin::options::{BasicCancelOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, Connection, Consumer};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::dispatch::ports::{Delivery, Receipt};
use crate::domain::{Decoded, JobHeaders, Lane};
use crate::telemetry::Telemetry;

use super::connection::explain;
use super::decode::decode;
use super::error::IntakeError;
use super::names::Names;
use super::options::AmqpOptions;
use super::settle::{Opened, Settle};
use super::source::Source;
use super::status::Status;

/// The most deliveries handed on at once, so that a full prefetch is not decoded in one breath.
const BATCH: usize = 256;

/// What all consumers share.
pub(super) struct Consumers {
    pub(super) names: Names,
    pub(super) options: AmqpOptions,
    pub(super) telemetry: Telemetry,
    pub(super) status: Arc<Status>,
    pub(super) deliveries: mpsc::UnboundedSender<Vec<Delivery>>,
    pub(super) settle: mpsc::UnboundedSender<Settle>,
    /// Whether deliveries are taken, by lane.
    pub(super) taking: watch::Receiver<[bool; 2]>,
    /// No more deliveries, but what was delivered may still be settled.
    pub(super) stop: CancellationToken,
    /// The end.
    pub(super) close: CancellationToken,
}

/// Why a channel is of no use any more, when its own side found out.
const LOST: &str = "acknowledging failed";

/// Why it is not, when the broker or the network took it.
const GONE: &str = "the connection or its channel was closed";

/// How often a channel without a consumer, whose end nothing announces, is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Why no more deliveries are taken for now.
enum End {
    /// The worker stops.
    Stopped,
    /// They are not wanted for a while.
    Paused,
}

/// How long an account's own queue is kept for the settlement of what was taken from it, when it is
/// to be left. What is unsettled then comes again, and its claim tells what became of it.
const LEAVE_WITHIN: Duration = Duration::from_secs(30);

/// One opening of a source's channel.
struct Opening<'a> {
    shared: &'a Consumers,
    source: &'a Source,
    epoch: u64,
    channel: Channel,
    lost: Arc<Notify>,
}

/// A consumer, and the last delivery that was handed on.
struct Taken {
    consumer: Consumer,
    last: u64,
}

impl Consumers {
    /// Consumes from one source until its channel is lost, which is an error, or the end comes.
    pub(super) async fn consume(
        &self,
        connection: &Connection,
        source: &Source,
    ) -> Result<(), IntakeError> {
        let prefetch = self.options.prefetch.get();
        self.with_opening(connection, source, prefetch, async |opening, queue| {
            opening.run(queue).await
        })
        .await
    }

    /// Consumes from an account's own queue until its channel is lost, which is an error, or the end
    /// comes, or it is to be left.
    pub(super) async fn consume_hot(
        &self,
        connection: &Connection,
        source: &Source,
        prefetch: u16,
        leave: &CancellationToken,
    ) -> Result<(), IntakeError> {
        self.with_opening(connection, source, prefetch, async |opening, queue| {
            opening.run_until_left(queue, leave).await
        })
        .await
    }

    async fn with_opening(
        &self,
        connection: &Connection,
        source: &Source,
        prefetch: u16,
        run: impl AsyncFnOnce(&Opening<'_>, &ShortString) -> Result<(), String>,
    ) -> Result<(), IntakeError> {
        let queue = source.queue(&self.names);
        let error = |reason| IntakeError::Consume {
            queue: queue.to_string(),
            reason,
        };
        let channel = self.in_time(channel(connection, prefetch)).await;
        let opening = self.open(source, &queue, channel.map_err(error)?);
        let result = run(&opening, &queue).await.map_err(error);
        self.status.consuming(source, false);
        let epoch = opening.epoch;
        self.status.close(epoch);
        // The settling task ends after all consumers.
        drop(self.settle.send(Settle::Closed { epoch }));
        result
    }

    /// The broker's answer, or in plain words why there is none.
    async fn in_time<T>(
        &self,
        asking: impl Future<Output = lapin::Result<T>>,
    ) -> Result<T, String> {
        let limit = self.options.connect_timeout;
        match timeout(limit, asking).await {
            Ok(answer) => answer.map_err(|failure| explain(&failure)),
            Err(_) => Err(format!("no answer within {limit:?}")),
        }
    }

    fn open<'a>(
        &'a self,
        source: &'a Source,
        queue: &ShortString,
        channel: Channel,
    ) -> Opening<'a> {
        let epoch = self.status.open();
        let lost = Arc::new(Notify::new());
        let opened = Opened {
            epoch,
            queue: queue.clone(),
            channel: channel.clone(),
            lost: Arc::clone(&lost),
        };
        drop(self.settle.send(Settle::Opened(opened)));
        Opening {
            shared: self,
            source,
            epoch,
            channel,
            lost,
        }
    }
}

/// A channel with its prefetch, which only holds for consumers started after it was set.
async fn channel(connection: &Connection, prefetch: u16) -> lapin::Result<Channel> {
    let channel = connection.create_channel().await?;
    channel
        .basic_qos(prefetch, BasicQosOptions { global: false })
        .await?;
    Ok(channel)
}

impl Opening<'_> {
    /// Ends well only when the end has come for all.
    async fn run(&self, queue: &ShortString) -> Result<(), String> {
        let mut taking = self.shared.taking.clone();
        let lane = self.source.lane();
        loop {
            tokio::select! {
                biased;
                () = self.shared.close.cancelled() => return Ok(()),
                () = self.shared.stop.cancelled() => return self.settle_the_rest().await,
                () = self.lost.notified() => return Err(LOST.to_owned()),
                () = self.gone() => return Err(GONE.to_owned()),
                () = until(&mut taking, lane, true) => {}
            }
            let consumer = self.start(queue).await?;
            if let End::Stopped = self.take_all(consumer, &mut taking).await? {
                return Ok(());
            }
        }
    }

    /// An account's own queue is only ever left by closing the channel: one that counts no consumer
    /// while deliveries of it are unsettled would look deserted, and might be deleted.
    async fn run_until_left(
        &self,
        queue: &ShortString,
        leave: &CancellationToken,
    ) -> Result<(), String> {
        let mut taken = Taken {
            consumer: self.start(queue).await?,
            last: 0,
        };
        loop {
            let first = tokio::select! {
                biased;
                () = self.shared.close.cancelled() => return Ok(()),
                () = self.shared.stop.cancelled() => return self.settle_the_rest().await,
                () = self.lost.notified() => return Err(LOST.to_owned()),
                () = leave.cancelled() => return self.leave(taken).await,
                next = taken.consumer.next() => next,
            };
            taken.last = self.take(first, &mut taken.consumer)?.unwrap_or(taken.last);
            tokio::task::yield_now().await;
        }
    }

    /// Takes no more, waits until what was taken is settled, and closes the channel: what arrives
    /// meanwhile returns to the queue with that.
    async fn leave(&self, taken: Taken) -> Result<(), String> {
        let (answer, settled) = oneshot::channel();
        let last = Receipt {
            epoch: self.epoch,
            tag: taken.last,
        };
        drop(self.shared.settle.send(Settle::Leaving { last, answer }));
        tokio::select! {
            () = self.shared.close.cancelled() => return Ok(()),
            () = self.lost.notified() => return Err(LOST.to_owned()),
            () = self.gone() => return Err(GONE.to_owned()),
            _ = timeout(LEAVE_WITHIN, settled) => {}
        }
        // From here on nothing of it can be settled any more.
        self.shared.status.close(self.epoch);
        let closing = self.channel.close(200, "left".into());
        self.shared.in_time(closing).await
    }

    async fn start(&self, queue: &ShortString) -> Result<Consumer, String> {
        let options = BasicConsumeOptions::default();
        let (tag, arguments) = (ShortString::default(), FieldTable::default());
        let starting = self
            .channel
            .basic_consume(queue.clone(), tag, options, arguments);
        let consumer = self.shared.in_time(starting).await?;
        self.shared.status.consuming(self.source, true);
        Ok(consumer)
    }

    /// Hands on deliveries until they are not wanted any more.
    async fn take_all(
        &self,
        mut consumer: Consumer,
        taking: &mut watch::Receiver<[bool; 2]>,
    ) -> Result<End, String> {
        let lane = self.source.lane();
        loop {
            let first = tokio::select! {
                biased;
                () = self.shared.close.cancelled() => return Ok(End::Stopped),
                () = self.shared.stop.cancelled() => {
                    return self.cease(consumer).await.map(|()| End::Stopped);
                }
                () = self.lost.notified() => return Err(LOST.to_owned()),
                () = until(taking, lane, false) => {
                    return self.pause(consumer).await.map(|()| End::Paused);
                }
                next = consumer.next() => next,
            };
            self.take(first, &mut consumer)?;
            // Let others run: a full queue would keep this loop busy for ever.
            tokio::task::yield_now().await;
        }
    }

    /// Takes no more deliveries until they are wanted again. What arrives meanwhile is handed on
    /// all the same: whoever does not want it returns it.
    async fn pause(&self, mut consumer: Consumer) -> Result<(), String> {
        self.shared.status.consuming(self.source, false);
        let options = BasicCancelOptions::default();
        let cancelling = self.channel.basic_cancel(consumer.tag(), options);
        self.shared.in_time(cancelling).await?;
        while let Some(next) = consumer.next().await {
            let message = next.map_err(|error| explain(&error))?;
            self.hand_on(vec![self.read(message)]);
        }
        Ok(())
    }

    /// Hands on a message and all that are ready behind it; gives the tag of the last.
    fn take(
        &self,
        first: Option<lapin::Result<Message>>,
        consumer: &mut Consumer,
    ) -> Result<Option<u64>, String> {
        let mut batch = Vec::new();
        let mut next = Some(first);
        let mut end = Ok(());
        while let Some(item) = next {
            match item {
                Some(Ok(message)) => batch.push(self.read(message)),
                Some(Err(error)) => end = Err(explain(&error)),
                None => end = Err("the broker ended the consumer".to_owned()),
            }
            if end.is_err() || batch.len() >= BATCH {
                break;
            }
            next = consumer.next().now_or_never();
        }
        let last = batch.last().map(|delivery| delivery.receipt.tag);
        if !batch.is_empty() {
            self.hand_on(batch);
        }
        end.map(|()| last)
    }

    fn hand_on(&self, batch: Vec<Delivery>) {
        let lane = self.source.lane();
        self.shared.telemetry.delivered(lane, batch.len() as u64);
        // Without a dispatcher nothing is settled, and the broker delivers again elsewhere.
        drop(self.shared.deliveries.send(batch));
    }

    fn read(&self, message: Message) -> Delivery {
        let is_admitted = matches!(self.source, Source::Admitted(_));
        let headers = headers(message.properties.headers().as_ref(), is_admitted);
        let decoding = decode(message.data.into(), self.shared.options.default_region);
        if is_first_round(&headers) {
            for field in decoding.hints.fields() {
                self.shared.telemetry.unrecognised_hint(field);
            }
        }
        Delivery {
            receipt: Receipt {
                epoch: self.epoch,
                tag: message.delivery_tag,
            },
            source_lane: self.source.lane(),
            own_queue: self.belongs_here(&decoding.decoded),
            headers,
            received_at: Instant::now(),
            decoded: decoding.decoded,
        }
    }

    /// Whether a message stands in its account's own queue. Anybody can publish another's there.
    fn belongs_here(&self, decoded: &Decoded) -> bool {
        match (self.source, decoded) {
            (Source::Hot(queue), Decoded::Job(job)) => {
                job.lane() == queue.lane && job.head.account == queue.account
            }
            _ => false,
        }
    }

    /// Takes no more deliveries, but keeps the channel for the acknowledgement of those that have
    /// been handed on. What arrives meanwhile returns to the queue with the channel's end.
    async fn cease(&self, mut consumer: Consumer) -> Result<(), String> {
        self.shared.status.consuming(self.source, false);
        let cancel = self
            .channel
            .basic_cancel(consumer.tag(), BasicCancelOptions::default());
        let limit = self.shared.options.connect_timeout;
        let settled = async {
            if !matches!(timeout(limit, cancel).await, Ok(Ok(()))) {
                tracing::debug!("the broker did not answer the cancellation of a consumer");
            }
            while let Some(Ok(_)) = consumer.next().await {}
            self.settle_the_rest().await
        };
        tokio::select! {
            () = self.shared.close.cancelled() => Ok(()),
            settled = settled => settled,
        }
    }

    /// Keeps the channel for acknowledgements alone.
    async fn settle_the_rest(&self) -> Result<(), String> {
        tokio::select! {
            () = self.shared.close.cancelled() => Ok(()),
            () = self.lost.notified() => Err(LOST.to_owned()),
            () = self.gone() => Err(GONE.to_owned()),
        }
    }

    /// Waits for the end of the channel. A consumer's stream ends with it; where there is no
    /// consumer, nobody would notice, and a lost connection is built anew only when every source
    /// has let go of it.
    async fn gone(&self) {
        while self.channel.status().connected() {
            sleep(LOOK).await;
        }
    }
}

/// Waits until deliveries of a lane are wanted, or are not.
async fn until(taking: &mut watch::Receiver<[bool; 2]>, lane: Lane, wanted: bool) {
    let changed = taking
        .wait_for(|taking| taking[lane.index()] == wanted)
        .await
        .is_ok();
    if !changed {
        // Nobody is left to change it.
        std::future::pending::<()>().await;
    }
}

/// Whether a job has never been shed or tried: what is counted per job is counted then.
const fn is_first_round(headers: &JobHeaders) -> bool {
    headers.sheds == 0 && headers.attempts == 0
}

/// Our own headers; an admission counts only where nobody but an API server can publish.
pub(super) fn headers(table: Option<&FieldTable>, admitted: bool) -> JobHeaders {
    JobHeaders::from_received(|name| {
        if name == JobHeaders::ADMITTED_MS && !admitted {
            return None;
        }
        integer(table?.inner().get(name)?)
    })
}

/// Clients of different languages write the same small number in different types.
pub(super) fn integer(value: &AMQPValue) -> Option<i64> {
    match *value {
        AMQPValue::ShortShortInt(value) => Some(value.into()),
        AMQPValue::ShortShortUInt(value) => Some(value.into()),
        AMQPValue::ShortInt(value) => Some(value.into()),
        AMQPValue::ShortUInt(value) => Some(value.into()),
        AMQPValue::LongInt(value) => Some(value.into()),
        AMQPValue::LongUInt(value) => Some(value.into()),
        AMQPValue::LongLongInt(value) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[(&str, AMQPValue)]) -> FieldTable {
        let mut table = FieldTable::default();
        for (name, value) in entries {
            table.insert((*name).into(), value.clone());
        }
        table
    }

    #[test]
    fn every_integer_type_counts() {
        for value in [
            AMQPValue::ShortShortInt(7),
            AMQPValue::ShortShortUInt(7),
            AMQPValue::ShortInt(7),
            AMQPValue::ShortUInt(7),
            AMQPValue::LongInt(7),
            AMQPValue::LongUInt(7),
            AMQPValue::LongLongInt(7),
        ] {
            let table = table(&[(JobHeaders::SHEDS, value)]);
            assert_eq!(headers(Some(&table), false).sheds, 7);
        }
    }

    #[test]
    fn what_was_shed_or_tried_is_not_in_its_first_round() {
        assert!(is_first_round(&headers(None, false)));
        for name in [JobHeaders::SHEDS, JobHeaders::ATTEMPT] {
            let table = table(&[(name, AMQPValue::LongLongInt(1))]);
            assert!(!is_first_round(&headers(Some(&table), false)), "{name}");
        }
    }

    #[test]
    fn anything_else_counts_as_absent() {
        for value in [
            AMQPValue::LongString("7".into()),
            AMQPValue::Boolean(true),
            AMQPValue::Timestamp(7),
            AMQPValue::LongLongInt(-7),
        ] {
            let table = table(&[(JobHeaders::SHEDS, value)]);
            assert_eq!(headers(Some(&table), false), JobHeaders::default());
        }
        assert_eq!(headers(None, true), JobHeaders::default());
    }

    #[test]
    fn an_admission_counts_only_from_a_queue_of_admitted_jobs() {
        let table = table(&[(JobHeaders::ADMITTED_MS, AMQPValue::LongLongInt(5))]);
        assert_eq!(headers(Some(&table), false).admitted_ms, None);
        assert_eq!(headers(Some(&table), true).admitted_ms, Some(5));
    }
}
