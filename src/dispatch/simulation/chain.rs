//! The whole chain of gates and limits, in both lanes: what becomes of a job that each of them turns
//! away, in which order they decide, and that what one of them turns away has used nothing of
//! another.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::ports::wall;
use crate::accounts::{AccountPolicy, CapRule, HoldKind, QuietAction, QuietPolicy};
use crate::dispatch::ports::{
    Accepted, AccountRequest, CapKey, CapRequest, Carrier, Clock, Conclusion, Door, Hold,
    JobRequest, SendError, TargetCeiling, TryId, TryResult,
};
use crate::dispatch::{Fleet, FleetCarrier, Pipeline, PipelineOptions, RetryPolicy};
use crate::domain::{
    AccountId, Budget, Ceilings, Channel, Job, JobHeaders, JobId, Lane, Reserve, Verdict,
    recipient_digest,
};
use crate::embedded::{Delays, EmbeddedQueues, MemoryRecords};
use crate::gates::quiet_hours::{ChannelWindows, SendWindow};
use crate::meter::{CounterStore as _, Failover, FailoverOptions, MemoryStore};
use crate::settings::BreakerSettings;
use crate::telemetry::Telemetry;

const RECIPIENT: &str = "+447700900001";
const SENDER: &str = "+447700900777";

/// Everything that may turn a job away, in the order in which they decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Hurdle {
    OptedOut,
    Cancelled,
    Paused,
    NotBefore,
    QuietHours,
    Sent,
    Capped,
    Number,
    Service,
    Ceiling,
}

impl Hurdle {
    const ALL: [Self; 10] = [
        Self::OptedOut,
        Self::Cancelled,
        Self::Paused,
        Self::NotBefore,
        Self::QuietHours,
        Self::Sent,
        Self::Capped,
        Self::Number,
        Self::Service,
        Self::Ceiling,
    ];

    /// What is to be seen of the job a moment later.
    fn answer(self, lane: Lane) -> Seen {
        match self {
            Self::OptedOut => Seen::told("refused", "opted_out"),
            Self::Cancelled => Seen::told("cancelled", ""),
            Self::Paused | Self::NotBefore => Seen::Waiting,
            Self::QuietHours => Seen::told("refused", "quiet_hours"),
            Self::Sent => Seen::told("dispatched", ""),
            Self::Capped => Seen::told("refused", "frequency_cap"),
            Self::Ceiling if lane == Lane::Transactional => Seen::Held,
            Self::Number | Self::Service | Self::Ceiling => Seen::Shed,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Told(String, String),
    Waiting,
    Shed,
    Held,
    /// At the carrier, and told so.
    Went,
}

impl Seen {
    fn told(outcome: &str, reason: &str) -> Self {
        Self::Told(outcome.into(), reason.into())
    }
}

/// Wall time that follows the runtime's paused clock; it starts at eight in the morning in London.
struct Morning(tokio::time::Instant);

impl Clock for Morning {
    fn now(&self) -> Timestamp {
        wall(self.0.elapsed())
    }
}

#[derive(Clone, Default)]
struct Went(Arc<Mutex<Vec<String>>>);

impl Carrier for Went {
    async fn send(&self, job: &Job, _: u32) -> Result<Accepted, SendError> {
        self.0.lock().unwrap().push(job.head.id.to_string());
        Ok(Accepted::default())
    }
}

/// One worker, one account with every limit, and one job.
struct World {
    lane: Lane,
    raised: Vec<Hurdle>,
    queues: EmbeddedQueues,
    records: MemoryRecords,
    store: MemoryStore,
    went: Went,
    clock: Arc<Morning>,
}

fn account() -> AccountId {
    AccountId::parse("acct").unwrap()
}

fn policy(raised: &[Hurdle]) -> AccountPolicy {
    let ceilings = Ceilings::of(
        Budget::per_second(10).unwrap(),
        Reserve::percent(20).unwrap(),
    );
    let mut policy = AccountPolicy::of(ceilings);
    policy.caps = vec![CapRule {
        name: "daily".into(),
        channel: Some(Channel::Sms),
        category: Some("offers".into()),
        limit: 1,
        window: Duration::from_secs(86_400),
    }];
    policy.numbers = [(SENDER.into(), 1)].into();
    policy.services = [("svc".into(), 1)].into();
    if raised.contains(&Hurdle::QuietHours) {
        let closed = SendWindow::parse("00:00-00:01").unwrap();
        policy.quiet_hours = QuietPolicy::On {
            windows: ChannelWindows::standard().with(Channel::Sms, Some(closed)),
            zone: TimeZone::get("Europe/London").unwrap(),
            action: QuietAction::Refuse,
        };
    }
    policy
}

impl World {
    async fn with(lane: Lane, raised: &[Hurdle]) -> Self {
        let clock = Arc::new(Morning(tokio::time::Instant::now()));
        let world = Self {
            lane,
            raised: raised.to_vec(),
            queues: EmbeddedQueues::new(Delays::default()),
            records: MemoryRecords::new(clock.clone()),
            store: MemoryStore::new(Duration::from_secs(900), clock.clone()),
            went: Went::default(),
            clock,
        };
        for hurdle in raised {
            world.raise(*hurdle).await;
        }
        world
    }

    async fn raise(&self, hurdle: Hurdle) {
        match hurdle {
            Hurdle::OptedOut => self.records.opt_out(&account(), RECIPIENT),
            Hurdle::Cancelled => {
                let hold = Some(Hold::Cancelled);
                self.records.hold(&account(), HoldKind::Campaign, "c", hold);
            }
            Hurdle::Paused => {
                let hold = Some(Hold::Paused);
                self.records.hold(&account(), HoldKind::Journey, "j", hold);
            }
            Hurdle::NotBefore | Hurdle::QuietHours => {}
            Hurdle::Sent => self.was_sent().await,
            Hurdle::Capped => {
                self.admit(&[Self::request("other-1", true, false, false)])
                    .await;
            }
            Hurdle::Number => {
                self.admit(&[Self::request("other-2", false, true, false)])
                    .await;
            }
            Hurdle::Service => {
                self.admit(&[Self::request("other-3", false, false, true)])
                    .await;
            }
            Hurdle::Ceiling => {
                let ceiling = policy(&[]).ceilings.of_lane(self.lane);
                let before = self.count().await;
                for n in before..ceiling {
                    let id = format!("filler-{n}");
                    self.admit(&[Self::request(&id, false, false, false)]).await;
                }
            }
        }
    }

    async fn was_sent(&self) {
        let sent = Conclusion {
            account: account(),
            id: JobId::parse("it").unwrap(),
            try_id: TryId(1),
            result: TryResult::Sent {
                carrier: "default".into(),
                carrier_ref: None,
            },
            frees: Vec::new(),
        };
        self.store.conclude(&[sent]).await.unwrap();
    }

    /// A request of a job to the same recipient, through the same sender and service, as wanted.
    fn request(id: &str, cap: bool, number: bool, service: bool) -> JobRequest {
        let recipient = recipient_digest(&account(), RECIPIENT);
        let key = CapKey {
            cap: "daily".into(),
            recipient,
        };
        let cap = cap.then(|| CapRequest {
            key,
            limit: 1,
            window: Duration::from_secs(86_400),
        });
        let target = |target: &str| TargetCeiling {
            target: target.into(),
            per_second: 1,
        };
        JobRequest {
            id: JobId::parse(id).unwrap(),
            lane: Lane::Transactional,
            door: Door::Worker,
            try_id: TryId(7),
            claim_for: Duration::from_secs(11),
            caps: cap.into_iter().collect(),
            number: number.then(|| target(SENDER)),
            service: service.then(|| target("svc")),
        }
    }

    async fn admit(&self, jobs: &[JobRequest]) -> (Vec<Verdict>, u32) {
        let request = AccountRequest {
            account: account(),
            ceilings: policy(&[]).ceilings,
            jobs: jobs.to_vec(),
        };
        let answer = self.store.admit(&[request]).await.remove(0).unwrap();
        (answer.verdicts, answer.counter.count)
    }

    async fn count(&self) -> u32 {
        self.admit(&[]).await.1
    }

    fn job(&self) -> String {
        let mut job = json!({
            "id": "it", "account_id": "acct", "channel": "sms", "to": RECIPIENT,
            "from": SENDER, "service_id": "svc", "category": "offers",
            "campaign_id": "c", "journey_id": "j",
            "metadata": { "traffic_lane": self.lane.as_str() },
        });
        if self.raised.contains(&Hurdle::NotBefore) {
            job["not_before"] = wall(Duration::from_secs(3600)).to_string().into();
        }
        job.to_string()
    }

    /// Publishes the job to a worker, and says what is to be seen of it a moment later.
    async fn run(&self) -> Seen {
        let (session, deliveries) = self.queues.connect(16);
        let (soft, hard) = (CancellationToken::new(), CancellationToken::new());
        let running = self.pipeline(session).run(deliveries, soft, hard.clone());
        let worker = tokio::spawn(running);
        sleep(Duration::from_millis(20)).await;
        self.queues
            .publish(self.lane, self.job(), JobHeaders::default());
        sleep(Duration::from_millis(80)).await;
        let seen = self.look();
        hard.cancel();
        worker.await.unwrap();
        seen
    }

    fn look(&self) -> Seen {
        let told = self.queues.take_told().pop();
        let told = told.map(|told| serde_json::from_slice::<Vec<Value>>(&told.body).unwrap());
        let went = !self.went.0.lock().unwrap().is_empty();
        match (told, went) {
            (Some(_), true) => Seen::Went,
            (Some(events), false) => {
                let text = |name| events[0][name].as_str().unwrap_or_default().to_owned();
                let knows_more =
                    text("reason") == "quiet_hours" || text("reason") == "frequency_cap";
                assert_eq!(events[0]["next_allowed_at"].is_string(), knows_more);
                Seen::Told(text("outcome"), text("reason"))
            }
            (None, _) if self.records.waiting() == 1 => Seen::Waiting,
            (None, _) if self.queues.away() == 1 => Seen::Shed,
            (None, _) => {
                assert_eq!(self.queues.unsettled(), 1);
                Seen::Held
            }
        }
    }

    fn pipeline(
        &self,
        session: crate::embedded::Session,
    ) -> Pipeline<crate::embedded::Session, Failover<MemoryStore>, Went, Morning, MemoryRecords>
    {
        let telemetry = Telemetry::unexported();
        let meter = Failover::new(
            self.store.clone(),
            FailoverOptions::default(),
            self.clock.clone(),
            telemetry.clone(),
        );
        let carrier = FleetCarrier {
            name: "default".into(),
            adapter: Arc::new(self.went.clone()),
            max_in_flight: 8,
            timeout: Duration::from_secs(10),
            breaker: BreakerSettings {
                failures: 20,
                open: Duration::from_millis(500),
                open_cap: Duration::from_secs(2),
            },
        };
        let policy = Arc::new(policy(&self.raised));
        let options = PipelineOptions {
            prefetch: 16,
            sheds_per_second: [5000, 1000],
            retry: RetryPolicy {
                max_attempts: 5,
                base: Duration::from_millis(100),
                longest_here: Duration::from_secs(2),
            },
            announce_outcomes: true,
            claim_life: Duration::from_secs(900),
            policy: Arc::new(move |_| Some(Arc::clone(&policy))),
            pressure: None,
            try_seed: 1,
        };
        Pipeline::new(
            Arc::new(session),
            Arc::new(meter),
            Fleet::new(vec![carrier], |_| 0),
            self.clock.clone(),
            Arc::new(self.records.clone()),
            telemetry,
            options,
        )
        .unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_nothing_turns_away_goes() {
    for lane in Lane::ALL {
        let world = World::with(lane, &[]).await;
        assert_eq!(world.run().await, Seen::Went, "{lane}");
        assert_eq!(world.count().await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn each_hurdle_has_its_own_answer_in_both_lanes() {
    for lane in Lane::ALL {
        for hurdle in Hurdle::ALL {
            let world = World::with(lane, &[hurdle]).await;
            assert_eq!(world.run().await, hurdle.answer(lane), "{hurdle:?} {lane}");
            assert!(world.went.0.lock().unwrap().is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_hurdles_the_first_decides() {
    for lane in Lane::ALL {
        for first in 0..Hurdle::ALL.len() {
            // Where the ceiling is reached, nobody is asked before the window ends.
            let raised = &Hurdle::ALL[first..Hurdle::ALL.len() - 1];
            let Some(hurdle) = raised.first() else {
                continue;
            };
            let world = World::with(lane, raised).await;
            assert_eq!(world.run().await, hurdle.answer(lane), "{raised:?} {lane}");
        }
    }
}

/// What one turned away has used nothing of another: neither the account's count, nor the cap's, nor
/// the number's or the service's.
#[tokio::test(start_paused = true)]
async fn what_is_turned_away_has_used_nothing() {
    for lane in Lane::ALL {
        for hurdle in Hurdle::ALL {
            if (hurdle, lane) == (Hurdle::Ceiling, Lane::Transactional) {
                continue; // Nothing at all passes before the window ends.
            }
            let world = World::with(lane, &[hurdle]).await;
            let before = world.count().await;
            world.run().await;
            assert_eq!(world.count().await, before, "{hurdle:?} {lane}");
            let witness = World::request(
                "witness",
                hurdle != Hurdle::Capped,
                hurdle != Hurdle::Number,
                hurdle != Hurdle::Service,
            );
            let (verdicts, count) = world.admit(&[witness]).await;
            let admitted = Verdict::Admitted {
                possible_duplicate: false,
            };
            assert_eq!(
                (verdicts, count),
                (vec![admitted], before + 1),
                "{hurdle:?} {lane}"
            );
        }
    }
}
