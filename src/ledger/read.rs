//! What is written down about a job: how it ended, and whether it waits.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use sqlx::PgConnection;

use super::recipient::RecipientForm;
use crate::dispatch::ports::Ended;
use crate::domain::{Decoded, Job, Region};
use crate::intake::decode::decode;

/// One end of a job. Instants are in milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the columns of the ledger, which its migration explains"
)]
pub struct Entry {
    pub id: String,
    pub account_id: String,
    pub lane: String,
    pub lane_rule: String,
    pub origin: Option<String>,
    pub campaign_id: Option<String>,
    pub journey_id: Option<String>,
    pub batch_id: Option<String>,
    pub channel: String,
    pub recipient: Option<String>,
    pub outcome: String,
    pub reason: Option<String>,
    pub detail: Option<String>,
    pub carrier: Option<String>,
    pub carrier_ref: Option<String>,
    pub attempts: i32,
    pub sheds: i32,
    pub admitted_as: Option<i32>,
    pub meter: Option<String>,
    pub enqueued_ms: Option<i64>,
    pub admitted_ms: Option<i64>,
    pub settled_ms: i64,
    pub next_allowed_ms: Option<i64>,
}

impl Entry {
    /// The row of a job that has ended, its recipient in that form.
    #[must_use]
    pub fn of(ended: &Ended, form: &RecipientForm) -> Self {
        let head = &ended.head;
        let text = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        let name = |name: &Option<Arc<str>>| name.as_deref().map(str::to_owned);
        let count = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        let reason = ended.outcome.reason();
        let recipient = ended.recipient.as_deref();
        let admission = ended.admission;
        Self {
            id: head.id.to_string(),
            account_id: head.account.to_string(),
            lane: head.lane.as_str().to_owned(),
            lane_rule: head.lane_rule.as_str().to_owned(),
            origin: head.origin.map(|origin| origin.as_str().to_owned()),
            campaign_id: text(&head.campaign_id),
            journey_id: text(&head.journey_id),
            batch_id: text(&head.batch_id),
            channel: head.channel.to_string(),
            recipient: recipient.and_then(|recipient| form.keep(&head.account, recipient)),
            outcome: ended.outcome.as_str().to_owned(),
            reason: (!reason.is_empty()).then(|| reason.to_owned()),
            detail: ended.detail.as_deref().map(str::to_owned),
            carrier: name(&ended.carrier),
            carrier_ref: name(&ended.carrier_ref),
            attempts: count(ended.attempts),
            sheds: count(ended.sheds),
            admitted_as: admission.map(|admission| count(admission.count)),
            meter: admission.map(|admission| admission.mode.as_str().to_owned()),
            enqueued_ms: head.enqueued_at.map(Timestamp::as_millisecond),
            admitted_ms: admission.map(|admission| admission.at.as_millisecond()),
            settled_ms: ended.settled_at.as_millisecond(),
            next_allowed_ms: ended.next_allowed_at.map(Timestamp::as_millisecond),
        }
    }
}

/// The ends of all jobs of that id, or of the account's alone, the oldest first. There is one for
/// each account, and one more for each later day on which an end was told anew and nobody knew of
/// the first.
///
/// # Errors
/// When the database does not answer.
pub async fn entries(
    connection: &mut PgConnection,
    id: &str,
    account: Option<&str>,
) -> Result<Vec<Entry>, sqlx::Error> {
    let entries = sqlx::query_as!(
        Entry,
        r#"
        SELECT id, account_id, lane, lane_rule, origin, campaign_id, journey_id, batch_id, channel,
            recipient, outcome, reason, detail, carrier, carrier_ref, attempts, sheds, admitted_as,
            meter,
            floor(extract(epoch FROM enqueued_at) * 1000)::bigint AS enqueued_ms,
            floor(extract(epoch FROM admitted_at) * 1000)::bigint AS admitted_ms,
            floor(extract(epoch FROM settled_at) * 1000)::bigint AS "settled_ms!",
            floor(extract(epoch FROM next_allowed_at) * 1000)::bigint AS next_allowed_ms
        FROM ledger
        WHERE id = $1 AND ($2::text IS NULL OR account_id = $2)
        ORDER BY account_id, settled_at
        "#,
        id,
        account,
    );
    entries.fetch_all(connection).await
}

/// A job that waits. Instants are in milliseconds since the Unix epoch.
#[derive(Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the columns of the table, which its migration explains"
)]
pub struct Waiting {
    pub account_id: String,
    pub lane: String,
    pub reason: String,
    pub due_ms: Option<i64>,
    pub since_ms: i64,
    pub attempts: i32,
    pub sheds: i32,
    pub campaign_id: Option<String>,
    pub journey_id: Option<String>,
    pub batch_id: Option<String>,
    /// The message, byte for byte as it came.
    pub job: Vec<u8>,
    /// Holds on what the job belongs to, such as `campaign spring: paused`.
    pub holds: Vec<String>,
}

/// Without the message, which holds a recipient and a body.
impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting")
            .field("account_id", &self.account_id)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

impl Waiting {
    /// The job, read as a worker will read it: what the row does not say, its message does. `None`
    /// where it will be refused.
    #[must_use]
    pub fn decoded(&self, default_region: Option<Region>) -> Option<Box<Job>> {
        match decode(self.job.clone().into(), default_region).decoded {
            Decoded::Job(job) => Some(job),
            Decoded::Invalid { .. } | Decoded::Undecodable { .. } => None,
        }
    }
}

/// The jobs of that id that wait, or those of the account alone, in the order in which they came.
///
/// # Errors
/// When the database does not answer.
pub async fn waiting(
    connection: &mut PgConnection,
    id: &str,
    account: Option<&str>,
) -> Result<Vec<Waiting>, sqlx::Error> {
    let waiting = sqlx::query_as!(
        Waiting,
        r#"
        SELECT account_id, lane, reason, attempts, sheds, campaign_id, journey_id, batch_id, job,
            floor(extract(epoch FROM due_at) * 1000)::bigint AS due_ms,
            floor(extract(epoch FROM since) * 1000)::bigint AS "since_ms!",
            ARRAY(
                SELECT holds.kind || ' ' || holds.target || ': ' || holds.state
                FROM (VALUES ('account', account_id), ('campaign', campaign_id),
                    ('journey', journey_id), ('batch', batch_id)) AS scope (kind, target)
                JOIN holds ON holds.account_id = waiting.account_id
                    AND holds.kind = scope.kind AND holds.target = scope.target
            ) AS "holds!"
        FROM waiting
        WHERE id = $1 AND ($2::text IS NULL OR account_id = $2)
        ORDER BY account_id, row_number
        "#,
        id,
        account,
    );
    waiting.fetch_all(connection).await
}
