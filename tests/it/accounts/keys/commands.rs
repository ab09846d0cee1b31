//! The commands as an operator uses them.

use serde_json::{Value, json};

use super::super::desk::Desk;
use super::ring::Made;

#[tokio::test]
async fn a_key_is_shown_once_and_listed_by_its_id() {
    let desk = Desk::new().await;
    let none = desk.ok("key list").await.stdout;
    assert!(
        none.starts_with("No keys: `lanekeeper key create`"),
        "{none}"
    );

    let made = desk.ok("key create --account acme --name shop").await;
    let key = made.stdout.lines().next().unwrap();
    assert!(key.starts_with("lk_") && key.len() == 56, "{made:?}");
    let once = "This is the only time that the key is shown";
    assert!(made.stdout.contains(once), "{made:?}");

    let id = &key[3..15];
    let listed = desk.ok("key list").await.words();
    let head = "KEY ID ACCOUNT NAME SCOPES ORIGIN CREATED REVOKED";
    let row = format!("{head} {id} acme shop send,read api 20");
    assert!(listed.starts_with(&row), "{listed}");
    assert!(listed.ends_with("Z -"), "{listed}");
}

#[tokio::test]
async fn keys_are_listed_by_account_and_age_as_json() {
    let desk = Desk::new().await;
    let words = "--account b --name one --scope read --origin campaign";
    let one = Made::by(&desk, words).await;
    let two = Made::by(&desk, "--account b --name two").await;
    let three = Made::by(&desk, "--account a --name three").await;
    let mut lines = desk.ok("key list --json").await.json();
    let ids: Vec<_> = lines.iter().map(|line| line["key_id"].clone()).collect();
    let expected = [&three, &one, &two].map(|made| json!(made.id.to_string()));
    assert_eq!(ids, expected);

    let created = lines[1]["created_at"].take();
    assert!(created.as_str().unwrap().starts_with("20"), "{created}");
    let expected = json!({
        "key_id": one.id.to_string(), "account_id": "b", "name": "one", "scopes": ["read"],
        "origin": "campaign", "created_at": null, "revoked_at": null,
    });
    assert_eq!(lines[1], expected);
    let of_a = desk.ok("key list --account a --json").await.json();
    assert_eq!(of_a.len(), 1);
    let of_c = desk.ok("key list --account c --json").await.json();
    assert_eq!(of_c, [] as [Value; 0]);
}

#[tokio::test]
async fn a_key_is_revoked_once_and_stays_so() {
    let desk = Desk::new().await;
    let made = Made::by(&desk, "--account acme --name shop").await;
    let revoke = format!("key revoke {}", made.id);
    let told = desk.ok(&revoke).await.stdout;
    assert_eq!(told, format!("acme: key {} (shop) revoked\n", made.id));
    let since = desk.ok("key list --json").await.json()[0]["revoked_at"].clone();
    assert!(since.is_string(), "{since}");

    let again = desk.ok(&format!("{revoke} --json")).await.json();
    let expected = json!({
        "key_id": made.id.to_string(), "account_id": "acme", "name": "shop",
        "revoked_at": since, "already": true,
    });
    assert_eq!(again, [expected]);
    let told = desk.ok(&revoke).await.stdout;
    assert!(told.contains("was revoked already, 20"), "{told}");
    let listed = desk.ok("key list").await.words();
    assert!(listed.ends_with(since.as_str().unwrap()), "{listed}");

    let gone = desk.run("key revoke aaaaaaaaaaaa").await;
    assert_eq!(gone.code, 3, "{gone:?}");
    assert!(gone.stderr.contains("no key aaaaaaaaaaaa"), "{gone:?}");
}

#[tokio::test]
async fn a_key_that_has_turned_up_somewhere_is_revoked_by_itself() {
    let desk = Desk::new().await;
    let made = Made::by(&desk, "--account acme --name shop").await;
    let told = desk.ok(&format!("key revoke {}", made.key)).await.stdout;
    assert_eq!(told, format!("acme: key {} (shop) revoked\n", made.id));
}

#[tokio::test]
async fn mistakes_are_told_with_what_was_expected() {
    let desk = Desk::new().await;
    for (words, expected) in [
        ("key create --name shop", "--account"),
        ("key create --account acme", "--name"),
        ("key create --account a!b --name n", "a!b"),
        (
            "key create --account acme --name n --scope all",
            "one or more of send, read and admin",
        ),
        (
            "key create --account acme --name n --scope send,",
            "one or more of send, read and admin",
        ),
        (
            "key create --account acme --name n --origin web",
            "one of api, campaign, journey",
        ),
        ("key revoke", "KEY_ID"),
        ("key revoke shop", "expected a key's id, 12 characters"),
    ] {
        let ended = desk.run(words).await;
        assert_eq!(ended.code, 2, "{words}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{words}: {ended:?}");
    }
    let keys = desk.ok("key list --json").await.json();
    assert_eq!(keys, [] as [Value; 0]);
}
