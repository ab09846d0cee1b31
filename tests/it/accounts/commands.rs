//! Each command as an operator uses it.

use serde_json::{Value, json};

use super::desk::Desk;

#[tokio::test]
async fn of_an_account_only_what_is_named_is_changed() {
    let desk = Desk::new().await;
    desk.ok("account set acme --budget 250 --reserve 30").await;
    desk.ok("account set acme --quiet-hours on --time-zone Europe/London --quiet-action defer")
        .await;
    let set = desk
        .ok("account set acme --window sms=10:00-18:00 voice=off --json")
        .await;
    let expected = json!({
        "account_id": "acme",
        "budget_per_second": 250,
        "own_budget": true,
        "reserve_percent": 30,
        "own_reserve": true,
        "transactional_ceiling": 250,
        "marketing_ceiling": 175,
        "quiet_hours": true,
        "quiet_action": "defer",
        "time_zone": "Europe/London",
        "windows": {
            "sms": "10:00-18:00", "rcs": "08:00-21:00", "whatsapp": "09:00-21:00",
            "viber": "09:00-21:00", "messenger": "09:00-21:00", "line": "09:00-21:00",
            "telegram": "09:00-21:00",
        },
        "fault": null,
        "caps": [],
        "ceilings": [],
        "hold": null,
        "opt_outs": 0,
    });
    let shown = desk.ok("account show acme --json").await;
    assert_eq!(shown.stdout, set.stdout);
    assert_eq!(set.json(), [expected]);

    let back = "account set acme --budget default --window sms=standard --quiet-hours off --json";
    let back = &desk.ok(back).await.json()[0];
    assert_eq!(back["budget_per_second"], 100);
    assert_eq!(back["own_budget"], false);
    assert_eq!(back["reserve_percent"], 30);
    assert_eq!(back["windows"], json!({}));
}

#[tokio::test]
async fn an_account_is_shown_with_all_that_belongs_to_it() {
    let desk = Desk::new().await;
    desk.ok("account set acme").await;
    desk.ok("cap set --account acme --name daily --limit 3 --window 24h --channel sms")
        .await;
    desk.ok("ceiling set --account acme --service news --per-second 20")
        .await;
    desk.ok("suppression add --account acme +447700900123")
        .await;
    desk.ok("pause account acme --reason unpaid").await;
    let shown = desk.ok("account show acme").await.words();
    for part in [
        "budget 100 per second, as in the settings reserve 20 %, as in the settings",
        "lanes transactional up to 100, marketing up to 80 per second",
        "quiet hours off",
        "cap daily: 3 in 1d, sms",
        "ceiling service news: 20 per second",
        "hold paused since 20",
        ": unpaid opt-outs 1",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[tokio::test]
async fn accounts_are_listed_in_order_and_removed_with_their_caps() {
    let desk = Desk::new().await;
    assert!(
        desk.ok("account list")
            .await
            .stdout
            .starts_with("No accounts")
    );
    for account in ["b", "a", "C"] {
        desk.ok(&format!("account set {account}")).await;
    }
    desk.ok("account set b --quiet-hours on --time-zone utc --budget 7")
        .await;
    desk.ok("cap set --account b --name daily --limit 3 --window 24h")
        .await;
    let listed = desk.ok("account list").await.words();
    assert!(
        listed.contains("ACCOUNT BUDGET RESERVE QUIET HOURS TIME ZONE"),
        "{listed}"
    );
    assert!(listed.contains("b 7 (20 %) on, refuse utc"), "{listed}");
    let ids: Vec<_> = desk.ok("account list --json").await.json();
    let mut ids: Vec<_> = ids.iter().map(|line| line["account_id"].clone()).collect();
    ids.sort_by_key(Value::to_string);
    assert_eq!(ids, ["C", "a", "b"]);

    let removed = desk.ok("account remove b").await.stdout;
    assert_eq!(removed, "b: removed, with 1 cap and 0 ceilings\n");
    assert_eq!(desk.ok("cap list --json").await.json(), [] as [Value; 0]);
    for again in ["account remove b", "account show b"] {
        let ended = desk.run(again).await;
        assert_eq!(ended.code, 3, "{ended:?}");
        assert!(ended.stderr.contains("no such account: b;"), "{ended:?}");
    }
}

#[tokio::test]
async fn accounts_that_nobody_lists_have_a_policy() {
    let desk = Desk::new().await;
    let shown = async |words: &str| {
        let line = &desk.ok(words).await.json()[0];
        (line["unknown_accounts"].clone(), line["from"].clone())
    };
    let pair = |policy: &str, from: &str| (json!(policy), json!(from));
    assert_eq!(
        shown("account unknown --json").await,
        pair("default", "settings")
    );
    assert_eq!(
        shown("account unknown refuse --json").await,
        pair("refuse", "database")
    );
    assert_eq!(
        shown("account unknown --json").await,
        pair("refuse", "database")
    );
    let people = desk.ok("account unknown").await.stdout;
    assert_eq!(
        people,
        "accounts that are not listed are refused (database)\n"
    );
    assert_eq!(
        shown("account unknown settings --json").await,
        pair("default", "settings")
    );
}

#[tokio::test]
async fn caps_are_replaced_as_a_whole() {
    let desk = Desk::new().await;
    desk.ok("account set acme").await;
    desk.ok("cap set --account acme --name promo --limit 1 --window 7d --channel sms --category x")
        .await;
    let promo = json!({
        "account_id": "acme", "name": "promo", "limit": 2, "window_seconds": 5_400,
        "channel": null, "category": null,
    });
    let set = "cap set --account acme --name promo --limit 2 --window 1h30m --json";
    let set = desk.ok(set).await;
    let show = "cap show --account acme --name promo";
    assert_eq!(desk.ok(&format!("{show} --json")).await.stdout, set.stdout);
    assert_eq!(set.json(), [promo]);
    let shown = desk.ok(show).await.words();
    assert_eq!(
        shown,
        "ACCOUNT NAME LIMIT WINDOW CHANNEL CATEGORY acme promo 2 1h30m any -"
    );
    desk.ok("cap remove --account acme --name promo").await;
    for gone in [show, "cap remove --account acme --name promo"] {
        assert_eq!(desk.run(gone).await.code, 3, "{gone}");
    }
}

#[tokio::test]
async fn ceilings_are_of_numbers_in_one_spelling_or_of_services() {
    let desk = Desk::new().await;
    desk.ok("account set acme").await;
    let number = ["--account", "acme", "--number", "+44 7700 900123"];
    let words = [&["ceiling", "set", "--per-second", "1"][..], &number].concat();
    assert_eq!(desk.with(&words, "").await.code, 0);
    desk.ok("ceiling set --account acme --number +447700900123 --per-second 2")
        .await;
    desk.ok("ceiling set --account acme --service +447700900123 --per-second 20")
        .await;
    let line = |kind: &str, per_second: u32| {
        json!({
            "account_id": "acme", "kind": kind, "target": "+447700900123",
            "per_second": per_second,
        })
    };
    let listed = desk.ok("ceiling list --account acme --json").await.json();
    assert_eq!(listed, [line("number", 2), line("service", 20)]);
    let words = [&["ceiling", "show", "--json"][..], &number].concat();
    assert_eq!(desk.with(&words, "").await.json(), [line("number", 2)]);
    let words = [&["ceiling", "remove"][..], &number].concat();
    assert_eq!(desk.with(&words, "").await.code, 0);
    assert_eq!(desk.with(&words, "").await.code, 3);
    assert_eq!(
        desk.ok("ceiling list --json").await.json(),
        [line("service", 20)]
    );
}

#[tokio::test]
async fn opt_outs_are_kept_in_the_form_in_which_jobs_are_compared() {
    let desk = Desk::new().await;
    let add = [
        "suppression",
        "add",
        "--account",
        "acme",
        "--source",
        "call",
        "--json",
    ];
    let spellings = ["+44 7700 900123", "+447700900123", " Ann@Example.org"];
    let added = desk.with(&[&add[..], &spellings].concat(), "").await;
    assert_eq!(added.json()[0]["added"], 2, "{added:?}");
    let again = desk.with(&[&add[..], &spellings[1..]].concat(), "").await;
    assert_eq!(again.json()[0]["there_already"], 2, "{again:?}");
    let region = "suppression set --account acme --region GB --scope sms 07700900124";
    desk.ok(region).await;

    let listed = desk
        .ok("suppression list --account acme --json")
        .await
        .json();
    let listed: Vec<_> = listed
        .iter()
        .map(|line| [&line["recipient"], &line["scope"]].map(|it| it.as_str().unwrap()))
        .collect();
    let mut expected = [
        ["+447700900123", "all"],
        ["+447700900124", "sms"],
        ["ann@example.org", "email"],
    ];
    expected.sort_unstable();
    assert_eq!(listed, expected);

    let show = desk
        .ok("suppression show --account acme +447700900123")
        .await;
    assert!(
        show.words()
            .starts_with("RECIPIENT SCOPE SINCE SOURCE +447700900123 all 20")
    );
    assert!(show.words().ends_with(" call"));
    for other in ["+447700900121", "ann@example.com", "ann@example.or"] {
        let show = desk
            .run(&format!("suppression show --account acme {other}"))
            .await;
        assert_eq!(
            (show.code, &*show.stdout),
            (3, "not suppressed\n"),
            "{other}"
        );
    }
    desk.ok("suppression remove --account acme +447700900123")
        .await;
    let gone = desk
        .run("suppression show --account acme +447700900123")
        .await;
    assert_eq!((gone.code, &*gone.stdout), (3, "not suppressed\n"));
    assert_eq!(
        desk.run("suppression remove --account acme +447700900123")
            .await
            .code,
        3
    );
}

#[tokio::test]
async fn a_long_list_is_cut_for_people_and_whole_for_scripts() {
    let desk = Desk::new().await;
    desk.database
        .execute(
            "INSERT INTO suppressions (account_id, recipient, scope)
             SELECT 'acme', 'token-' || n, 'push' FROM generate_series(1, 2500) n",
        )
        .await;
    let people = desk.ok("suppression list --account acme").await.stdout;
    // A head, as many as are shown, a blank line and the sum.
    assert_eq!(people.lines().count(), 1 + 100 + 2);
    assert!(
        people.ends_with("2,500 opt-outs in all; --limit shows more of them\n"),
        "{people}"
    );
    let lines = desk
        .ok("suppression list --account acme --json")
        .await
        .stdout;
    let lines: std::collections::HashSet<_> = lines.lines().collect();
    assert_eq!(lines.len(), 2_500);
    let few = desk
        .ok("suppression list --account acme --json --limit 1001")
        .await
        .stdout;
    assert_eq!(few.lines().count(), 1_001);
    let none = desk.ok("suppression list --account other").await.stdout;
    assert_eq!(none, "other has no such opt-outs.\n");
}

#[tokio::test]
async fn holds_are_put_and_lifted() {
    let desk = Desk::new().await;
    let says = async |words: &str| desk.ok(words).await.stdout;
    let spring = "campaign spring of account acme";
    assert_eq!(
        says("resume campaign acme spring").await,
        format!("{spring}: was not paused\n")
    );
    assert_eq!(
        says("pause campaign acme spring").await,
        format!("{spring}: paused\n")
    );
    assert_eq!(
        says("pause campaign acme spring").await,
        format!("{spring}: paused already\n")
    );
    assert_eq!(
        says("resume campaign acme spring").await,
        format!("{spring}: goes on\n")
    );
    desk.ok("pause campaign acme spring").await;
    assert_eq!(
        says("cancel campaign acme spring").await,
        format!("{spring}: cancelled\n")
    );
    for refused in ["pause campaign acme spring", "resume campaign acme spring"] {
        let ended = desk.run(refused).await;
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.stderr.contains("--cancelled"), "{ended:?}");
    }
    assert_eq!(
        says("resume campaign acme spring --cancelled").await,
        format!("{spring}: is cancelled no longer\n")
    );
}

#[tokio::test]
async fn holds_are_listed_the_newest_first() {
    let desk = Desk::new().await;
    assert_eq!(
        desk.ok("pause --list").await.stdout,
        "Nothing is paused or cancelled.\n"
    );
    desk.ok("pause account acme --reason unpaid").await;
    desk.ok("pause journey acme welcome").await;
    desk.ok("cancel batch other b-1 --json").await;
    let listed = desk.ok("pause --list --json").await.json();
    let listed: Vec<_> = listed
        .iter()
        .map(|line| {
            ["account_id", "kind", "target", "hold"].map(|name| line[name].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        listed,
        [
            ["other", "batch", "b-1", "cancelled"],
            ["acme", "journey", "welcome", "paused"],
            ["acme", "account", "acme", "paused"],
        ]
    );
    let of_one = desk.ok("pause --list --account acme").await;
    assert_eq!(of_one.stdout.lines().count(), 3, "{of_one:?}");
    assert!(of_one.stdout.contains("unpaid"), "{of_one:?}");
}
