//! What is refused, and what is said then: which value, and what was expected.

use super::desk::{Desk, ended};

/// A command, its exit code, and a part of what it says.
type Mistake = (&'static str, i32, &'static str);

const ACCOUNTS: &[Mistake] = &[
    (
        "account set a.b",
        2,
        "expected 1 to 64 characters of A-Z a-z 0-9 _ -",
    ),
    ("account set acme --budget -1", 2, "unexpected argument"),
    (
        "account set acme --budget=-1",
        2,
        "expected 0 to 1000000000 messages per second",
    ),
    (
        "account set acme --reserve 101",
        2,
        "expected 0 to 100 percent",
    ),
    ("account set acme --quiet-hours on", 2, "time_zone: missing"),
    (
        "account set acme --quiet-hours on",
        2,
        "give one by --time-zone",
    ),
    (
        "account set acme --time-zone America/Nowhere",
        2,
        "expected an IANA time zone",
    ),
    (
        "account set acme --time-zone=",
        2,
        "expected an IANA time zone",
    ),
    ("account set acme --window sms=25:99", 2, "expected a start"),
    (
        "account set acme --window sms=21:00-21:00",
        2,
        "that differ",
    ),
    (
        "account set acme --window fax=off",
        2,
        "expected one of sms",
    ),
    (
        "account set acme --quiet-action drop",
        2,
        "expected refuse or defer",
    ),
    (
        "account unknown drop",
        2,
        "expected default, refuse or settings",
    ),
];

const CAPS: &[Mistake] = &[
    ("cap set --account acme --name daily", 2, "--limit"),
    (
        "cap set --account acme --name d --limit 0 --window 1h",
        2,
        "expected 1 to 10000",
    ),
    (
        "cap set --account acme --name d --limit 1 --window 367d",
        2,
        "expected 1s to 366d",
    ),
    (
        "cap set --account nobody --name d --limit 1 --window 1h",
        1,
        "no such account: nobody",
    ),
    (
        "cap set --account nobody --name d --limit 1 --window 1h",
        1,
        "account set nobody",
    ),
];

const CEILINGS: &[Mistake] = &[
    ("ceiling set --account acme --per-second 1", 2, "--number"),
    (
        "ceiling set --account acme --number 1 --service 2 --per-second 1",
        2,
        "cannot be used",
    ),
    (
        "ceiling set --account acme --number 1 --per-second 0",
        2,
        "expected 1 to 1000000000",
    ),
    (
        "ceiling set --account nobody --service s --per-second 1",
        1,
        "account set nobody",
    ),
];

const SUPPRESSIONS: &[Mistake] = &[
    ("suppression add --account acme", 2, "RECIPIENT"),
    (
        "suppression add --account acme Ann",
        2,
        "recipient: expected a telephone number",
    ),
    (
        "suppression add --account acme 07700900123",
        2,
        "a + and a country code",
    ),
    (
        "suppression add --account acme --scope email 07700900123",
        2,
        "one bare e-mail address",
    ),
    (
        "suppression add --account acme +447700900123 x@",
        2,
        "recipient 2: expected",
    ),
    (
        "suppression add --account acme --scope every x@y.z",
        2,
        "expected all, or one of sms",
    ),
];

const HOLDS: &[Mistake] = &[
    ("pause", 2, "expected `account ACCOUNT`"),
    (
        "pause customer acme",
        2,
        "expected account, campaign, journey or batch",
    ),
    ("pause account acme spring", 2, "nothing behind the account"),
    ("pause campaign acme", 2, "the campaign's id is missing"),
    ("cancel batch a/b c", 2, "expected 1 to 64 characters"),
    ("pause --list account acme", 2, "cannot be used with"),
];

#[tokio::test]
async fn what_cannot_be_is_refused_and_changes_nothing() {
    let desk = Desk::new().await;
    desk.ok("account set acme").await;
    for (words, code, said) in [ACCOUNTS, CAPS, CEILINGS, SUPPRESSIONS, HOLDS].concat() {
        let ended = desk.run(words).await;
        assert_eq!(ended.code, code, "{words}: {ended:?}");
        assert!(ended.stderr.contains(said), "{words}: {ended:?}");
        assert_eq!(ended.stdout, "", "{words}");
    }
    let account = desk.ok("account show acme --json").await;
    assert!(
        account.stdout.contains(r#""own_budget":false"#),
        "{account:?}"
    );
    assert!(account.stdout.contains(r#""opt_outs":0"#), "{account:?}");
    assert!(
        account.stdout.contains(r#""quiet_hours":false"#),
        "{account:?}"
    );
    for empty in [
        "cap list --json",
        "ceiling list --json",
        "pause --list --json",
    ] {
        assert_eq!(desk.ok(empty).await.stdout, "", "{empty}");
    }
}

/// Recipients are the business of those who have typed them: errors reach logs.
#[tokio::test]
async fn no_error_repeats_a_recipient() {
    let desk = Desk::new().await;
    for recipient in ["07700900123", "ann.lee@", "+4477009001239999999"] {
        let words = format!("suppression add --account acme {recipient}");
        let ended = desk.run(&words).await;
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(!ended.stderr.contains(&recipient[..7]), "{ended:?}");
    }
}

#[tokio::test]
async fn what_was_broken_past_the_commands_is_shown_and_mended() {
    let desk = Desk::new().await;
    desk.ok("account set acme --quiet-hours on --time-zone utc")
        .await;
    for broken in [
        "time_zone = NULL",
        "time_zone = 'America/Nowhere'",
        r#"windows = '{"sms": "25:99"}'"#,
        r#"windows = '{"sms": 7}'"#,
    ] {
        desk.database
            .execute(&format!("UPDATE accounts SET {broken}"))
            .await;
        let shown = desk.ok("account show acme").await.words();
        assert!(
            shown.contains("quiet hours cannot be read, so that nothing is sent"),
            "{shown}"
        );
        let listed = desk.ok("account list").await.words();
        assert!(listed.contains("cannot be read"), "{listed}");
        // What has nothing to do with it can be changed all the same.
        desk.ok("account set acme --budget 5").await;
        let mended = "account set acme --time-zone utc --window sms=08:00-21:00 --json";
        assert_eq!(
            desk.ok(mended).await.json()[0]["fault"],
            serde_json::Value::Null
        );
    }
}

#[tokio::test]
async fn without_a_database_each_command_says_how_to_set_one() {
    for words in [
        "account list",
        "cap list",
        "ceiling list",
        "suppression list --account acme",
        "pause --list",
        "resume account acme",
        "cancel account acme",
    ] {
        let words: Vec<_> = words.split_whitespace().collect();
        let ended = ended("", &words, "").await;
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(
            ended.stderr.contains("LANEKEEPER__DATABASE__URL="),
            "{ended:?}"
        );
    }
}

#[tokio::test]
async fn a_database_that_cannot_be_used_is_told_without_its_url() {
    let nobody = "postgres://user:secret-word@127.0.0.1:1/lanekeeper";
    let ended = ended(nobody, &["account", "list"], "").await;
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("`lanekeeper check`"), "{ended:?}");
    assert!(!ended.stderr.contains("secret-word"), "{ended:?}");
}

#[tokio::test]
async fn a_database_without_tables_is_told_how_to_get_them() {
    let database = crate::support::postgres::TestDatabase::empty().await;
    let ended = ended(database.url(), &["account", "list"], "").await;
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("`lanekeeper migrate`"), "{ended:?}");
}
