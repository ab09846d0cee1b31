//! The cases: what is raised against a job, and what should be seen of it.

use jiff::{SignedDuration, Timestamp};

use super::{LANES, RECIPIENT, SENDER};
use crate::support::counters::Counters;
use crate::support::jobs::Offer;

/// Everything that may turn a job away, in the order in which they decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hurdle {
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

pub use Hurdle::{
    Cancelled, Capped, Ceiling, NotBefore, Number, OptedOut, Paused, QuietHours, Sent, Service,
};

pub const HURDLES: [Hurdle; 10] = [
    OptedOut, Cancelled, Paused, NotBefore, QuietHours, Sent, Capped, Number, Service, Ceiling,
];

/// What is to be seen of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Its last event: outcome, reason, and when the next message may pass.
    Told(String, String, Option<Timestamp>),
    /// It waits: reason, and when it is due, where that is not a matter of turns.
    Waits(String, Option<Timestamp>),
    /// Neither.
    Nothing,
}

/// One account with every limit and some hurdles raised, and one job.
pub struct Case {
    pub account: String,
    pub lane: &'static str,
    pub raised: Vec<Hurdle>,
}

impl Case {
    pub fn new(lane: &'static str, raised: &[Hurdle]) -> Self {
        let names: Vec<_> = raised.iter().map(|hurdle| format!("{hurdle:?}")).collect();
        let account = format!("{lane}-{}-{}", names.len(), names.concat());
        Self {
            account: account.chars().take(64).collect(),
            lane,
            raised: raised.to_vec(),
        }
    }

    pub fn has(&self, hurdle: Hurdle) -> bool {
        self.raised.contains(&hurdle)
    }

    pub fn job(&self, hours: &Hours) -> Offer {
        let job = self.offer("it").with("from", SENDER);
        let job = job.with("service_id", "svc").with("category", "offers");
        let job = job.with("campaign_id", "c").with("journey_id", "j");
        if self.has(NotBefore) {
            job.with("not_before", hours.later.to_string())
        } else {
            job
        }
    }

    pub fn offer(&self, id: &str) -> Offer {
        let make = if self.lane == LANES[0] {
            Offer::otp
        } else {
            Offer::marketing
        };
        let offer = make(&self.account, id).queued_now();
        offer
            .with("to", RECIPIENT)
            .with("recipient_timezone", "Etc/UTC")
    }

    /// Jobs that have gone before.
    pub fn earlier(&self) -> Vec<Offer> {
        let sent = self.has(Sent).then(|| self.offer("it"));
        let capped = self.has(Capped).then(|| self.offer("other"));
        let capped = capped.map(|offer| offer.with("category", "offers"));
        sent.into_iter().chain(capped).collect()
    }

    /// Counters that others have raised to their ceilings.
    pub fn counters(&self, counters: &Counters) -> Vec<(String, u32)> {
        let ceiling = if self.lane == LANES[0] { 10 } else { 8 };
        let reached = [
            (Number, format!("number:{SENDER}"), 1),
            (Service, "service:svc".to_owned(), 1),
            (Ceiling, "count".to_owned(), ceiling),
        ];
        let reached = reached.into_iter().filter(|(hurdle, ..)| self.has(*hurdle));
        reached
            .map(|(_, name, count)| (counters.key(&self.account, &name), count))
            .collect()
    }

    pub fn expected(&self, hours: &Hours) -> Seen {
        let told =
            |outcome: &str, reason: &str, next| Seen::Told(outcome.into(), reason.into(), next);
        match self.raised.first() {
            Some(OptedOut) => told("refused", "opted_out", None),
            Some(Cancelled) => told("cancelled", "", None),
            Some(Paused) => Seen::Waits("paused".into(), None),
            Some(NotBefore) => Seen::Waits("not_before".into(), Some(hours.later)),
            Some(QuietHours) => told("refused", "quiet_hours", Some(hours.opening)),
            None | Some(Sent) => told("dispatched", "", None),
            Some(Capped) => told("refused", "frequency_cap", None),
            Some(Number) => Seen::Waits("number".into(), None),
            Some(Service) => Seen::Waits("service".into(), None),
            Some(Ceiling) => Seen::Nothing,
        }
    }

    /// Whether it goes once the counters' windows end.
    pub fn is_late(&self) -> bool {
        matches!(self.raised.first(), Some(Number | Service | Ceiling))
    }
}

/// The hours that this run's jobs meet.
pub struct Hours {
    /// When messages may be sent: not now.
    pub window: String,
    /// When that begins.
    pub opening: Timestamp,
    /// The instant that a publisher asks for.
    pub later: Timestamp,
}

impl Hours {
    pub fn new() -> Self {
        let now = Timestamp::now();
        let minutes = now.as_second().div_euclid(60) + 180;
        let opening = Timestamp::from_second(minutes * 60).unwrap();
        let at = |minutes: i64| format!("{:02}:{:02}", minutes / 60 % 24, minutes % 60);
        let later = now + SignedDuration::from_hours(1);
        Self {
            window: format!("{}-{}", at(minutes), at(minutes + 60)),
            opening,
            later: Timestamp::from_millisecond(later.as_millisecond()).unwrap(),
        }
    }
}

/// A case without hurdles, one for each hurdle, and those from each hurdle on together. Where the
/// lane's ceiling is reached nobody is asked before the window ends: it stands alone.
pub fn cases() -> Vec<Case> {
    let together = (0..HURDLES.len() - 2).map(|first| &HURDLES[first..HURDLES.len() - 1]);
    let alone = HURDLES.chunks(1);
    let raised: Vec<_> = [&[][..]].into_iter().chain(alone).chain(together).collect();
    let of_lane = |lane| raised.iter().map(move |raised| Case::new(lane, raised));
    LANES.into_iter().flat_map(of_lane).collect()
}
