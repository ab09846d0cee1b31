//! Queues of accounts' own: an account whose jobs keep being shed gets one in that lane, so that its
//! backlog costs nothing and stands in nobody's way, and shares again when it has long not needed it.
//!
//! A job that is over its account's ceiling in a shared queue has to go round by the delay queue, time
//! and again, which costs the broker a hundred times what sending it costs, and others' jobs stand
//! behind it. In a queue of its account's own it simply waits.
//!
//! Publishers know nothing of it. They publish with the key `<lane>.<account>`; once a queue is bound
//! for exactly that key it gets their jobs, and until then the alternate exchange takes them to the
//! shared queue. Jobs in the delay queue keep their key and return by the same way.
//!
//! Which queues there are is written in `hot_queues` ([`rows`]), whose states and what they promise
//! are told in its migration. Every worker [follows](list) that table and [consumes](consume()) from the
//! queues in it; any of them may [split](Splitter) off an account, [merge](Merger) it again, or make
//! [spare queues](spares). No step trusts another worker to be alive, or its own lock to be still its
//! own: each is taken only by who has seen the last (a version), and is bound to the broker connection
//! on which it was begun, so that it is never carried out late.

mod beat;
mod consume;
mod keeper;
mod list;
mod merge;
mod options;
mod rows;
mod sharers;
mod spares;
mod split;

pub use consume::{CeilingOf, consume};
pub use keeper::HotKeeper;
pub use list::{HotList, Listed, State, follow, listed};
pub use merge::Merger;
pub use options::HotOptions;
pub use split::Splitter;
