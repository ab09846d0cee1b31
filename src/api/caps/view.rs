//! Frequency caps as clients see and write them.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accounts::CapRule;
use crate::api::error::{ApiError, ApiResult};
use crate::api::send::ChannelName;
use crate::api::texts::{channel_of, text_if_given};
use crate::domain::Channel;

/// Messages that a cap may allow.
const MOST_MESSAGES: u32 = 10_000;

/// The longest window, in seconds: 366 days.
const LONGEST_WINDOW: u64 = 366 * 24 * 60 * 60;

/// A frequency cap.
#[derive(Debug, Serialize, ToSchema)]
pub struct CapView {
    /// Its name.
    #[schema(example = "daily")]
    pub name: String,
    /// So many messages to one recipient.
    #[schema(example = 3)]
    pub limit: u32,
    /// Within any time of so many seconds.
    #[schema(example = 86_400)]
    pub window_seconds: u64,
    /// Only messages by this channel; null: by all.
    pub channel: Option<&'static str>,
    /// Only messages of this category; null: of all, and those without one.
    pub category: Option<String>,
}

impl From<&CapRule> for CapView {
    fn from(rule: &CapRule) -> Self {
        Self {
            name: rule.name.to_string(),
            limit: rule.limit,
            window_seconds: rule.window.as_secs(),
            channel: rule.channel.map(Channel::as_str),
            category: rule.category.as_deref().map(str::to_owned),
        }
    }
}

/// What a frequency cap allows.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CapTerms {
    /// So many messages to one recipient.
    #[schema(example = 3, minimum = 1, maximum = 10_000)]
    limit: u32,
    /// Within any time of so many seconds: up to 366 days.
    #[schema(example = 86_400, minimum = 1, maximum = 31_622_400)]
    window_seconds: u64,
    /// Only messages by this channel.
    #[schema(value_type = Option<ChannelName>)]
    channel: Option<String>,
    /// Only messages of this category, compared exactly.
    #[schema(min_length = 1, max_length = 1024)]
    category: Option<String>,
}

impl CapTerms {
    /// The cap of that name with these terms.
    pub(super) fn rule(self, name: &str) -> ApiResult<CapRule> {
        if !(1..=MOST_MESSAGES).contains(&self.limit) {
            let expected = format!("expected 1 to {MOST_MESSAGES}");
            return Err(ApiError::validation(
                "limit",
                Some(self.limit.into()),
                expected,
            ));
        }
        let window = self.window_seconds;
        if !(1..=LONGEST_WINDOW).contains(&window) {
            let expected = format!("expected 1 to {LONGEST_WINDOW}");
            return Err(ApiError::validation(
                "window_seconds",
                Some(window.into()),
                expected,
            ));
        }
        let channel = self.channel.as_deref().map(channel_of).transpose()?;
        let category = text_if_given("category", self.category.as_deref())?;
        Ok(CapRule {
            name: Arc::from(name),
            channel,
            category: category.map(Into::into),
            limit: self.limit,
            window: Duration::from_secs(window),
        })
    }
}

/// A cap's name.
pub(super) fn name_of(text: String) -> ApiResult<String> {
    let permitted = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if text.is_empty() || text.len() > 64 || !text.bytes().all(permitted) {
        let expected = "expected 1 to 64 characters of A-Z a-z 0-9 _ -";
        return Err(ApiError::validation("name", None, expected));
    }
    Ok(text)
}
