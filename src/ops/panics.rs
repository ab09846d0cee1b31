//! A panic is a broken invariant: the process ends, and the broker gives its jobs to another.
//!
//! Going on without the task that panicked would be worse: slots that nobody gives back, or a lane
//! that looks alive and takes nothing.

use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether the command has its result, and the process only goes away.
static OVER: AtomicBool = AtomicBool::new(false);

/// From now on a panic is logged and ends the process. Only its place is logged: its message may
/// hold whatever the code had in hand.
pub fn end_the_process() {
    std::panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| {
        if OVER.load(Relaxed) {
            return;
        }
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(
            place,
            "a bug: the process ends here; please report this line"
        );
        std::process::abort();
    }));
}

/// From now on a panic ends only its task: the command has its result, and what still runs is being
/// abandoned. The AMQP client panics when the runtime goes away in the middle of a connect.
pub fn nothing_more_to_lose() {
    OVER.store(true, Relaxed);
}
