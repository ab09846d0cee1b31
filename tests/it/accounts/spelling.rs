//! The tables take what the commands write, and nothing that no job could be compared with.

use lanekeeper::domain::{Scope, typed_recipient_key};

use crate::support::postgres::TestDatabase;

/// Whether the table takes a row.
async fn takes(database: &TestDatabase, scope: &str, recipient: &str) -> bool {
    let insert = "INSERT INTO suppressions VALUES ('acme', $1, $2) ON CONFLICT DO NOTHING";
    let insert = sqlx::query(insert).bind(recipient).bind(scope);
    insert.execute(database.pool()).await.is_ok()
}

#[tokio::test]
async fn what_a_command_writes_the_table_takes() {
    let database = TestDatabase::create().await;
    let longest_plan = format!("+81{}", "0".repeat(17));
    let long_id = "x".repeat(1_024);
    for (scope, text) in [
        ("all", "+44 7700 900123"),
        ("sms", "+2908123"),
        ("voice", &longest_plan),
        ("all", "Ann@Example.ORG."),
        ("email", "ÄNN+x..y'o{1}@exa\u{308}mple.org"),
        ("email", "Σας@x_y"),
        ("email", "+447700900123@example.org"),
        ("push", " +/ab c= "),
        ("telegram", "@Ann"),
        ("line", &long_id),
    ] {
        let key = typed_recipient_key(Scope::parse(scope).unwrap(), text, None);
        let Ok(key) = key else {
            // Whatever the plans of numbers say of it: the program does not write it.
            assert_eq!(text, longest_plan, "{text}");
            continue;
        };
        assert!(takes(&database, scope, &key).await, "{scope} {key}");
    }
}

#[tokio::test]
async fn what_no_job_is_compared_with_the_table_refuses() {
    let database = TestDatabase::create().await;
    for (scope, recipient) in [
        ("all", "+44 7700 900202"),
        ("sms", "+447700900202 "),
        ("sms", "447700900202"),
        ("all", "+04477009002"),
        ("all", "+447700900202\n"),
        ("all", "Ann"),
        ("all", "Ann@Example.org"),
        ("email", "ÄNN@example.org"),
        ("email", "a\u{308}nn@example.org"),
        ("email", "ann@exämple.org"),
        ("email", "ann@example.org."),
        ("email", "Ann <ann@example.org>"),
        ("email", "\"ann\"@example.org"),
        ("email", "ann\u{200b}@example.org"),
        ("email", "ann\u{a0}@example.org"),
        ("email", "+447700900202"),
        ("push", " token"),
        ("push", "token\u{a0}"),
        ("push", "to\u{85}ken"),
        ("push", ""),
        ("push", &"x".repeat(1_025)),
        ("SMS", "+447700900202"),
        ("", "+447700900202"),
        ("ALL", "+447700900202"),
    ] {
        assert!(
            !takes(&database, scope, recipient).await,
            "{scope} {recipient:?}"
        );
    }
}

#[tokio::test]
async fn a_hold_on_an_account_is_on_that_account() {
    let database = TestDatabase::create().await;
    let put = async |kind: &str, target: &str| {
        let insert = "INSERT INTO holds VALUES ('acme', $1, $2, 'paused')";
        let insert = sqlx::query(insert).bind(kind).bind(target);
        insert.execute(database.pool()).await.is_ok()
    };
    assert!(!put("account", "other").await && !put("account", "").await);
    assert!(put("account", "acme").await && put("campaign", "other").await);
}
