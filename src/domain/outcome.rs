//! How a job ends. Each accepted job ends in exactly one outcome.

/// A field of a job, for error texts and for the reason `invalid_<field>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each name is the field")]
pub enum Field {
    Id,
    AccountId,
    Channel,
    To,
    From,
    ServiceId,
    Body,
    Content,
    Priority,
    Origin,
    Metadata,
    CampaignId,
    JourneyId,
    BatchId,
    Category,
    RecipientTimezone,
    EnqueuedAt,
    NotBefore,
    ExpiresAt,
}

impl Field {
    /// Every field of a job.
    pub const ALL: [Self; 19] = [
        Self::Id,
        Self::AccountId,
        Self::Channel,
        Self::To,
        Self::From,
        Self::ServiceId,
        Self::Body,
        Self::Content,
        Self::Priority,
        Self::Origin,
        Self::Metadata,
        Self::CampaignId,
        Self::JourneyId,
        Self::BatchId,
        Self::Category,
        Self::RecipientTimezone,
        Self::EnqueuedAt,
        Self::NotBefore,
        Self::ExpiresAt,
    ];

    /// The field's name, as a job spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.invalid_reason().split_at("invalid_".len()).1
    }

    /// The reason of a refusal because of this field.
    #[must_use]
    pub const fn invalid_reason(self) -> &'static str {
        match self {
            Self::Id => "invalid_id",
            Self::AccountId => "invalid_account_id",
            Self::Channel => "invalid_channel",
            Self::To => "invalid_to",
            Self::From => "invalid_from",
            Self::ServiceId => "invalid_service_id",
            Self::Body => "invalid_body",
            Self::Content => "invalid_content",
            Self::Priority => "invalid_priority",
            Self::Origin => "invalid_origin",
            Self::Metadata => "invalid_metadata",
            Self::CampaignId => "invalid_campaign_id",
            Self::JourneyId => "invalid_journey_id",
            Self::BatchId => "invalid_batch_id",
            Self::Category => "invalid_category",
            Self::RecipientTimezone => "invalid_recipient_timezone",
            Self::EnqueuedAt => "invalid_enqueued_at",
            Self::NotBefore => "invalid_not_before",
            Self::ExpiresAt => "invalid_expires_at",
        }
    }

    /// Reads a field's name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.as_str() == name)
    }
}

/// Why a gate said never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The recipient has opted out.
    OptedOut,
    /// The recipient has had as many messages as a frequency cap allows.
    FrequencyCap,
    /// It is outside the hours in which the recipient may be written to.
    QuietHours,
    /// The policy for accounts that nobody has configured is to refuse them.
    UnknownAccount,
    /// A field of the job cannot be right.
    Invalid(Field),
}

impl Refusal {
    /// The reason in metrics and events.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OptedOut => "opted_out",
            Self::FrequencyCap => "frequency_cap",
            Self::QuietHours => "quiet_hours",
            Self::UnknownAccount => "unknown_account",
            Self::Invalid(field) => field.invalid_reason(),
        }
    }
}

/// Why a job was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The carrier said no for good.
    CarrierRejected,
    /// The carrier did not take it in as many tries as are allowed.
    AttemptsExhausted,
}

impl Failure {
    /// The reason in metrics and events.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CarrierRejected => "carrier_rejected",
            Self::AttemptsExhausted => "attempts_exhausted",
        }
    }
}

/// The one end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A carrier has accepted it.
    Dispatched,
    /// A gate said never.
    Refused(Refusal),
    /// Tried and given up.
    Failed(Failure),
    /// Its `expires_at` passed before it could be sent.
    Expired,
    /// Its account, campaign, journey or batch was cancelled.
    Cancelled,
    /// It could not be read, and lies in the dead queue.
    Dead,
}

impl Outcome {
    /// The outcome's name in metrics, events and routing keys.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dispatched => "dispatched",
            Self::Refused(_) => "refused",
            Self::Failed(_) => "failed",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Dead => "dead",
        }
    }

    /// The reason, from a closed list; empty where the outcome says it all.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Dispatched | Self::Expired | Self::Cancelled => "",
            Self::Refused(refusal) => refusal.as_str(),
            Self::Failed(failure) => failure.as_str(),
            Self::Dead => "undecodable",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_reasons_agree() {
        for field in Field::ALL {
            assert_eq!(
                field.invalid_reason(),
                format!("invalid_{}", field.as_str())
            );
            assert_eq!(Field::parse(field.as_str()), Some(field));
        }
        assert_eq!(Field::parse("nope"), None);
    }
}
