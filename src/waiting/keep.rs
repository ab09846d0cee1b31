//! Taking jobs in.

use std::collections::BTreeMap;

use sqlx::{PgConnection, PgPool};

use super::turns;
use crate::dispatch::ports::{Due, WaitReason, WaitingJob};

/// Lets jobs wait: all of them, or on an error none.
///
/// Jobs that are due in turn ([`Due::InTurn`]) are due at their ceiling's rate, after all others
/// of their lane that wait for it, whichever worker has put them there, and in a second's time at the
/// earliest. The lanes do not wait for each other: what of both is released at once, the ceiling sorts
/// out.
///
/// # Errors
/// When the database has not confirmed it. After a lost connection the jobs may be there all the
/// same: whoever keeps them again makes them come twice, which their claims catch.
pub async fn keep(pool: &PgPool, jobs: &[WaitingJob]) -> Result<(), sqlx::Error> {
    let queues = Queue::all_of(jobs);
    let mut due: Vec<Option<i64>> = jobs.iter().map(known_instant).collect();
    // Also for a single statement: one that commits by itself may do so after the caller has given it
    // up, and the caller's next try would add the same jobs once more.
    let mut transaction = pool.begin().await?;
    if !queues.is_empty() {
        for (place, instant) in take_turns(&mut transaction, &queues).await? {
            due[place] = Some(instant);
        }
    }
    insert(&mut transaction, jobs, &due).await?;
    transaction.commit().await
}

/// In microseconds since the Unix epoch.
fn known_instant(job: &WaitingJob) -> Option<i64> {
    match &job.due {
        Due::At(instant) => Some(instant.as_microsecond()),
        Due::Resumed | Due::InTurn(_) => None,
    }
}

/// The jobs of a lane, by their places, that wait for the same ceiling.
struct Queue {
    per_second: u32,
    jobs: Vec<usize>,
}

/// Account, kind and target of a ceiling, and the lane that waits for it.
type Key<'a> = (&'a str, &'a str, &'a str, &'a str);

impl Queue {
    /// How long its jobs take, in microseconds.
    fn span(&self) -> i64 {
        let span = turns::span(self.jobs.len(), self.per_second);
        i64::try_from(span).unwrap_or(i64::MAX)
    }

    /// In the order of their keys, which is the order in which every worker locks their rows.
    fn all_of(jobs: &[WaitingJob]) -> BTreeMap<Key<'_>, Self> {
        let mut queues = BTreeMap::new();
        for (place, job) in jobs.iter().enumerate() {
            if let Due::InTurn(ceiling) = &job.due {
                let account = job.account.as_str();
                let key = (
                    account,
                    kind(job.reason),
                    &*ceiling.target,
                    job.lane.as_str(),
                );
                let queue = queues.entry(key).or_insert(Self {
                    per_second: ceiling.per_second,
                    jobs: Vec::new(),
                });
                queue.jobs.push(place);
            }
        }
        queues
    }
}

/// The kind of ceiling, as tables name it.
fn kind(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::Service => "service",
        _ => "number",
    }
}

/// Takes turns for all jobs of each queue. Gives the jobs' places with their instants, in
/// microseconds since the Unix epoch.
async fn take_turns(
    connection: &mut PgConnection,
    queues: &BTreeMap<Key<'_>, Queue>,
) -> Result<Vec<(usize, i64)>, sqlx::Error> {
    let accounts: Vec<_> = queues.keys().map(|(account, ..)| *account).collect();
    let kinds: Vec<_> = queues.keys().map(|(_, kind, ..)| *kind).collect();
    let targets: Vec<_> = queues.keys().map(|(.., target, _)| *target).collect();
    let lanes: Vec<_> = queues.keys().map(|(.., lane)| *lane).collect();
    let spans: Vec<_> = queues.values().map(Queue::span).collect();
    // `now()` stands still within the transaction, so that the difference is the span; the queue's
    // row may have been waited for, so that it begins by the clock.
    let taken = sqlx::query!(
        r#"
        INSERT INTO ceiling_turns AS turns (account_id, kind, target, lane, taken_until)
        SELECT account_id, kind, target, lane, now() + interval '1 s' + span * interval '1 us'
        FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])
            WITH ORDINALITY AS wanted (account_id, kind, target, lane, span, place)
        ORDER BY place
        ON CONFLICT (account_id, kind, target, lane) DO UPDATE
        SET taken_until = greatest(turns.taken_until, clock_timestamp() + interval '1 s')
            + (excluded.taken_until - now() - interval '1 s')
        RETURNING account_id, kind, target, lane,
            (extract(epoch FROM taken_until) * 1000000)::bigint AS "taken_until!"
        "#,
        &accounts as &[&str],
        &kinds as &[&str],
        &targets as &[&str],
        &lanes as &[&str],
        &spans,
    );
    let mut due = Vec::new();
    for taken in taken.fetch_all(connection).await? {
        let key = (
            &*taken.account_id,
            &*taken.kind,
            &*taken.target,
            &*taken.lane,
        );
        if let Some(queue) = queues.get(&key) {
            let instants = turns::instants(taken.taken_until, queue.jobs.len(), queue.per_second);
            due.extend(queue.jobs.iter().copied().zip(instants));
        }
    }
    Ok(due)
}

/// Writes the rows. `due` is in microseconds since the Unix epoch.
async fn insert(
    connection: &mut PgConnection,
    jobs: &[WaitingJob],
    due: &[Option<i64>],
) -> Result<(), sqlx::Error> {
    let columns = Columns::of(jobs);
    let insert = sqlx::query!(
        "
        INSERT INTO waiting (account_id, id, lane, reason, due_at, campaign_id, journey_id, batch_id,
            job, attempts, sheds, enqueued_ms)
        SELECT account_id, id, lane, reason, timestamptz 'epoch' + due * interval '1 us',
            campaign_id, journey_id, batch_id, job, attempts, sheds, enqueued_ms
        FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[],
            $7::text[], $8::text[], $9::bytea[], $10::integer[], $11::integer[], $12::bigint[])
            AS jobs (account_id, id, lane, reason, due, campaign_id, journey_id, batch_id,
                job, attempts, sheds, enqueued_ms)
        ",
        &columns.accounts as &[&str],
        &columns.ids as &[&str],
        &columns.lanes as &[&str],
        &columns.reasons as &[&str],
        due as &[Option<i64>],
        &columns.campaigns as &[Option<&str>],
        &columns.journeys as &[Option<&str>],
        &columns.batches as &[Option<&str>],
        &columns.messages as &[&[u8]],
        &columns.attempts,
        &columns.sheds,
        &columns.enqueued as &[Option<i64>],
    );
    insert.execute(connection).await?;
    Ok(())
}

/// The jobs, column by column.
#[derive(Default)]
struct Columns<'a> {
    accounts: Vec<&'a str>,
    ids: Vec<&'a str>,
    lanes: Vec<&'a str>,
    reasons: Vec<&'a str>,
    campaigns: Vec<Option<&'a str>>,
    journeys: Vec<Option<&'a str>>,
    batches: Vec<Option<&'a str>>,
    messages: Vec<&'a [u8]>,
    attempts: Vec<i32>,
    sheds: Vec<i32>,
    enqueued: Vec<Option<i64>>,
}

impl<'a> Columns<'a> {
    fn of(jobs: &'a [WaitingJob]) -> Self {
        let mut columns = Self::default();
        for job in jobs {
            columns.push(job);
        }
        columns
    }

    fn push(&mut self, job: &'a WaitingJob) {
        self.accounts.push(job.account.as_str());
        self.ids.push(job.id.as_str());
        self.lanes.push(job.lane.as_str());
        self.reasons.push(job.reason.as_str());
        self.campaigns.push(job.campaign.as_deref());
        self.journeys.push(job.journey.as_deref());
        self.batches.push(job.batch.as_deref());
        self.messages.push(job.payload.as_bytes());
        let headers = &job.headers;
        self.attempts
            .push(i32::try_from(headers.attempts).unwrap_or(i32::MAX));
        self.sheds
            .push(i32::try_from(headers.sheds).unwrap_or(i32::MAX));
        let enqueued = headers
            .enqueued_ms
            .and_then(|millis| i64::try_from(millis).ok());
        self.enqueued.push(enqueued);
    }
}
