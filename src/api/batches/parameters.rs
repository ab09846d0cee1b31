//! What is said of a batch as a whole, in the query string.

use serde::Deserialize;
use serde_json::Value;

use crate::accounts::keys::KeyGrant;
use crate::api::error::{ApiError, ApiResult};
use crate::api::texts::channel_names;
use crate::batch::{Batch, BatchId, RowOptions};
use crate::domain::{Channel, Field, Origin, Priority, Region};

/// The longest text of a parameter, in bytes.
const LONGEST: usize = 256;

/// What is said of a batch as a whole. The text of messages is not among it: addresses are written
/// into the logs of whatever stands in between.
#[derive(Debug, Default, Clone, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct BatchParameters {
    /// What you call the batch: 1 to 107 of `A-Z a-z 0-9 . _ : -`. The message of the row N gets the
    /// id `<batch_id>-N`. Without it, a name is made from the content and the other parameters, so
    /// that the same upload again is the same batch.
    #[param(pattern = "^[A-Za-z0-9._:-]{1,107}$")]
    pub batch_id: Option<String>,
    /// The channel of rows that name none.
    #[param(pattern = "^(sms|whatsapp|email|rcs|viber|messenger|line|telegram|push|voice)$")]
    pub channel: Option<String>,
    /// The campaign of rows that name none.
    #[param(min_length = 1, max_length = 256)]
    pub campaign_id: Option<String>,
    /// The journey of rows that name none.
    #[param(min_length = 1, max_length = 256)]
    pub journey_id: Option<String>,
    /// The category of rows that name none.
    #[param(min_length = 1, max_length = 256)]
    pub category: Option<String>,
    /// The messaging service of rows that name none.
    #[param(min_length = 1, max_length = 256)]
    pub service_id: Option<String>,
    /// The sender of rows that name none.
    #[param(min_length = 1, max_length = 256)]
    pub from: Option<String>,
    /// The priority of rows that name none: `high`, `normal` or `low`.
    #[param(pattern = "^(high|normal|low)$")]
    pub priority: Option<String>,
    /// The country (ISO 3166-1, two capitals) of telephone numbers without a country code, instead of
    /// the server's.
    #[param(pattern = "^[A-Z]{2}$")]
    pub region: Option<String>,
    /// `true` queues a recipient as often as there are rows for it, instead of for the first row only.
    pub allow_duplicates: Option<bool>,
}

/// The parameters, checked.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// The name, if one was given.
    pub(super) id: Option<BatchId>,
    /// The batch, under a name that does not matter yet.
    batch: Batch,
    pub(super) rows: RowOptions,
}

impl Wanted {
    /// Checks the parameters of a batch that comes with a key.
    ///
    /// # Errors
    /// The first parameter that cannot be right.
    pub(super) fn of(
        given: &BatchParameters,
        key: &KeyGrant,
        default_region: Option<Region>,
    ) -> ApiResult<Self> {
        let id = given.batch_id.as_deref();
        let id = id.map(|text| parsed("batch_id", text, BatchId::parse(text)));
        let defaults = [
            (Field::CampaignId, &given.campaign_id),
            (Field::JourneyId, &given.journey_id),
            (Field::From, &given.from),
            (Field::Category, &given.category),
            (Field::ServiceId, &given.service_id),
        ];
        let given_ones = defaults
            .into_iter()
            .filter_map(|(field, value)| Some((field, value.as_deref()?)));
        let defaults = given_ones.map(|(field, value)| Ok((field, text(field.as_str(), value)?)));
        let region = given.region.as_deref().map(region).transpose()?;
        Ok(Self {
            id: id.transpose()?,
            batch: Batch {
                account: key.account.clone(),
                channel: given.channel.as_deref().map(channel).transpose()?,
                origin: origin(key.origin),
                id: BatchId::parse("unnamed").expect("letters are an id"),
                priority: given.priority.as_deref().map(priority).transpose()?,
                defaults: defaults.collect::<ApiResult<_>>()?,
                default_region: region.or(default_region),
            },
            rows: RowOptions {
                allow_duplicates: given.allow_duplicates.unwrap_or(false),
            },
        })
    }

    /// What all jobs share, apart from the name.
    pub(super) const fn unnamed(&self) -> &Batch {
        &self.batch
    }

    /// The batch under its name.
    pub(super) fn named(&self, id: BatchId) -> Batch {
        Batch {
            id,
            ..self.batch.clone()
        }
    }
}

/// Many messages at once are a campaign, unless the key is a journey's: one made for single messages
/// must not put a hundred thousand of them before the passwords.
const fn origin(of_key: Origin) -> Origin {
    match of_key {
        Origin::Journey => Origin::Journey,
        Origin::Campaign | Origin::Api => Origin::Campaign,
    }
}

fn parsed<T>(name: &str, given: &str, parsed: Result<T, String>) -> ApiResult<T> {
    parsed.map_err(|expected| ApiError::validation(name, Some(shown(given)), expected))
}

/// A value as it is told back.
fn shown(given: &str) -> Value {
    given.chars().take(64).collect::<String>().into()
}

fn text(name: &str, given: &str) -> ApiResult<String> {
    if given.is_empty() || given.len() > LONGEST || given.chars().any(char::is_control) {
        let expected = format!("expected 1 to {LONGEST} bytes without control characters");
        return Err(ApiError::validation(name, None, expected));
    }
    Ok(given.to_owned())
}

fn channel(given: &str) -> ApiResult<Channel> {
    let found = Channel::parse(given).ok_or_else(|| format!("expected one of {}", channel_names()));
    parsed("channel", given, found)
}

fn priority(given: &str) -> ApiResult<Priority> {
    let known = || Priority::ALL.map(Priority::as_str).join(", ");
    let found = Priority::parse(given).ok_or_else(|| format!("expected one of {}", known()));
    parsed("priority", given, found)
}

fn region(given: &str) -> ApiResult<Region> {
    let found = Region::parse(given).ok_or_else(|| format!("expected {}", Region::EXPECTED));
    parsed("region", given, found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::keys::{KeyId, KeyScopes};
    use crate::domain::AccountId;

    fn key(origin: Origin) -> KeyGrant {
        KeyGrant {
            key: KeyId::parse(b"aaaaaaaaaaaa").unwrap(),
            account: AccountId::parse("acme").unwrap(),
            scopes: KeyScopes::default(),
            origin,
        }
    }

    fn of(given: &BatchParameters) -> Result<Wanted, String> {
        let wanted = Wanted::of(given, &key(Origin::Api), None);
        wanted.map_err(|error| error.message().to_owned())
    }

    #[test]
    fn a_batch_is_a_campaign_unless_the_key_is_a_journeys() {
        for (of_key, expected) in [
            (Origin::Api, Origin::Campaign),
            (Origin::Campaign, Origin::Campaign),
            (Origin::Journey, Origin::Journey),
        ] {
            let wanted = Wanted::of(&BatchParameters::default(), &key(of_key), None).unwrap();
            assert_eq!(wanted.unnamed().origin, expected);
            assert_eq!(wanted.unnamed().account.as_str(), "acme");
        }
    }

    #[test]
    fn what_cannot_be_right_is_named() {
        let some = |text: &str| Some(text.to_owned());
        let none = BatchParameters::default;
        for (given, name) in [
            (
                BatchParameters {
                    batch_id: some("a b"),
                    ..none()
                },
                "batch_id: ",
            ),
            (
                BatchParameters {
                    channel: some("SMS"),
                    ..none()
                },
                "channel: expected one of sms",
            ),
            (
                BatchParameters {
                    priority: some("High"),
                    ..none()
                },
                "priority: expected one of high",
            ),
            (
                BatchParameters {
                    region: some("gb!"),
                    ..none()
                },
                "region: expected ",
            ),
            (
                BatchParameters {
                    campaign_id: some(""),
                    ..none()
                },
                "campaign_id: expected 1 to",
            ),
            (
                BatchParameters {
                    from: some("a\0"),
                    ..none()
                },
                "from: expected 1 to",
            ),
        ] {
            let error = of(&given).unwrap_err();
            assert!(error.starts_with(name), "{error}");
        }
    }
}
