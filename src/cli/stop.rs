//! SIGINT and SIGTERM, and which of them it was.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::ops::Shutdown;

/// How long what was begun, such as messages on their way to the broker, may take after a signal.
const GRACE: Duration = Duration::from_secs(15);

/// A signal that asks for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGINT, as by Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    /// What a shell reports of a program that the signal has ended.
    pub(super) const fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }

    /// The signal's name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }
}

/// The request to stop: politely at the first signal, at once at the second.
#[derive(Clone)]
pub(super) struct Stop {
    pub(super) stages: Shutdown,
    first: Arc<OnceLock<Signal>>,
}

impl Stop {
    /// Listens from now on.
    ///
    /// # Errors
    /// When the operating system allows no handler.
    pub(super) fn listen() -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel(2);
        let first = Arc::new(OnceLock::new());
        for (kind, name) in [
            (SignalKind::interrupt(), Signal::Interrupt),
            (SignalKind::terminate(), Signal::Terminate),
        ] {
            let mut signals = signal(kind)?;
            let (sender, first) = (sender.clone(), Arc::clone(&first));
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    first.get_or_init(|| name);
                    if sender.send(()).await.is_err() {
                        break;
                    }
                }
            });
        }
        let stages = Shutdown::on(receiver, GRACE);
        Ok(Self { stages, first })
    }

    /// The signal that came first, if any has.
    pub(super) fn signal(&self) -> Option<Signal> {
        self.first.get().copied()
    }

    /// Waits for a signal.
    pub(super) async fn asked(&self) -> Signal {
        self.stages.soft.cancelled().await;
        self.signal().unwrap_or(Signal::Terminate)
    }
}
