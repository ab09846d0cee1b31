//! The pipeline as a whole: the dispatcher and the stages behind it, from start to an orderly end.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::books::Books;
use super::depart::Departures;
use super::dispatcher::{Dispatcher, Outlets, World};
use super::fleet::Fleet;
use super::options::PipelineOptions;
use super::ports::{Broker, Carrier, Clock, Delivery, Meter, Records};
use super::record::Recorder;
use super::settle::Settler;
use super::slots::{Slots, TooFewSlots};
use crate::telemetry::Telemetry;

/// A worker's pipeline, ready to run.
pub struct Pipeline<B, M, C, K, R> {
    broker: Arc<B>,
    meter: Arc<M>,
    fleet: Arc<Fleet<C>>,
    clock: Arc<K>,
    records: Arc<R>,
    telemetry: Telemetry,
    options: PipelineOptions,
    slots: Vec<Slots>,
}

impl<B: Broker, M: Meter, C: Carrier, K: Clock, R: Records> Pipeline<B, M, C, K, R> {
    /// Puts a pipeline together.
    ///
    /// # Errors
    /// When a carrier has too few slots to keep one for the transactional lane.
    pub fn new(
        broker: Arc<B>,
        meter: Arc<M>,
        fleet: Fleet<C>,
        clock: Arc<K>,
        records: Arc<R>,
        telemetry: Telemetry,
        options: PipelineOptions,
    ) -> Result<Self, TooFewSlots> {
        let slots = fleet
            .iter()
            .map(|carrier| Slots::new(carrier.max_in_flight))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            broker,
            meter,
            fleet: Arc::new(fleet),
            clock,
            records,
            telemetry,
            options,
            slots,
        })
    }

    /// Runs until `soft` is cancelled and whatever was in flight has ended and is settled.
    /// Cancelling `hard` ends it at once; what was not settled then stays with the broker.
    pub async fn run(
        self,
        deliveries: mpsc::UnboundedReceiver<Vec<Delivery>>,
        soft: CancellationToken,
        hard: CancellationToken,
    ) {
        let (events_in, events) = mpsc::unbounded_channel();
        let (record, finished) = mpsc::unbounded_channel();
        let (settle, ended) = mpsc::unbounded_channel();
        let (depart, departing) = mpsc::unbounded_channel();
        let mut stages = JoinSet::new();
        let recorder = Recorder {
            meter: Arc::clone(&self.meter),
            fleet: Arc::clone(&self.fleet),
            clock: Arc::clone(&self.clock),
            max_attempts: self.options.retry.max_attempts,
            tally: self.telemetry.tally().clone(),
            settle: settle.clone(),
        };
        stages.spawn(recorder.run(finished, events_in.clone()));
        let settler = Settler {
            broker: Arc::clone(&self.broker),
            books: Books::new(Arc::clone(&self.records), self.telemetry.clone()),
            telemetry: self.telemetry.clone(),
            announce: self.options.announce_outcomes,
        };
        stages.spawn(settler.run(ended, events_in.clone()));
        let departures = Departures {
            broker: Arc::clone(&self.broker),
            records: Arc::clone(&self.records),
            telemetry: self.telemetry.clone(),
        };
        stages.spawn(departures.run(departing, events_in.clone()));

        let world = World {
            broker: self.broker,
            meter: self.meter,
            fleet: self.fleet,
            clock: self.clock,
            records: self.records,
            telemetry: self.telemetry,
        };
        let outlets = Outlets {
            record,
            settle,
            depart,
        };
        let dispatcher = Dispatcher::new(world, self.options, self.slots, outlets, events_in);
        // Its end closes the stages' channels, one after the other, and so ends them too.
        dispatcher.run(deliveries, events, soft, hard.clone()).await;
        let all_ended = async { while stages.join_next().await.is_some() {} };
        tokio::select! {
            () = all_ended => {}
            () = hard.cancelled() => {}
        }
    }
}
