//! Logs: one event a line, text on a terminal and JSON otherwise, and never a secret.
//!
//! Libraries are silent, whatever `RUST_LOG` says: the AMQP client logs the bodies of returned
//! messages, HTTP and Redis clients log headers and commands at their finer levels. What an operator
//! must know of them this program says itself, in its own words.

use std::io::{self, IsTerminal as _, Write};

use tracing_subscriber::filter::{EnvFilter, LevelFilter, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use crate::settings::{Log, LogFormat, LogLevel};

/// The only source of log lines.
const OWN: &str = env!("CARGO_PKG_NAME");

/// Starts logging to standard error, and makes a panic an event that ends the process. A second start in one process changes nothing.
pub fn start(settings: Log) {
    let json = match settings.format {
        LogFormat::Json => true,
        LogFormat::Text => false,
        LogFormat::Auto => !io::stderr().is_terminal(),
    };
    let filter = EnvFilter::builder()
        .with_default_directive(level(settings.level).into())
        .from_env_lossy();
    let own = filter_fn(|metadata| is_own(metadata.target()));
    let layer = fmt::layer()
        .with_ansi(false)
        .with_writer(OneLine(io::stderr));
    let layer = if json {
        layer.json().flatten_event(true).with_filter(own).boxed()
    } else {
        layer.with_filter(own).boxed()
    };
    let logging = tracing_subscriber::registry().with(layer).with(filter);
    if logging.try_init().is_ok() {
        super::panics::end_the_process();
    }
}

fn is_own(target: &str) -> bool {
    target
        .strip_prefix(OWN)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn level(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// Writes each event as one line: control characters inside it are escaped, so that no value can
/// forge a line or move a terminal's cursor.
#[derive(Debug, Clone, Copy)]
struct OneLine<W>(W);

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for OneLine<W> {
    type Writer = LineWriter<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        LineWriter(self.0.make_writer())
    }
}

struct LineWriter<W>(W);

impl<W: Write> Write for LineWriter<W> {
    /// Receives whole events: the formatter hands over each in one call.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.write_all(&escaped(event))?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn escaped(event: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(event);
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let mut safe = String::with_capacity(text.len() + 1);
    for c in line.chars() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe.push('\n');
    safe.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_is_one_line_without_control_characters() {
        let forged = "INFO said=\u{1b}[2J a\r\n2026-01-01 ERROR fake\u{85}\u{9b}b\n";
        let line = String::from_utf8(escaped(forged.as_bytes())).unwrap();
        assert_eq!(
            line,
            "INFO said=\\u{1b}[2J a\\r\\n2026-01-01 ERROR fake\\u{85}\\u{9b}b\n"
        );
    }

    #[test]
    fn only_this_program_is_heard() {
        for own in [
            "lanekeeper",
            "lanekeeper::intake",
            "lanekeeper::carrier::http",
        ] {
            assert!(is_own(own), "{own}");
        }
        for other in [
            "lapin",
            "lapin::channel",
            "redis",
            "hyper_util::client",
            "reqwest",
            "lanekeeperish",
        ] {
            assert!(!is_own(other), "{other}");
        }
    }
}
