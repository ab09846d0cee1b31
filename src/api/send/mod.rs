//! Sending one message: read, looked up, metered, queued, in this order.
//!
//! What a worker does with a delivery, an API server does with a request: the same gates and the
//! same meter, with an answer for a settlement. What it admits is counted here, once; the job
//! travels with the instant of its admission, and workers count it no more for a second.

mod answer;
mod desk;
mod first_answers;
mod handler;
mod key;
mod notes;
mod rate;
mod request;
mod rounds;
mod settled;

pub use answer::Accepted;
pub use desk::{Desk, DeskParts};
pub use first_answers::{FirstAnswers, forget_old};
pub use handler::*;
pub use notes::Notes;
pub use request::{Given, Message, MessageRequest};
