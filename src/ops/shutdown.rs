//! Stopping in two stages: first politely, then for good.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The part of the grace period kept for closing what still hangs when the rest of it is over.
const FOR_CLOSING: Duration = Duration::from_secs(2);

/// The two stages. Clones share them.
#[derive(Debug, Clone)]
pub struct Shutdown {
    /// Take nothing new, finish what was begun. Whatever cannot go on may cancel it too.
    pub soft: CancellationToken,
    /// Drop everything: the grace period is nearly over, or somebody asked twice.
    pub hard: CancellationToken,
}

impl Shutdown {
    /// Listens for SIGTERM and SIGINT. From the first one on there are `grace` in all: the hard stage
    /// comes at the second signal, or when two seconds of it (a fifth of a short one) are left.
    ///
    /// # Errors
    /// When the operating system allows no handler.
    pub fn listen(grace: Duration) -> io::Result<Self> {
        Self::listen_and_note(grace, |_| {})
    }

    /// The same, and tells `note` of each signal before anything is stopped by it.
    ///
    /// # Errors
    /// As [`listen`](Self::listen).
    pub fn listen_and_note(
        grace: Duration,
        note: impl Fn(SignalKind) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel(2);
        for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
            let mut signals = signal(kind)?;
            let (sender, note) = (sender.clone(), note.clone());
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    note(kind);
                    if sender.send(()).await.is_err() {
                        break;
                    }
                }
            });
        }
        Ok(Self::on(receiver, grace))
    }

    /// The same for signals that come through a channel.
    #[must_use]
    pub fn on(mut signals: mpsc::Receiver<()>, grace: Duration) -> Self {
        let stages = Self {
            soft: CancellationToken::new(),
            hard: CancellationToken::new(),
        };
        let Self { soft, hard } = stages.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = signals.recv() => tracing::info!("stopping: finishing what was begun"),
                () = soft.cancelled() => {}
            }
            soft.cancel();
            let polite = grace.saturating_sub(FOR_CLOSING.min(grace / 5));
            tokio::select! {
                _ = signals.recv() => tracing::warn!("stopping at once: asked a second time"),
                () = tokio::time::sleep(polite) => {
                    tracing::warn!("stopping at once: the grace period is nearly over");
                }
                () = hard.cancelled() => {}
            }
            hard.cancel();
        });
        stages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(25);

    #[tokio::test(start_paused = true)]
    async fn one_signal_is_polite_until_the_grace_period_is_nearly_over() {
        let (signals, receiver) = mpsc::channel(2);
        let stop = Shutdown::on(receiver, GRACE);
        assert!(!stop.soft.is_cancelled());
        signals.send(()).await.unwrap();
        stop.soft.cancelled().await;
        let started = tokio::time::Instant::now();
        assert!(!stop.hard.is_cancelled());
        stop.hard.cancelled().await;
        assert_eq!(started.elapsed().as_secs(), 23);
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_hurries() {
        let (signals, receiver) = mpsc::channel(2);
        let stop = Shutdown::on(receiver, GRACE);
        let started = tokio::time::Instant::now();
        signals.send(()).await.unwrap();
        signals.send(()).await.unwrap();
        stop.hard.cancelled().await;
        assert!(stop.soft.is_cancelled());
        assert!(started.elapsed() < Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_gives_up_has_the_same_grace() {
        let (_signals, receiver) = mpsc::channel(2);
        let stop = Shutdown::on(receiver, Duration::from_secs(5));
        let started = tokio::time::Instant::now();
        stop.soft.cancel();
        stop.hard.cancelled().await;
        assert_eq!(started.elapsed().as_secs(), 4);
    }
}
