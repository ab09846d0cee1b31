//! What is published at once, apart by the way that it goes.
//!
//! A refused publish closes its channel, and with it everything on that channel that is not
//! confirmed yet, stored or not; and a batch is judged when its last confirm is in. So each way
//! gets a channel of its own.

use super::outgoing::{Outgoing, Way};

/// The messages that go one way, and their places among all.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) way: Way,
    pub(super) places: Vec<usize>,
    pub(super) messages: Vec<Outgoing>,
}

/// Sets messages apart by their ways; within one they stay in order.
pub(super) fn by_way(messages: Vec<Outgoing>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (place, message) in messages.into_iter().enumerate() {
        // There are a handful of ways at most.
        let goes =
            |part: &Part| part.way.exchange == message.exchange && part.way.lane == message.lane;
        let known = parts.iter().position(goes);
        let part = known.unwrap_or_else(|| {
            parts.push(Part {
                way: message.way(),
                places: Vec::new(),
                messages: Vec::new(),
            });
            parts.len() - 1
        });
        parts[part].places.push(place);
        parts[part].messages.push(message);
    }
    parts
}

/// Puts the results of all parts, with their messages' places, into the messages' order.
pub(super) fn in_order<R>(parts: Vec<(Vec<usize>, Vec<R>)>) -> Vec<R> {
    let mut placed: Vec<_> = parts
        .into_iter()
        .flat_map(|(places, results)| places.into_iter().zip(results))
        .collect();
    placed.sort_unstable_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use lapin::types::{FieldTable, ShortString};

    use super::super::outgoing::Body;
    use super::*;
    use crate::domain::Lane;

    fn to(exchange: &str, body: &str) -> Outgoing {
        Outgoing {
            exchange: exchange.into(),
            key: ShortString::default(),
            lane: None,
            mandatory: true,
            message_id: None,
            headers: FieldTable::default(),
            basis: lapin::BasicProperties::default(),
            body: Body::Made(body.into()),
        }
    }

    fn bodies(part: &Part) -> Vec<&[u8]> {
        let bodies = part.messages.iter().map(|message| message.body.as_bytes());
        bodies.collect()
    }

    #[test]
    fn each_way_has_its_part_and_results_go_back_to_their_places() {
        let parts = by_way(vec![to("a", "0"), to("b", "1"), to("a", "2"), to("", "3")]);
        let exchanges: Vec<_> = parts
            .iter()
            .map(|part| part.way.exchange.as_str())
            .collect();
        assert_eq!(exchanges, ["a", "b", ""]);
        assert_eq!(bodies(&parts[0]), [b"0", b"2"]);
        let results = parts.into_iter().rev().map(|part| {
            let results: Vec<_> = part
                .messages
                .iter()
                .map(|message| message.body.as_bytes().to_vec())
                .collect();
            (part.places, results)
        });
        assert_eq!(in_order(results.collect()), [b"0", b"1", b"2", b"3"]);
        assert!(by_way(Vec::new()).is_empty());
    }

    #[test]
    fn the_lanes_of_one_exchange_are_apart_where_it_leads_to_a_queue_for_each() {
        let by = |lane, body| Outgoing {
            lane: Some(lane),
            ..to("admitted", body)
        };
        let parts = by_way(vec![
            by(Lane::Marketing, "0"),
            by(Lane::Transactional, "1"),
            by(Lane::Marketing, "2"),
        ]);
        assert_eq!(parts.len(), 2);
        assert_eq!(bodies(&parts[0]), [b"0", b"2"]);
        assert_eq!(bodies(&parts[1]), [b"1"]);
    }
}
