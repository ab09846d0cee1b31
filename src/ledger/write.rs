//! Writing down how jobs ended.

use std::collections::HashSet;

use sqlx::PgPool;

use super::recipient::RecipientForm;
use super::row::{Columns, rows};
use crate::dispatch::ports::Ended;

/// Writes down how jobs ended, all of them or on an error none. Doing it twice
/// changes nothing: a row stays as it is, unless it says otherwise than dispatched and the job now
/// turns out to have been. The end of a job that is told again ([`Ended::repeated`]) is written only
/// when the ledger does not know it as dispatched, on whatever day.
///
/// Undecodable messages have no row: the dead queue is their record.
///
/// # Errors
/// When the database has not confirmed it.
pub async fn write(
    pool: &PgPool,
    ended: &[Ended],
    form: &RecipientForm,
) -> Result<(), sqlx::Error> {
    let known = known_as_sent(pool, ended).await?;
    let is_new = |one: &&Ended| !known.contains(&(one.head.id.as_str(), one.head.account.as_str()));
    let columns = Columns::of(rows(ended).filter(is_new), form);
    // The rows come in the order in which every worker locks them.
    let write = sqlx::query!(
        "
        INSERT INTO ledger AS known (account_id, id, day, lane, lane_rule, origin, campaign_id,
            journey_id, batch_id, channel, recipient, outcome, reason, detail, carrier, carrier_ref,
            attempts, sheds, admitted_as, meter, enqueued_at, admitted_at, settled_at,
            next_allowed_at)
        SELECT account_id, id, date '1970-01-01' + day, lane, lane_rule, origin, campaign_id,
            journey_id, batch_id, channel, recipient, outcome, reason, detail, carrier, carrier_ref,
            attempts, sheds, admitted_as, meter,
            timestamptz 'epoch' + enqueued * interval '1 ms',
            timestamptz 'epoch' + admitted * interval '1 ms',
            timestamptz 'epoch' + settled * interval '1 ms',
            timestamptz 'epoch' + next_allowed * interval '1 ms'
        FROM unnest($1::text[], $2::text[], $3::integer[], $4::text[], $5::text[], $6::text[],
            $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[],
            $13::text[], $14::text[], $15::text[], $16::text[], $17::integer[], $18::integer[],
            $19::integer[], $20::text[], $21::bigint[], $22::bigint[], $23::bigint[],
            $24::bigint[])
            WITH ORDINALITY AS ended (account_id, id, day, lane, lane_rule, origin, campaign_id,
                journey_id, batch_id, channel, recipient, outcome, reason, detail, carrier,
                carrier_ref, attempts, sheds, admitted_as, meter, enqueued, admitted, settled,
                next_allowed, place)
        ORDER BY place
        ON CONFLICT (account_id, id, day) DO UPDATE SET
            lane = excluded.lane, lane_rule = excluded.lane_rule, origin = excluded.origin,
            campaign_id = excluded.campaign_id, journey_id = excluded.journey_id,
            batch_id = excluded.batch_id, channel = excluded.channel,
            recipient = excluded.recipient, outcome = excluded.outcome, reason = excluded.reason,
            detail = excluded.detail, carrier = excluded.carrier,
            carrier_ref = excluded.carrier_ref, attempts = excluded.attempts,
            sheds = excluded.sheds, admitted_as = excluded.admitted_as, meter = excluded.meter,
            enqueued_at = excluded.enqueued_at, admitted_at = excluded.admitted_at,
            settled_at = excluded.settled_at, next_allowed_at = excluded.next_allowed_at
        WHERE excluded.outcome = 'dispatched' AND known.outcome <> 'dispatched'
        ",
        &columns.accounts as &[&str],
        &columns.ids as &[&str],
        &columns.days,
        &columns.lanes as &[&str],
        &columns.lane_rules as &[&str],
        &columns.origins as &[Option<&str>],
        &columns.campaigns as &[Option<std::borrow::Cow<'_, str>>],
        &columns.journeys as &[Option<std::borrow::Cow<'_, str>>],
        &columns.batches as &[Option<std::borrow::Cow<'_, str>>],
        &columns.channels as &[std::borrow::Cow<'_, str>],
        &columns.recipients as &[Option<String>],
        &columns.outcomes as &[&str],
        &columns.reasons as &[Option<&str>],
        &columns.details as &[Option<std::borrow::Cow<'_, str>>],
        &columns.carriers as &[Option<&str>],
        &columns.carrier_refs as &[Option<std::borrow::Cow<'_, str>>],
        &columns.attempts,
        &columns.sheds,
        &columns.admitted_as as &[Option<i32>],
        &columns.meters as &[Option<&str>],
        &columns.enqueued as &[Option<i64>],
        &columns.admitted as &[Option<i64>],
        &columns.settled,
        &columns.next_allowed as &[Option<i64>],
    );
    write.execute(pool).await?;
    Ok(())
}

/// Id and account of a job.
type Job<'a> = (&'a str, &'a str);

/// The jobs told again that the ledger knows as dispatched, on whatever day. Asked apart from the
/// writing, because there are seldom any, and naming them in its statement costs every row a look into
/// each day's partition: it took twice as long with five.
async fn known_as_sent<'a>(
    pool: &PgPool,
    ended: &'a [Ended],
) -> Result<HashSet<Job<'a>>, sqlx::Error> {
    let repeated = ended.iter().filter(|one| one.repeated);
    let jobs: Vec<Job<'a>> = repeated
        .map(|one| (one.head.id.as_str(), one.head.account.as_str()))
        .collect();
    if jobs.is_empty() {
        return Ok(HashSet::new());
    }
    let (ids, accounts): (Vec<&str>, Vec<&str>) = jobs.iter().copied().unzip();
    let places = sqlx::query_scalar!(
        r#"SELECT DISTINCT place AS "place!"
        FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS asked (id, account_id, place)
        JOIN ledger USING (id, account_id)
        WHERE outcome = 'dispatched'"#,
        &ids as &[&str],
        &accounts as &[&str],
    );
    let places = places.fetch_all(pool).await?;
    let known = places.into_iter().filter_map(|place| {
        let place = usize::try_from(place - 1).ok()?;
        jobs.get(place).copied()
    });
    Ok(known.collect())
}
