//! CSV files.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use super::desk::{Desk, Ended};
use crate::support::eventually;
use crate::support::worker::signal;

/// What must happen may take this long.
const LIMIT: Duration = Duration::from_secs(60);

/// The figures of an import with `--json`: rows, added, changed, unchanged, rejected.
fn figures(ended: &Ended) -> [u64; 5] {
    let report = &ended.json()[0];
    ["rows", "added", "changed", "unchanged", "rejected"].map(|name| report[name].as_u64().unwrap())
}

async fn import(desk: &Desk, what: &str, file: &str) -> Ended {
    desk.run(&format!("{what} import {file} --json")).await
}

#[tokio::test]
async fn accounts_are_added_and_changed_and_a_second_time_changes_nothing() {
    let desk = Desk::new().await;
    desk.ok("account set acme --budget 5 --reserve 10").await;
    let file = desk.file(
        "accounts.csv",
        "account;Budget;quiet-hours;Time Zone;window\n\
         acme;250;;;\n\
         other;default;on;Europe/London;sms=10:00-18:00 voice=off\n",
    );
    let first = import(&desk, "account", &file).await;
    assert_eq!(
        (first.code, figures(&first)),
        (0, [2, 1, 1, 0, 0]),
        "{first:?}"
    );
    let version = "SELECT version FROM directory";
    let version = || sqlx::query_scalar::<_, i64>(version).fetch_one(desk.database.pool());
    let before = version().await.unwrap();
    let again = import(&desk, "account", &file).await;
    assert_eq!(
        (again.code, figures(&again)),
        (0, [2, 0, 0, 2, 0]),
        "{again:?}"
    );
    // Nor has any worker to read all tables again.
    assert_eq!(version().await.unwrap(), before);

    let acme = &desk.ok("account show acme --json").await.json()[0];
    assert_eq!(
        (&acme["budget_per_second"], &acme["reserve_percent"]),
        (&250.into(), &10.into())
    );
    let other = &desk.ok("account show other --json").await.json()[0];
    assert_eq!(other["windows"]["sms"], "10:00-18:00");
    assert_eq!(other["windows"]["voice"], Value::Null);
}

#[tokio::test]
async fn caps_and_ceilings_are_imported() {
    let desk = Desk::new().await;
    desk.ok("account set acme").await;
    let caps = desk.file(
        "caps.csv",
        "account,name,limit,window,channel,category\nacme,daily,3,24h,,\nacme,promo,1,7d,sms,x\n",
    );
    let first = import(&desk, "cap", &caps).await;
    assert_eq!(figures(&first), [2, 2, 0, 0, 0], "{first:?}");
    desk.ok("cap set --account acme --name daily --limit 9 --window 1h")
        .await;
    let again = import(&desk, "cap", &caps).await;
    assert_eq!(figures(&again), [2, 0, 1, 1, 0], "{again:?}");

    let ceilings = desk.file(
        "ceilings.csv",
        "account,number,service,per_second\nacme,\"=\"\"+447700900123\"\"\",,1\nacme,,news,20\n",
    );
    let first = import(&desk, "ceiling", &ceilings).await;
    assert_eq!(figures(&first), [2, 2, 0, 0, 0], "{first:?}");
    let listed = desk.ok("ceiling list").await.words();
    assert!(
        listed.contains("acme number +447700900123 1 acme service news 20"),
        "{listed}"
    );
    let again = import(&desk, "ceiling", &ceilings).await;
    assert_eq!(figures(&again), [2, 0, 0, 2, 0], "{again:?}");

    let stray = desk.file(
        "stray.csv",
        "account,name,limit,window\nnobody,daily,3,24h\n",
    );
    let stray = import(&desk, "cap", &stray).await;
    assert_eq!(stray.code, 1, "{stray:?}");
    assert!(
        stray.stderr.contains("no such account: nobody"),
        "{stray:?}"
    );
}

#[tokio::test]
async fn opt_outs_are_imported_from_a_file_or_a_pipe() {
    let desk = Desk::new().await;
    let content = "Recipient,Scope,Source\n\
        +44 7700 900123,,\n+447700900123,,again\nAnn@Example.org,,web\ntoken,push,\n";
    let words = [
        "suppression",
        "import",
        "--account",
        "acme",
        "--source",
        "list",
        "--json",
        "-",
    ];
    let piped = desk.with(&words, content).await;
    assert_eq!(
        (piped.code, figures(&piped)),
        (0, [4, 3, 0, 1, 0]),
        "{piped:?}"
    );
    let file = desk.file("optouts.csv", content);
    let again = import(&desk, "suppression", &format!("--account acme {file}")).await;
    assert_eq!(
        (again.code, figures(&again)),
        (0, [4, 0, 0, 4, 0]),
        "{again:?}"
    );
    let listed = desk.ok("suppression list --account acme").await.words();
    for part in [
        "+447700900123 all 20",
        " list",
        "ann@example.org email 20",
        " web",
        "token push",
    ] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
}

#[tokio::test]
async fn a_file_with_bad_rows_is_refused_as_a_whole_or_without_them() {
    let desk = Desk::new().await;
    let file = desk.file(
        "optouts.csv",
        "recipient,scope\n+442079460101,\nAnn,\n+442079460102,fax\n4.47E+11,\n,push\n+442079460103,\n",
    );
    let words = format!("suppression import --account acme {file}");
    let refused = desk.run(&words).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    for line in [
        "line 3: recipient: expected a telephone number",
        "line 4: scope: expected all, or one of sms",
        "line 5: recipient: digits were lost",
        "line 6: recipient: expected a recipient, found nothing",
        "next: correct those rows and run it again, or give --skip-bad",
    ] {
        assert!(refused.stderr.contains(line), "{line}: {refused:?}");
    }
    assert!(
        refused.words().contains("nothing was written rows 6"),
        "{refused:?}"
    );
    assert!(!refused.stderr.contains("2079"), "{refused:?}");
    let count = desk.ok("account set acme --json").await.json()[0]["opt_outs"].clone();
    assert_eq!(count, 0);

    let few = desk.run(&format!("{words} --max-errors 1")).await;
    assert_eq!(few.stderr.matches("line ").count(), 1, "{few:?}");
    assert!(
        few.words().contains("rejected 4 the first 1 are shown"),
        "{few:?}"
    );
    let dry = desk
        .run(&format!("{words} --skip-bad --dry-run --json"))
        .await;
    assert_eq!((dry.code, figures(&dry)), (2, [6, 0, 0, 0, 4]), "{dry:?}");
    let without = desk.run(&format!("{words} --skip-bad --json")).await;
    assert_eq!(
        (without.code, figures(&without)),
        (3, [6, 2, 0, 0, 4]),
        "{without:?}"
    );
}

#[tokio::test]
async fn rows_that_say_the_same_thing_differently_are_no_table() {
    let desk = Desk::new().await;
    let file = desk.file("accounts.csv", "account,budget\nacme,1\nother,2\nacme,3\n");
    let refused = desk.run(&format!("account import {file}")).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    let said = "line 4: row: the same is said on line 2 already";
    assert!(refused.stderr.contains(said), "{refused:?}");
    assert_eq!(desk.ok("account list --json").await.stdout, "");
}

/// A mistake that only the database can see, in the last of several statements, undoes them all.
#[tokio::test]
async fn all_rows_are_written_or_none() {
    let desk = Desk::new().await;
    let mut content = "account,quiet_hours\n".to_owned();
    for number in 0..6_000 {
        writeln!(content, "a{number},").unwrap();
    }
    content += "last,on\n";
    let file = desk.file("accounts.csv", &content);
    let refused = desk.run(&format!("account import {file}")).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    let said = "account last: quiet hours: time_zone: missing";
    assert!(refused.stderr.contains(said), "{refused:?}");
    assert_eq!(desk.ok("account list --json").await.stdout, "");
}

#[tokio::test]
async fn a_signal_leaves_nothing_written() {
    let desk = Desk::new().await;
    let file = desk.file("optouts.csv", "recipient\n+447700900101\n");
    let mut other = desk.database.pool().begin().await.unwrap();
    let lock = "LOCK TABLE suppressions IN EXCLUSIVE MODE";
    sqlx::query(lock).execute(&mut *other).await.unwrap();
    let importing = desk.start(&format!("suppression import --account acme {file}"));
    eventually("the import waits for the table", LIMIT, async || {
        let waiting = "SELECT count(*) FROM pg_locks
            WHERE NOT granted AND relation = 'suppressions'::regclass";
        let waiting = sqlx::query_scalar::<_, i64>(waiting);
        waiting.fetch_one(desk.database.pool()).await.unwrap() == 1
    })
    .await;
    signal(importing.id().unwrap(), "INT");
    let ended = Ended::of(importing).await;
    assert_eq!(ended.code, 130, "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("stopped by SIGINT; nothing was written"),
        "{ended:?}"
    );
    other.rollback().await.unwrap();
    assert_eq!(
        desk.ok("suppression list --account acme --json")
            .await
            .stdout,
        ""
    );
}

#[tokio::test]
async fn files_that_are_no_such_tables_are_refused_without_their_values() {
    let desk = Desk::new().await;
    for (content, said) in [
        (
            "",
            "the file is empty; expected a header line such as recipient,scope,source",
        ),
        (
            "+447700900123\n",
            "line 1: expected a header line such as recipient",
        ),
        ("scope\nall\n", "missing column recipient"),
        (
            "recipient,phone\n+447700900123,x\n",
            "column `phone` is none of",
        ),
    ] {
        let file = desk.file("optouts.csv", content);
        let refused = desk
            .run(&format!("suppression import --account acme {file}"))
            .await;
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
        assert!(!refused.stderr.contains("4477"), "{refused:?}");
    }
    let missing = desk
        .run("suppression import --account acme no-such-file.csv")
        .await;
    assert_eq!(missing.code, 2);
    assert!(
        missing.stderr.contains("cannot open no-such-file.csv"),
        "{missing:?}"
    );
}
