//! The ledger in PostgreSQL.

mod partitions;
mod writing;

use jiff::Timestamp;
use lanekeeper::dispatch::ports::{Admission, Ended};
use lanekeeper::domain::{AccountId, JobHead, JobId, Lane, LaneRule, MeterMode, Origin, Outcome};
use lanekeeper::ledger::{RecipientForm, write};

use crate::support::postgres::TestDatabase;

/// An end of a job of account `acme`, with everything that can be known.
pub fn ended(id: &str, outcome: Outcome, settled_at: &str) -> Ended {
    let settled_at: Timestamp = settled_at.parse().unwrap();
    Ended {
        head: JobHead {
            id: JobId::parse(id).unwrap(),
            account: AccountId::parse("acme").unwrap(),
            channel: "sms".into(),
            lane: Lane::Marketing,
            lane_rule: LaneRule::Priority,
            origin: Some(Origin::Campaign),
            enqueued_at: Some("2026-03-01T08:00:00.001Z".parse().unwrap()),
            campaign_id: Some("spring".into()),
            journey_id: None,
            batch_id: Some("b-7".into()),
        },
        recipient: Some("+447700900123".into()),
        outcome,
        detail: None,
        carrier: Some("default".into()),
        carrier_ref: Some("ref-1".into()),
        attempts: 1,
        sheds: 3,
        admission: Some(Admission {
            at: "2026-03-01T09:00:00.5Z".parse().unwrap(),
            count: 17,
            mode: MeterMode::Shared,
        }),
        settled_at,
        next_allowed_at: None,
        repeated: false,
    }
}

/// The same, told again.
fn repeated(mut one: Ended) -> Ended {
    one.repeated = true;
    one
}

async fn write_all(database: &TestDatabase, ended: &[Ended]) {
    write(database.pool(), ended, &RecipientForm::Masked)
        .await
        .unwrap();
}

/// One line for each row, in order.
async fn rows(database: &TestDatabase, columns: &str) -> Vec<String> {
    let query =
        format!("SELECT concat_ws('|', {columns}) FROM ledger ORDER BY account_id, id, day");
    sqlx::query_scalar(&query)
        .fetch_all(database.pool())
        .await
        .unwrap()
}
