//! `[carriers.<name>]`: who takes the messages.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::reader::Section;
use super::urls::CarrierUrl;
use super::{Secret, SettingsError};
use crate::domain::Channel;

/// The carrier that takes what no other claims.
pub const DEFAULT_CARRIER: &str = "default";

/// All carriers, and which channel goes to which.
#[derive(Debug, Clone)]
pub struct Carriers {
    all: BTreeMap<Arc<str>, Carrier>,
    routes: Vec<(Channel, Arc<str>)>,
    default: Arc<str>,
}

/// One carrier.
#[derive(Debug, Clone)]
pub struct Carrier {
    /// What it is.
    pub kind: CarrierKind,
    /// Calls at one time; at least 2, so that each lane has a slot.
    pub max_in_flight: u16,
    /// How long one call may take in all.
    pub timeout: Duration,
    /// When it is left alone.
    pub breaker: BreakerSettings,
    /// Whether a URL is given although this kind has no use for one.
    pub url_is_unused: bool,
}

/// The kinds of carriers.
#[derive(Debug, Clone)]
pub enum CarrierKind {
    /// Accepts everything and sends nothing.
    Sandbox(Sandbox),
    /// Posts each job to a URL.
    Http(Http),
}

/// A carrier that only pretends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// How long it takes to accept.
    pub latency: Duration,
    /// The share of tries that end without a known result, in percent.
    pub fail_percent: u8,
    /// The share of tries that are throttled, in percent.
    pub throttle_percent: u8,
    /// The file to which accepted messages are appended.
    pub record_file: Option<PathBuf>,
}

/// A carrier behind HTTP.
#[derive(Debug, Clone)]
pub struct Http {
    /// Where messages are posted to.
    pub url: CarrierUrl,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// The token that it knows us by.
    pub auth_token: Option<Secret>,
    /// The header for the token, in lower case; `None` means `Authorization: Bearer`.
    pub auth_header: Option<String>,
}

/// When a carrier is left alone, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// So many tries in a row that did not reach it; at least 1.
    pub failures: u32,
    /// The first wait.
    pub open: Duration,
    /// The longest wait.
    pub open_cap: Duration,
}

impl Carriers {
    /// Reads all carriers. `defaults` is the table of the defaults' own carrier, which lends its
    /// figures to every other one.
    pub(super) fn read<'a>(
        section: &Section<'a>,
        defaults: &Section<'a>,
    ) -> Result<Self, SettingsError> {
        let mut carriers = Self {
            all: BTreeMap::new(),
            routes: Vec::new(),
            default: DEFAULT_CARRIER.into(),
        };
        for name in section.table_names() {
            let carrier = section.inner(name, defaults.table(DEFAULT_CARRIER));
            if !is_carrier_name(name) {
                return Err(carrier.error("kind", "that name", "a carrier name of a-z 0-9 and -"));
            }
            carriers.add(name.into(), &carrier)?;
        }
        Ok(carriers)
    }

    fn add(&mut self, name: Arc<str>, section: &Section<'_>) -> Result<(), SettingsError> {
        let is_default = *name == *DEFAULT_CARRIER;
        if !is_default && !section.has_own("kind") {
            return Err(section.error("kind", "nothing", "\"sandbox\" or \"http\""));
        }
        let expected = "channels such as sms, whatsapp, email";
        let channels = section.list("channels", expected, Channel::parse)?;
        if !is_default && channels.is_empty() {
            let expected = "at least one channel: this carrier would never be used";
            return Err(section.error("channels", "none", expected));
        }
        for channel in channels {
            if let Some((_, other)) = self.routes.iter().find(|(taken, _)| *taken == channel) {
                let found = format!("{}, which carrier {other} has", channel.as_str());
                return Err(section.error("channels", &found, "each channel once"));
            }
            self.routes.push((channel, Arc::clone(&name)));
        }
        self.all.insert(name, Carrier::read(section)?);
        Ok(())
    }

    /// Every carrier with its name, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Carrier)> {
        self.all.iter()
    }

    /// The name of the carrier that takes a channel.
    #[must_use]
    pub fn for_channel(&self, channel: Channel) -> &Arc<str> {
        let route = self.routes.iter().find(|(routed, _)| *routed == channel);
        route.map_or(&self.default, |(_, name)| name)
    }
}

impl Carrier {
    fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        let sandbox = read_sandbox(section)?;
        let http = HttpParts::read(section)?;
        let is_http = section.choice("kind", &[("sandbox", false), ("http", true)])?;
        Ok(Self {
            url_is_unused: !is_http && http.url.is_some(),
            kind: if is_http {
                CarrierKind::Http(http.complete(section)?)
            } else {
                CarrierKind::Sandbox(sandbox)
            },
            max_in_flight: section.count("max_in_flight", 2..=65_535)?,
            timeout: section.millis("timeout_ms", 10..=600_000)?,
            breaker: read_breaker(section)?,
        })
    }
}

/// What an HTTP carrier may have; the URL it must have, but only if the carrier is of that kind.
struct HttpParts {
    url: Option<CarrierUrl>,
    connect_timeout: Duration,
    auth_token: Option<Secret>,
    auth_header: Option<String>,
}

impl HttpParts {
    fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        Ok(Self {
            url: section.secret("url", CarrierUrl::parse)?,
            connect_timeout: section.millis("connect_timeout_ms", 10..=60_000)?,
            auth_token: section.secret("auth_token", read_token)?,
            auth_header: section.parsed_if_given("auth_header", read_header_name)?,
        })
    }

    fn complete(self, section: &Section<'_>) -> Result<Http, SettingsError> {
        let missing = || section.error("url", "nothing", "the URL that messages are posted to");
        Ok(Http {
            url: self.url.ok_or_else(missing)?,
            connect_timeout: self.connect_timeout,
            auth_token: self.auth_token,
            auth_header: self.auth_header,
        })
    }
}

fn read_sandbox(section: &Section<'_>) -> Result<Sandbox, SettingsError> {
    let sandbox = Sandbox {
        latency: section.millis("sandbox_latency_ms", 0..=600_000)?,
        fail_percent: section.count("sandbox_fail_percent", 0..=100)?,
        throttle_percent: section.count("sandbox_throttle_percent", 0..=100)?,
        record_file: section.parsed_if_given("sandbox_record_file", |text| {
            Ok::<_, String>(PathBuf::from(text))
        })?,
    };
    let sum = u32::from(sandbox.fail_percent) + u32::from(sandbox.throttle_percent);
    if sum > 100 {
        let found = format!("{}", sandbox.throttle_percent);
        let expected = "at most 100 together with sandbox_fail_percent";
        return Err(section.error("sandbox_throttle_percent", &found, expected));
    }
    Ok(sandbox)
}

fn read_breaker(section: &Section<'_>) -> Result<BreakerSettings, SettingsError> {
    let breaker = BreakerSettings {
        failures: section.count("breaker_failures", 1..=10_000)?,
        open: section.millis("breaker_open_ms", 10..=3_600_000)?,
        open_cap: section.millis("breaker_open_cap_ms", 10..=3_600_000)?,
    };
    if breaker.open_cap < breaker.open {
        let found = breaker.open_cap.as_millis().to_string();
        return Err(section.error("breaker_open_cap_ms", &found, "at least breaker_open_ms"));
    }
    Ok(breaker)
}

fn is_carrier_name(name: &str) -> bool {
    let permitted = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(permitted)
}

fn read_token(text: &str) -> Result<Secret, &'static str> {
    let visible = !text.is_empty() && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    visible
        .then(|| Secret::new(text))
        .ok_or("visible ASCII characters, which are all that a header takes")
}

/// Headers that the request itself needs: a token in one of them would break it, or go where it is
/// logged.
const REQUEST_HEADERS: [&str; 10] = [
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "idempotency-key",
    "te",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

fn read_header_name(text: &str) -> Result<String, &'static str> {
    let permitted = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if text.is_empty() || !text.bytes().all(permitted) {
        return Err("the name of an HTTP header");
    }
    let name = text.to_ascii_lowercase();
    if REQUEST_HEADERS.contains(&name.as_str()) {
        return Err("a header that the request does not need for itself");
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_may_not_take_a_header_that_the_request_needs() {
        assert_eq!(read_header_name("X-Api-Key").as_deref(), Ok("x-api-key"));
        for bad in [
            "Host",
            "content-length",
            "Transfer-Encoding",
            "",
            "a b",
            "x:y",
        ] {
            assert!(read_header_name(bad).is_err(), "{bad}");
        }
    }
}
