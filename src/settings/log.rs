//! `[log]`: what the process says.

use super::SettingsError;
use super::reader::Section;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// For people.
    Text,
    /// For machines: one object a line.
    Json,
}

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name is the level")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// How the process logs.
#[derive(Debug, Clone, Copy)]
pub struct Log {
    /// How lines look.
    pub format: LogFormat,
    /// How much is said, unless `RUST_LOG` decides.
    pub level: LogLevel,
}

impl Log {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        let formats = [
            ("auto", LogFormat::Auto),
            ("text", LogFormat::Text),
            ("json", LogFormat::Json),
        ];
        let levels = [
            ("error", LogLevel::Error),
            ("warn", LogLevel::Warn),
            ("info", LogLevel::Info),
            ("debug", LogLevel::Debug),
            ("trace", LogLevel::Trace),
        ];
        Ok(Self {
            format: section.choice("format", &formats)?,
            level: section.choice("level", &levels)?,
        })
    }
}
