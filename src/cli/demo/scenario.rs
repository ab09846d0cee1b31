//! The scenario: what is offered, and when.

use std::time::Duration;

use bytes::Bytes;

use crate::domain::{JobId, Lane};

/// The account that sends everything, unless another one is named.
pub const ACCOUNT: &str = "demo";

/// One message that a publisher offers.
#[derive(Debug, Clone)]
pub struct Offer {
    /// When, from the start.
    pub at: Duration,
    /// The job.
    pub id: JobId,
    /// Its lane.
    pub lane: Lane,
    /// The message.
    pub payload: Bytes,
}

/// The worked example: a campaign from the start, one-time passwords from the second second on.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// How long anything is offered, in seconds.
    pub seconds: u32,
    /// Campaign messages per second.
    pub campaign: u32,
    /// One-time passwords per second.
    pub passwords: u32,
}

impl Scenario {
    /// Everything that is offered, in order of time.
    pub fn offers(self) -> impl Iterator<Item = Offer> + Send {
        let campaign = spread(0..self.seconds, self.campaign).map(|at| (at, Lane::Marketing));
        let passwords = spread(1..self.seconds, self.passwords).map(|at| (at, Lane::Transactional));
        let mut plan: Vec<_> = campaign.chain(passwords).collect();
        plan.sort_by_key(|(at, _)| *at);
        let mut numbers = [0_u32; 2];
        plan.into_iter().map(move |(at, lane)| {
            numbers[lane.index()] += 1;
            offer(at, lane, numbers[lane.index()])
        })
    }
}

/// So many instants in each of these seconds, evenly spread, none on a second's edge.
fn spread(seconds: std::ops::Range<u32>, per_second: u32) -> impl Iterator<Item = Duration> {
    seconds.flat_map(move |second| {
        (0..per_second).map(move |place| {
            let within = (f64::from(place) + 0.5) / f64::from(per_second);
            Duration::from_secs(second.into()) + Duration::from_secs_f64(within)
        })
    })
}

fn offer(at: Duration, lane: Lane, number: u32) -> Offer {
    let (name, origin, body) = match lane {
        Lane::Marketing => ("campaign", "campaign", "Our summer sale starts today"),
        Lane::Transactional => ("password", "api", "Your code is 123456"),
    };
    let id = format!("{name}-{number}");
    // Numbers that are kept free for drama, in the United Kingdom.
    let to = format!("+4477009{:05}", number % 1000);
    let payload = format!(
        r#"{{"id":"{id}","account_id":"{ACCOUNT}","channel":"sms","to":"{to}","body":"{body}","origin":"{origin}"}}"#
    );
    Offer {
        at,
        id: JobId::parse(&id).expect("letters, a dash and a number are an id"),
        lane,
        payload: payload.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Decoded;
    use crate::intake::decode::decode;

    #[test]
    fn passwords_come_from_the_second_second_on_and_all_in_order_of_time() {
        let scenario = Scenario {
            seconds: 3,
            campaign: 250,
            passwords: 15,
        };
        let offers: Vec<_> = scenario.offers().collect();
        let within = |lane, second| {
            let of_lane = offers.iter().filter(|offer| offer.lane == lane);
            of_lane.filter(|offer| offer.at.as_secs() == second).count()
        };
        let by_second = |lane| [0, 1, 2, 3].map(|second| within(lane, second));
        assert_eq!(by_second(Lane::Marketing), [250, 250, 250, 0]);
        assert_eq!(by_second(Lane::Transactional), [0, 15, 15, 0]);
        assert!(offers.is_sorted_by_key(|offer| offer.at));
    }

    #[test]
    fn every_offer_is_a_job_of_its_lane() {
        let scenario = Scenario {
            seconds: 2,
            campaign: 3,
            passwords: 2,
        };
        for offer in scenario.offers() {
            let Decoded::Job(job) = decode(offer.payload, None).decoded else {
                panic!("{} cannot be decoded", offer.id)
            };
            assert_eq!((&job.head.id, job.lane()), (&offer.id, offer.lane));
        }
    }
}
