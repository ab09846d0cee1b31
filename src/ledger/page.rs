//! An account's ended jobs, the newest first, some at a time.

use sqlx::{Connection as _, PgConnection};

use super::Entry;
use crate::postgres::ONE_MOMENT;

/// So many rows are looked at for one page at most, however few of them are wanted: what a page costs
/// does not depend on what else the ledger holds.
pub const LOOKED_AT: u16 = 2_000;

/// Later than every instant that a job can have ended at, in milliseconds since the Unix epoch: the end of
/// the year 9999.
pub const NEWEST: i64 = 253_402_300_799_000;

/// A place in the list: behind the job of that id that ended at that instant, in milliseconds since the
/// Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The instant.
    pub settled_ms: i64,
    /// The id.
    pub id: String,
}

/// Which jobs; what is `None` makes no difference.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// Of this lane.
    pub lane: Option<&'a str>,
    /// That ended so.
    pub outcome: Option<&'a str>,
    /// Of this batch.
    pub batch: Option<&'a str>,
    /// Of this campaign.
    pub campaign: Option<&'a str>,
}

impl Wanted<'_> {
    fn is_all(&self) -> bool {
        let Self {
            lane,
            outcome,
            batch,
            campaign,
        } = self;
        [lane, outcome, batch, campaign]
            .iter()
            .all(|one| one.is_none())
    }

    /// Whether an entry is among them.
    #[must_use]
    pub fn includes(&self, entry: &Entry) -> bool {
        let is = |wanted: Option<&str>, found: Option<&str>| wanted.is_none() || wanted == found;
        is(self.lane, Some(&entry.lane))
            && is(self.outcome, Some(&entry.outcome))
            && is(self.batch, entry.batch_id.as_deref())
            && is(self.campaign, entry.campaign_id.as_deref())
    }
}

/// One page.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// At most as many as were asked for; fewer, or none, do not mean that it is the last.
    pub entries: Vec<Entry>,
    /// Where the next one begins; `None`: this was the last.
    pub next: Option<Place>,
}

/// At most `count` of an account's ended jobs that are wanted, the newest first, behind a place.
///
/// # Errors
/// When the database does not answer.
pub async fn page(
    connection: &mut PgConnection,
    account: &str,
    wanted: Wanted<'_>,
    behind: Option<&Place>,
    count: u16,
) -> Result<Page, sqlx::Error> {
    let from = Place {
        settled_ms: NEWEST,
        id: String::new(),
    };
    let from = behind.unwrap_or(&from);
    if wanted.is_all() {
        let entries = fitting(connection, account, wanted, from, (count + 1, count + 1)).await?;
        return Ok(cut(entries, count, None));
    }
    // So that both questions see the same rows.
    let mut moment = connection.begin_with(ONE_MOMENT).await?;
    let entries = fitting(&mut moment, account, wanted, from, (LOOKED_AT, count + 1)).await?;
    let last = last_looked_at(&mut moment, account, from).await?;
    moment.commit().await?;
    Ok(cut(entries, count, last))
}

/// A page of what was found: one entry too many says that there are more, and otherwise `last`, the
/// last row that was looked at, that there may be.
fn cut(mut entries: Vec<Entry>, count: u16, last: Option<Place>) -> Page {
    let count = usize::from(count);
    let next = if entries.len() > count {
        entries.truncate(count);
        entries.last().map(|entry| Place {
            settled_ms: entry.settled_ms,
            id: entry.id.clone(),
        })
    } else {
        last
    };
    Page { entries, next }
}

async fn fitting(
    connection: &mut PgConnection,
    account: &str,
    wanted: Wanted<'_>,
    from: &Place,
    (looked_at, count): (u16, u16),
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
        FROM (
            SELECT * FROM ledger
            WHERE account_id = $1
                AND (settled_at, id) < (timestamptz 'epoch' + $2::bigint * interval '1 ms', $3)
                AND day <= ((timestamptz 'epoch' + $2::bigint * interval '1 ms') AT TIME ZONE 'UTC')::date
            ORDER BY settled_at DESC, id DESC LIMIT $4
        ) AS looked_at
        WHERE ($5::text IS NULL OR lane = $5) AND ($6::text IS NULL OR outcome = $6)
            AND ($7::text IS NULL OR batch_id = $7) AND ($8::text IS NULL OR campaign_id = $8)
        ORDER BY settled_at DESC, id DESC LIMIT $9
        "#,
        account,
        from.settled_ms,
        from.id,
        i64::from(looked_at),
        wanted.lane,
        wanted.outcome,
        wanted.batch,
        wanted.campaign,
        i64::from(count),
    );
    entries.fetch_all(connection).await
}

/// The last of the rows that are looked at, if there are so many.
async fn last_looked_at(
    connection: &mut PgConnection,
    account: &str,
    from: &Place,
) -> Result<Option<Place>, sqlx::Error> {
    let last = sqlx::query_as!(
        Place,
        r#"
        SELECT id, floor(extract(epoch FROM settled_at) * 1000)::bigint AS "settled_ms!"
        FROM ledger
        WHERE account_id = $1
            AND (settled_at, id) < (timestamptz 'epoch' + $2::bigint * interval '1 ms', $3)
            AND day <= ((timestamptz 'epoch' + $2::bigint * interval '1 ms') AT TIME ZONE 'UTC')::date
        ORDER BY settled_at DESC, id DESC LIMIT 1 OFFSET $4
        "#,
        account,
        from.settled_ms,
        from.id,
        i64::from(LOOKED_AT - 1),
    );
    last.fetch_optional(connection).await
}
