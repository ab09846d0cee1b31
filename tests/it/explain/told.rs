//! What became of a job.

use jiff::Timestamp;
use lanekeeper::dispatch::ports::{Due, WaitReason, WaitingJob};
use lanekeeper::domain::{
    AccountId, Failure, Field, JobHeaders, JobId, Lane, Outcome, Payload, Refusal,
};
use lanekeeper::ledger::{RecipientForm, write};
use lanekeeper::waiting::keep;

use super::{as_json, database_of, explain, gates, text};
use crate::ledger::ended;
use crate::support::postgres::TestDatabase;

const NOON: &str = "2026-03-01T12:00:00.250Z";

async fn write_down(database: &TestDatabase, ended: &[lanekeeper::dispatch::ports::Ended]) {
    write(database.pool(), ended, &RecipientForm::Masked)
        .await
        .unwrap();
}

fn waiting(id: &str, account: &str, reason: WaitReason, due: Due) -> WaitingJob {
    WaitingJob {
        id: JobId::parse(id).unwrap(),
        account: AccountId::parse(account).unwrap(),
        lane: Lane::Transactional,
        reason,
        due,
        campaign: Some("spring".into()),
        journey: None,
        batch: None,
        headers: JobHeaders::default(),
        payload: Payload::new("{}"),
    }
}

#[tokio::test]
async fn every_outcome_is_told_with_its_gates() {
    let database = TestDatabase::create().await;
    let table = [
        (Outcome::Dispatched, "ceilings passed"),
        (Outcome::Failed(Failure::CarrierRejected), "ceilings passed"),
        (
            Outcome::Failed(Failure::AttemptsExhausted),
            "ceilings passed",
        ),
        (Outcome::Refused(Refusal::OptedOut), "suppression stopped"),
        (
            Outcome::Refused(Refusal::FrequencyCap),
            "frequency_caps stopped",
        ),
        (Outcome::Refused(Refusal::QuietHours), "quiet_hours stopped"),
        (Outcome::Refused(Refusal::UnknownAccount), "account stopped"),
        (
            Outcome::Refused(Refusal::Invalid(Field::To)),
            "fields stopped",
        ),
        (Outcome::Cancelled, "holds stopped"),
        (Outcome::Expired, "expiry stopped"),
    ];
    for (number, (outcome, decisive)) in table.into_iter().enumerate() {
        let id = format!("j-{number}");
        let mut one = ended(&id, outcome, NOON);
        if outcome != Outcome::Dispatched {
            one.admission = None;
        }
        write_down(&database, &[one]).await;
        let (json, code) = as_json(&[&id], &database_of(&database)).await;
        assert_eq!(code, 0);
        let end = &json["jobs"][0]["ends"][0];
        assert_eq!(end["outcome"], outcome.as_str());
        assert_eq!(end["reason"].as_str().unwrap_or(""), outcome.reason());
        let gates = gates(end);
        assert_eq!(gates.len(), 10);
        assert!(
            gates.contains(&decisive.to_owned()),
            "{outcome:?}: {gates:?}"
        );
        let stopped = gates.iter().position(|gate| gate.ends_with("stopped"));
        if let Some(place) = stopped {
            let mut after = gates[place + 1..].iter();
            assert!(!after.any(|gate| gate.ends_with(" stopped")), "{gates:?}");
        }
    }
}

#[tokio::test]
async fn people_read_it_line_by_line() {
    let database = TestDatabase::create().await;
    write_down(&database, &[ended("j-1", Outcome::Dispatched, NOON)]).await;
    let output = explain(&["j-1"], &database_of(&database)).await;
    assert_eq!(
        text(&output.stdout),
        "\
job           j-1 of acme
outcome       dispatched
lane          marketing, by its priority
origin        campaign
campaign      spring
batch         b-7
channel       sms
recipient     ***0123
gates         passed     fields, expiry, account, suppression, holds, not_before, quiet_hours, sent_before, frequency_caps, ceilings
counted       as number 17 of its second, by the counter that all workers share
tries         1 try at carrier default, its reference ref-1
sheds         3
queued        2026-03-01T08:00:00.001Z
admitted      2026-03-01T09:00:00.500Z
settled       2026-03-01T12:00:00.250Z
"
    );
}

#[tokio::test]
async fn every_account_with_that_id_is_told_of_unless_one_is_named() {
    let database = TestDatabase::create().await;
    let mut other = ended("j-1", Outcome::Expired, NOON);
    other.head.account = AccountId::parse("other").unwrap();
    write_down(&database, &[ended("j-1", Outcome::Dispatched, NOON), other]).await;
    let (json, _) = as_json(&["j-1"], &database_of(&database)).await;
    let accounts: Vec<_> = json["jobs"].as_array().unwrap().iter().collect();
    let accounts: Vec<_> = accounts
        .iter()
        .map(|job| job["account_id"].as_str().unwrap())
        .collect();
    assert_eq!(accounts, ["acme", "other"]);
    let (json, code) = as_json(&["j-1", "--account", "other"], &database_of(&database)).await;
    assert_eq!((json["jobs"].as_array().unwrap().len(), code), (1, 0));
    assert_eq!(json["jobs"][0]["ends"][0]["outcome"], "expired");
}

#[tokio::test]
async fn a_job_that_waits_says_for_what() {
    let database = TestDatabase::create().await;
    let due = Timestamp::now() + std::time::Duration::from_secs(7_300);
    let jobs = [
        waiting("later", "acme", WaitReason::QuietHours, Due::At(due)),
        waiting("paused", "acme", WaitReason::Paused, Due::Resumed),
        waiting("resumed", "other", WaitReason::Paused, Due::Resumed),
    ];
    keep(database.pool(), &jobs).await.unwrap();
    database
        .execute("INSERT INTO holds VALUES ('acme', 'campaign', 'spring', 'paused')")
        .await;
    let environment = database_of(&database);
    let (json, code) = as_json(&["later"], &environment).await;
    let wait = &json["jobs"][0]["waits"][0];
    let due = format!("{due:.3}");
    assert_eq!(
        (wait["reason"].as_str(), wait["due_at"].as_str()),
        (Some("quiet_hours"), Some(&*due))
    );
    assert_eq!((wait["lane"].as_str(), code), (Some("transactional"), 0));
    let (json, _) = as_json(&["paused"], &environment).await;
    let wait = &json["jobs"][0]["waits"][0];
    assert!(wait["due_at"].is_null());
    assert_eq!(wait["holds"][0], "campaign spring: paused");

    let shown = text(&explain(&["later"], &environment).await.stdout);
    assert!(
        shown.contains("(in 2 h), because of quiet_hours"),
        "{shown}"
    );
    let shown = text(&explain(&["resumed"], &environment).await.stdout);
    assert!(shown.contains("none any more"), "{shown}");
}

#[tokio::test]
async fn a_job_that_waits_names_the_holds_on_it_whatever_it_waits_for() {
    let database = TestDatabase::create().await;
    let due = Timestamp::now() + std::time::Duration::from_secs(7_300);
    let later = waiting("later", "acme", WaitReason::NotBefore, Due::At(due));
    keep(database.pool(), &[later]).await.unwrap();
    let environment = database_of(&database);
    let shown = text(&explain(&["later"], &environment).await.stdout);
    assert!(!shown.contains("holds"), "{shown}");
    for (state, consequence) in [("paused", ""), ("cancelled", "; it ends as cancelled")] {
        database
            .execute(&format!(
                "DELETE FROM holds; INSERT INTO holds VALUES ('acme', 'campaign', 'spring', '{state}')"
            ))
            .await;
        let shown = text(&explain(&["later"], &environment).await.stdout);
        let says = format!("holds         campaign spring: {state}{consequence}");
        assert!(shown.contains(&says), "{shown}");
        assert!(shown.contains("(in 2 h), because of not_before"), "{shown}");
    }
}

#[tokio::test]
async fn a_job_that_waits_says_when_it_expires_and_what_follows() {
    let database = TestDatabase::create().await;
    let instant = |seconds: i64| Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
    let table = [
        ("over", Due::Resumed, -5, "but not before it is released"),
        ("paused", Due::Resumed, 600, "released later than that"),
        ("before", Due::At(instant(900)), 600, "but not before"),
        ("after", Due::At(instant(300)), 600, ""),
    ];
    for (id, due, expires, says) in table {
        let expires = format!("{:.3}", instant(expires));
        let mut one = waiting(id, "acme", WaitReason::Paused, due);
        one.payload = Payload::new(format!(
            r#"{{"id": "{id}", "account_id": "acme", "channel": "sms", "to": "+447700900123",
                "expires_at": "{expires}"}}"#
        ));
        keep(database.pool(), &[one]).await.unwrap();
        let (json, _) = as_json(&[id], &database_of(&database)).await;
        assert_eq!(json["jobs"][0]["waits"][0]["expires_at"], expires);
        let shown = text(&explain(&[id], &database_of(&database)).await.stdout);
        let line = shown.lines().find(|line| line.starts_with("expires"));
        let line = line.unwrap_or_else(|| panic!("{id}: {shown}"));
        assert!(
            line.contains(&expires) && line.contains(says),
            "{id}: {line}"
        );
        assert_eq!(line.contains(';'), !says.is_empty(), "{id}: {line}");
    }
}

#[tokio::test]
async fn what_is_not_known_has_an_exit_code_and_says_what_it_may_mean() {
    let database = TestDatabase::create().await;
    let environment = database_of(&database);
    let output = explain(&["nobody"], &environment).await;
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    for part in ["still queued", "dead list", "30 days"] {
        assert!(said.contains(part), "{said}");
    }
    let (json, code) = as_json(&["nobody"], &environment).await;
    assert_eq!((json["jobs"].as_array().unwrap().len(), code), (0, 1));
}

#[tokio::test]
async fn wrong_usage_is_explained() {
    let unreachable = [(
        "LANEKEEPER__DATABASE__URL",
        "postgres://u:S3NTINEL@127.0.0.1:1/x",
    )];
    for (arguments, environment, code, says) in [
        (&["j-1"][..], &[][..], 2, "database.url"),
        (&[], &unreachable, 2, "required"),
        (&["not an id"], &unreachable, 2, "not an id"),
        (
            &["j-1", "--dry-run", "x.json"],
            &unreachable,
            2,
            "cannot be used",
        ),
        (&["j-1", "--account", "ä"], &unreachable, 2, "--account"),
        (&["j-1"], &unreachable, 1, "127.0.0.1:1"),
        (&["--dry-run", "/nowhere/x.json"], &[], 1, "/nowhere/x.json"),
    ] {
        let output = explain(arguments, environment).await;
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(says) && !said.contains("S3NTINEL"), "{said}");
    }
}
