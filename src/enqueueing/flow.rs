//! The way of all rows to the broker.

use futures_util::{Stream, StreamExt as _, stream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::outlet::Outlet;
use super::publish::{Done, publish};
use super::reading::{CHUNKS, read};
use crate::batch::Rows;

/// Chunks that are read ahead.
const AHEAD: usize = 2;

/// Takes every row after the line `done` to an outlet, or nowhere when they are only checked. What
/// became of them comes in their order, until all are done or it has been `enough`; then what is
/// under way is still brought to its end.
///
/// At most a [`WINDOW`](super::WINDOW) of rows is published and not yet taken from the stream: a
/// chunk is begun only when the one a window before it has been taken.
pub fn published<'a, O: Outlet>(
    rows: Rows,
    done: u64,
    outlet: Option<&'a O>,
    enough: &'a CancellationToken,
) -> impl Stream<Item = Done> + 'a {
    let (sender, mut chunks) = mpsc::channel(AHEAD);
    // Ends by itself: with the rows, or when nobody takes its chunks any more.
    drop(tokio::task::spawn_blocking(move || {
        read(rows, done, &sender);
    }));
    let chunks = stream::poll_fn(move |context| chunks.poll_recv(context));
    chunks
        .take_until(enough.clone().cancelled_owned())
        .map(move |chunk| publish(outlet, chunk, enough))
        .buffered(CHUNKS)
}
