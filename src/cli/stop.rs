//! SIGINT and SIGTERM, and which of them it was.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::signal::unix::SignalKind;
#[cfg(test)]
use tokio_util::sync::CancellationToken;

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
    fn of(kind: SignalKind) -> Self {
        if kind == SignalKind::interrupt() {
            Self::Interrupt
        } else {
            Self::Terminate
        }
    }

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
        let first = Arc::new(OnceLock::new());
        let noted = Arc::clone(&first);
        let stages = Shutdown::listen_and_note(GRACE, move |kind| {
            noted.get_or_init(|| Signal::of(kind));
        })?;
        Ok(Self { stages, first })
    }

    /// Nobody asks.
    #[cfg(test)]
    pub(super) fn never() -> Self {
        Self {
            stages: Shutdown {
                soft: CancellationToken::new(),
                hard: CancellationToken::new(),
            },
            first: Arc::default(),
        }
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
