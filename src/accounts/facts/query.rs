//! The query of the facts: what is asked, in columns, and what is answered, in rows.
//!
//! Each column goes to the server as one array. All parts look up whole keys in primary keys, so
//! that their plans are nested loops over indexes whatever the batch.

use sqlx::PgExecutor;

use super::{Target, sent_record};
use crate::accounts::hold_kind::parse_hold;
use crate::dispatch::ports::{Hold, Inquiry};
use crate::domain::SentRecord;

/// Something that is known.
pub(super) struct Answer {
    /// The place of the job, or, of a hold, that of its target, from 0.
    pub(super) place: usize,
    pub(super) known: Known,
}

pub(super) enum Known {
    OptedOut,
    Hold(Hold),
    Sent(SentRecord),
}

/// The question's columns.
pub(super) struct Questions<'a> {
    accounts: Vec<&'a str>,
    recipients: Vec<&'a str>,
    channels: Vec<&'a str>,
    holds: [Vec<&'a str>; 3],
    maybe_sent: MaybeSent<'a>,
}

/// Jobs that the ledger may know.
#[derive(Default)]
struct MaybeSent<'a> {
    places: Vec<i64>,
    accounts: Vec<&'a str>,
    ids: Vec<&'a str>,
    /// The first day on which each may have been sent, in days since 1970-01-01.
    first_days: Vec<i32>,
}

const HOUR_MS: u64 = 60 * 60 * 1_000;

/// The day on which it was queued, by a clock that may be an hour ahead. What is not known is long
/// ago.
fn first_day(enqueued_ms: Option<u64>) -> i32 {
    let day = enqueued_ms.map_or(0, |at| at.saturating_sub(HOUR_MS) / (24 * HOUR_MS));
    i32::try_from(day).unwrap_or(0)
}

struct Row {
    kind: String,
    /// Counted from 1.
    place: i64,
    at_ms: Option<i64>,
    carrier: Option<String>,
    carrier_ref: Option<String>,
}

impl<'a> Questions<'a> {
    pub(super) fn of(
        inquiries: &'a [Inquiry<'a>],
        targets: impl Iterator<Item = Target<'a>> + Clone,
    ) -> Self {
        let mut maybe_sent = MaybeSent::default();
        for (place, inquiry) in (1..).zip(inquiries) {
            if inquiry.maybe_sent {
                maybe_sent.places.push(place);
                maybe_sent.accounts.push(inquiry.account.as_str());
                maybe_sent.ids.push(inquiry.id.as_str());
                maybe_sent.first_days.push(first_day(inquiry.enqueued_ms));
            }
        }
        let column = |value: fn(&'a Inquiry<'a>) -> &'a str| inquiries.iter().map(value).collect();
        Self {
            accounts: column(|inquiry| inquiry.account.as_str()),
            recipients: column(|inquiry| &inquiry.recipient),
            channels: column(|inquiry| inquiry.channel.as_str()),
            holds: [
                targets.clone().map(|(account, ..)| account).collect(),
                targets.clone().map(|(_, kind, _)| kind.as_str()).collect(),
                targets.map(|(.., target)| target).collect(),
            ],
            maybe_sent,
        }
    }

    pub(super) async fn ask(
        &self,
        executor: impl PgExecutor<'_>,
    ) -> Result<Vec<Answer>, sqlx::Error> {
        let rows = if self.maybe_sent.ids.is_empty() {
            self.without_ledger(executor).await?
        } else {
            self.with_ledger(executor).await?
        };
        Ok(rows.into_iter().filter_map(Row::answer).collect())
    }

    /// The ledger has a partition for each day: merely to name it costs more than all the rest.
    async fn without_ledger(&self, executor: impl PgExecutor<'_>) -> Result<Vec<Row>, sqlx::Error> {
        let [accounts, kinds, targets] = &self.holds;
        sqlx::query_as!(
            Row,
            r#"SELECT 'opted_out' AS "kind!", place AS "place!", NULL::bigint AS at_ms,
                NULL AS carrier, NULL AS carrier_ref
            FROM unnest($1::text[], $2::text[], $3::text[])
                WITH ORDINALITY AS job (account_id, recipient, channel, place)
            WHERE EXISTS (
                SELECT FROM suppressions
                WHERE suppressions.account_id = job.account_id
                    AND suppressions.recipient = job.recipient
                    AND (suppressions.scope = 'all' OR suppressions.scope = job.channel)
            )
            UNION ALL
            SELECT holds.state, place, NULL, NULL, NULL
            FROM unnest($4::text[], $5::text[], $6::text[])
                WITH ORDINALITY AS asked (account_id, kind, target, place)
            JOIN holds USING (account_id, kind, target)"#,
            &self.accounts as &[&str],
            &self.recipients as &[&str],
            &self.channels as &[&str],
            accounts as &[&str],
            kinds as &[&str],
            targets as &[&str],
        )
        .fetch_all(executor)
        .await
    }

    /// Partitions of days on which none of the jobs can have been sent are left out at once, by the
    /// earliest day of all; that costs a third of deciding it for each job.
    async fn with_ledger(&self, executor: impl PgExecutor<'_>) -> Result<Vec<Row>, sqlx::Error> {
        let [accounts, kinds, targets] = &self.holds;
        sqlx::query_as!(
            Row,
            r#"SELECT 'opted_out' AS "kind!", place AS "place!", NULL::bigint AS at_ms,
                NULL AS carrier, NULL AS carrier_ref
            FROM unnest($1::text[], $2::text[], $3::text[])
                WITH ORDINALITY AS job (account_id, recipient, channel, place)
            WHERE EXISTS (
                SELECT FROM suppressions
                WHERE suppressions.account_id = job.account_id
                    AND suppressions.recipient = job.recipient
                    AND (suppressions.scope = 'all' OR suppressions.scope = job.channel)
            )
            UNION ALL
            SELECT holds.state, place, NULL, NULL, NULL
            FROM unnest($4::text[], $5::text[], $6::text[])
                WITH ORDINALITY AS asked (account_id, kind, target, place)
            JOIN holds USING (account_id, kind, target)
            UNION ALL
            SELECT 'sent', place, (extract(epoch FROM settled_at) * 1000)::bigint,
                carrier, carrier_ref
            FROM unnest($7::bigint[], $8::text[], $9::text[], $10::integer[])
                AS asked (place, account_id, id, first_day)
            JOIN ledger USING (account_id, id)
            WHERE day >= date '1970-01-01' + first_day
                AND day >= date '1970-01-01' + $11::integer
                AND day <= ((now() + interval '1 hour') AT TIME ZONE 'UTC')::date
                AND outcome = 'dispatched'"#,
            &self.accounts as &[&str],
            &self.recipients as &[&str],
            &self.channels as &[&str],
            accounts as &[&str],
            kinds as &[&str],
            targets as &[&str],
            &self.maybe_sent.places,
            &self.maybe_sent.accounts as &[&str],
            &self.maybe_sent.ids as &[&str],
            &self.maybe_sent.first_days,
            self.maybe_sent.first_days.iter().copied().min(),
        )
        .fetch_all(executor)
        .await
    }
}

impl Row {
    fn answer(self) -> Option<Answer> {
        let known = match &*self.kind {
            "opted_out" => Known::OptedOut,
            "sent" => Known::Sent(sent_record(self.at_ms?, self.carrier, self.carrier_ref)),
            // What only a newer version knows of is no leave to send.
            hold => Known::Hold(parse_hold(hold).unwrap_or(Hold::Paused)),
        };
        let place = usize::try_from(self.place - 1).ok()?;
        Some(Answer { place, known })
    }
}
