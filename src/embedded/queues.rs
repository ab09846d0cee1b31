//! The message broker in memory: two lanes, their delay and parking queues, and a dead queue.
//!
//! It keeps the promises that the real one makes: what is not acknowledged when a session ends
//! comes again, at its old place; what was shed comes back after the delay; each session has at
//! most its prefetch unsettled, per lane.

mod session;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use crate::dispatch::ports::{DeadLetter, Delivery, Receipt, Requeue, Route};
use crate::domain::{JobHeaders, Lane};
use crate::intake::decode::decode;
pub use session::Session;

/// How long messages stay away from their lane.
#[derive(Debug, Clone, Copy)]
pub struct Delays {
    /// After a shed.
    pub shed: Duration,
    /// In the parking queue, by lane in drain order.
    pub park: [Duration; 2],
}

impl Default for Delays {
    /// One second after a shed; parked for 5 s (transactional) or 30 s (marketing).
    fn default() -> Self {
        Self {
            shed: Duration::from_secs(1),
            park: [Duration::from_secs(5), Duration::from_secs(30)],
        }
    }
}

/// Outcome events as they were announced.
#[derive(Debug, Clone)]
pub struct Told {
    /// The outcome's name.
    pub outcome: &'static str,
    /// The JSON array.
    pub body: Vec<u8>,
}

#[derive(Debug, Clone)]
struct Message {
    payload: Bytes,
    headers: JobHeaders,
    /// Whether it came by the queue for what an API server has admitted.
    admitted: bool,
}

/// A lane's two queues.
#[derive(Debug, Default)]
struct LaneQueues {
    /// What an API server has admitted: taken first.
    admitted: VecDeque<Message>,
    shared: VecDeque<Message>,
}

impl LaneQueues {
    fn of(&mut self, message: &Message) -> &mut VecDeque<Message> {
        if message.admitted {
            &mut self.admitted
        } else {
            &mut self.shared
        }
    }

    fn put(&mut self, message: Message) {
        self.of(&message).push_back(message);
    }

    fn put_back(&mut self, message: Message) {
        self.of(&message).push_front(message);
    }

    fn take(&mut self) -> Option<Message> {
        let admitted = self.admitted.pop_front();
        admitted.or_else(|| self.shared.pop_front())
    }

    fn len(&self) -> usize {
        self.admitted.len() + self.shared.len()
    }
}

#[derive(Debug)]
struct Consumer {
    deliveries: mpsc::UnboundedSender<Vec<Delivery>>,
    prefetch: usize,
    epoch: u64,
    next_tag: u64,
    unsettled: BTreeMap<u64, (Lane, Message)>,
    unsettled_by_lane: [usize; 2],
    /// Whether it takes deliveries, by lane.
    taking: [bool; 2],
}

#[derive(Debug, Default)]
struct State {
    lanes: [LaneQueues; 2],
    away: BTreeMap<(Instant, u64), (Lane, Message)>,
    away_count: u64,
    consumers: BTreeMap<u32, Consumer>,
    next_consumer: u32,
    next_epoch: u64,
    dead: Vec<DeadLetter>,
    told: Vec<Told>,
}

/// The broker; clones are the same broker.
#[derive(Debug, Clone)]
pub struct EmbeddedQueues {
    state: Arc<Mutex<State>>,
    delays: Delays,
    away_changed: Arc<Notify>,
}

impl EmbeddedQueues {
    /// An empty broker. Must be called within a runtime, whose clock the delays follow.
    #[must_use]
    pub fn new(delays: Delays) -> Self {
        let queues = Self {
            state: Arc::default(),
            delays,
            away_changed: Arc::default(),
        };
        tokio::spawn(bring_back(
            Arc::downgrade(&queues.state),
            Arc::clone(&queues.away_changed),
        ));
        queues
    }

    /// Puts a message at the end of a lane's queue.
    pub fn publish(&self, lane: Lane, payload: impl Into<Bytes>, headers: JobHeaders) {
        let mut state = self.lock();
        state.lanes[lane.index()].put(Message {
            payload: payload.into(),
            headers: unadmitted(headers),
            admitted: false,
        });
        state.deliver();
    }

    /// Opens a session that consumes both lanes with so much prefetch each.
    #[must_use]
    pub fn connect(&self, prefetch: usize) -> (Session, mpsc::UnboundedReceiver<Vec<Delivery>>) {
        let (deliveries, received) = mpsc::unbounded_channel();
        let mut state = self.lock();
        let source = state.next_consumer;
        state.next_consumer += 1;
        state.next_epoch += 1;
        let epoch = state.next_epoch;
        state.consumers.insert(
            source,
            Consumer {
                deliveries,
                prefetch,
                epoch,
                next_tag: 1,
                unsettled: BTreeMap::new(),
                unsettled_by_lane: [0; 2],
                taking: [true; 2],
            },
        );
        state.deliver();
        (
            Session {
                queues: self.clone(),
                source,
            },
            received,
        )
    }

    /// Messages of a lane that wait to be delivered.
    #[must_use]
    pub fn ready(&self, lane: Lane) -> usize {
        self.lock().lanes[lane.index()].len()
    }

    /// Messages delivered and not settled.
    #[must_use]
    pub fn unsettled(&self) -> usize {
        self.lock()
            .consumers
            .values()
            .map(|consumer| consumer.unsettled.len())
            .sum()
    }

    /// Messages in delay and parking queues.
    #[must_use]
    pub fn away(&self) -> usize {
        self.lock().away.len()
    }

    /// Messages in the dead queue.
    #[must_use]
    pub fn dead(&self) -> Vec<DeadLetter> {
        self.lock().dead.clone()
    }

    /// Takes the outcome events announced since the last call.
    #[must_use]
    pub fn take_told(&self) -> Vec<Told> {
        std::mem::take(&mut self.lock().told)
    }

    /// Every message that no worker has settled, wherever it is: ready, away or delivered.
    #[must_use]
    pub fn left(&self) -> Vec<Bytes> {
        let state = self.lock();
        let ready = state
            .lanes
            .iter()
            .flat_map(|lane| lane.admitted.iter().chain(&lane.shared));
        let away = state.away.values().map(|(_, message)| message);
        let unsettled = state
            .consumers
            .values()
            .flat_map(|consumer| consumer.unsettled.values())
            .map(|(_, message)| message);
        let left = ready.chain(away).chain(unsettled);
        left.map(|message| message.payload.clone()).collect()
    }

    /// Messages that no session has: in a lane's queues, or on their way back there.
    #[must_use]
    pub fn unheld(&self, lane: Lane) -> usize {
        let state = self.lock();
        let away = state.away.values().filter(|(of, _)| *of == lane).count();
        state.lanes[lane.index()].len() + away
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes jobs, each by its way.
    pub fn requeue(&self, jobs: &[Requeue]) {
        for job in jobs {
            self.send_away(job);
        }
    }

    fn send_away(&self, job: &Requeue) {
        let admitted = job.route == Route::Admitted;
        let message = Message {
            payload: job.payload.to_bytes(),
            headers: if admitted {
                job.headers
            } else {
                unadmitted(job.headers)
            },
            admitted,
        };
        let mut state = self.lock();
        let delay = match job.route {
            Route::Shed => self.delays.shed,
            Route::Park => self.delays.park[job.lane.index()],
            Route::Queue | Route::Admitted => {
                state.lanes[job.lane.index()].put(message);
                return state.deliver();
            }
        };
        let number = state.away_count;
        state.away_count += 1;
        state
            .away
            .insert((Instant::now() + delay, number), (job.lane, message));
        drop(state);
        self.away_changed.notify_one();
    }
}

/// The instant of an admission counts only on what comes by the queue for it.
fn unadmitted(headers: JobHeaders) -> JobHeaders {
    JobHeaders {
        admitted_ms: None,
        ..headers
    }
}

/// Brings messages back to their lanes as their delays end, for as long as the broker lives.
async fn bring_back(state: Weak<Mutex<State>>, away_changed: Arc<Notify>) {
    loop {
        let next = {
            let Some(state) = state.upgrade() else { return };
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.bring_back(Instant::now());
            state.away.first_key_value().map(|((due, _), _)| *due)
        };
        let due = next.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        tokio::select! {
            () = sleep_until(due) => {}
            () = away_changed.notified() => {}
        }
    }
}

impl State {
    fn bring_back(&mut self, now: Instant) {
        while let Some(entry) = self.away.first_entry().filter(|entry| entry.key().0 <= now) {
            let (lane, message) = entry.remove();
            self.lanes[lane.index()].put(message);
        }
        self.deliver();
    }

    /// Delivers what waits to whoever has most room for it.
    fn deliver(&mut self) {
        let mut batches: BTreeMap<u32, Vec<Delivery>> = BTreeMap::new();
        for lane in Lane::ALL {
            while self.lanes[lane.index()].len() > 0 {
                let room = |consumer: &Consumer| {
                    let room = consumer.prefetch - consumer.unsettled_by_lane[lane.index()];
                    if consumer.taking[lane.index()] {
                        room
                    } else {
                        0
                    }
                };
                let open = self
                    .consumers
                    .iter_mut()
                    .filter(|(_, consumer)| !consumer.deliveries.is_closed());
                let Some((source, consumer)) = open.max_by_key(|(_, consumer)| room(consumer))
                else {
                    break;
                };
                if room(consumer) == 0 {
                    break;
                }
                let Some(message) = self.lanes[lane.index()].take() else {
                    break;
                };
                batches
                    .entry(*source)
                    .or_default()
                    .push(consumer.take(lane, message));
            }
        }
        for (source, batch) in batches {
            if let Some(consumer) = self.consumers.get(&source) {
                // A receiver that is gone leaves its messages unsettled until its session ends.
                let _ = consumer.deliveries.send(batch);
            }
        }
    }

    /// Some unsettled messages go back to the head of their lanes, in their old order.
    fn give_back(&mut self, source: u32, receipts: &[Receipt]) {
        let Some(consumer) = self.consumers.get_mut(&source) else {
            return;
        };
        let live = receipts.iter().filter(|one| one.epoch == consumer.epoch);
        let mut tags: Vec<u64> = live.map(|receipt| receipt.tag).collect();
        tags.sort_unstable();
        for tag in tags.into_iter().rev() {
            if let Some((lane, message)) = consumer.unsettled.remove(&tag) {
                consumer.unsettled_by_lane[lane.index()] -= 1;
                self.lanes[lane.index()].put_back(message);
            }
        }
    }

    /// Everything unsettled goes back to the head of its lane, in its old order.
    fn return_unsettled(&mut self, source: u32) {
        let Some(consumer) = self.consumers.get_mut(&source) else {
            return;
        };
        consumer.unsettled_by_lane = [0; 2];
        for (lane, message) in std::mem::take(&mut consumer.unsettled).into_values().rev() {
            self.lanes[lane.index()].put_back(message);
        }
    }
}

impl Consumer {
    fn take(&mut self, lane: Lane, message: Message) -> Delivery {
        let tag = self.next_tag;
        self.next_tag += 1;
        self.unsettled_by_lane[lane.index()] += 1;
        let delivery = Delivery {
            receipt: Receipt {
                epoch: self.epoch,
                tag,
            },
            source_lane: lane,
            own_queue: false,
            headers: message.headers,
            received_at: Instant::now(),
            decoded: decode(message.payload.clone(), None).decoded,
        };
        self.unsettled.insert(tag, (lane, message));
        delivery
    }
}
