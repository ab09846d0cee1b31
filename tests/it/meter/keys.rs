//! The keys in Redis: their names, their expiry, and their healing.

use std::time::Duration;

use lanekeeper::dispatch::ports::TryResult;
use lanekeeper::meter::{CounterStore, RedisOptions, RedisStore};

use super::world::*;

async fn world() -> (RedisStore, String, Raw) {
    let options = redis_options();
    let prefix = options.prefix.clone();
    (RedisStore::new(options).unwrap(), prefix, Raw::open().await)
}

#[tokio::test]
async fn keys_are_tagged_by_account_and_all_of_them_expire() {
    let (store, prefix, mut raw) = world().await;
    let tried = jobs(Transactional, 4);
    admit(&store, &tried).await;
    let ends = [
        conclusion(&tried[0], sent(None)),
        conclusion(&tried[1], TryResult::Unknown),
        conclusion(&job("never-claimed", Marketing), sent(None)),
    ];
    store.conclude(&ends).await.unwrap();
    store.probe().await.unwrap();
    let keys: Vec<String> = raw.run(&["KEYS", &format!("{prefix}*")]).await;
    assert!(keys.contains(&format!("{prefix}{{acct}}:count")));
    assert!(keys.contains(&format!("{prefix}{{acct}}:claim:{}", tried[0].id)));
    assert!(
        keys.iter()
            .all(|key| key.starts_with(&format!("{prefix}{{")))
    );
    for key in keys {
        assert_ne!(raw.left(&key).await, -1, "{key} never expires");
    }
}

#[tokio::test]
async fn sheds_and_duplicates_write_nothing() {
    let (store, prefix, mut raw) = world().await;
    let asked = request("acct", 0, jobs(Transactional, 10));
    store.admit(&[asked]).await.remove(0).unwrap();
    let keys: Vec<String> = raw.run(&["KEYS", &format!("{prefix}*")]).await;
    assert!(keys.is_empty(), "{keys:?}");
}

#[tokio::test]
async fn without_claims_there_are_no_claim_keys() {
    let options = RedisOptions {
        claim_life: Duration::ZERO,
        ..redis_options()
    };
    let (prefix, mut raw) = (options.prefix.clone(), Raw::open().await);
    let store = RedisStore::new(options).unwrap();
    let tried = jobs(Transactional, 3);
    admit(&store, &tried).await;
    store
        .conclude(&[conclusion(&tried[0], sent(None))])
        .await
        .unwrap();
    let keys: Vec<String> = raw.run(&["KEYS", &format!("{prefix}*")]).await;
    assert_eq!(keys, [format!("{prefix}{{acct}}:count")]);
}

/// What somebody may have left where the counter belongs, and how many of a budget of 100 are to
/// pass then: a number keeps counting, anything else is no count.
const LEFT_BEHIND: [(&[&str], usize); 10] = [
    (&["SET", "KEY", "40"], 60),
    (&["SET", "KEY", "100"], 0),
    (&["SET", "KEY", "40", "EX", "3600"], 60),
    (&["SET", "KEY", "abc"], 100),
    (&["SET", "KEY", "abc", "PX", "700"], 100),
    (&["SET", "KEY", "1e3"], 100),
    (&["SET", "KEY", "007"], 100),
    (&["SET", "KEY", "-5"], 100),
    (&["RPUSH", "KEY", "a", "b"], 100),
    (&["HSET", "KEY", "a", "b"], 100),
];

#[tokio::test]
async fn a_damaged_counter_heals() {
    for (left_behind, expected) in LEFT_BEHIND {
        for budget in [100, 0] {
            let (store, prefix, mut raw) = world().await;
            let key = format!("{prefix}{{acct}}:count");
            let words: Vec<&str> = left_behind
                .iter()
                .map(|word| if *word == "KEY" { key.as_str() } else { word })
                .collect();
            raw.run::<deadpool_redis::redis::Value>(&words).await;
            let asked = request("acct", budget, jobs(Transactional, 100));
            let answer = store.admit(&[asked]).await.remove(0).unwrap();
            let expected = if budget == 0 { 0 } else { expected };
            assert_eq!(admitted(&answer.verdicts), expected, "{left_behind:?}");
            // Gone, or expiring within a window.
            let left = raw.left(&key).await;
            assert!(
                left == -2 || (0..=1_000).contains(&left),
                "{left_behind:?}: {left}"
            );
        }
    }
}

#[tokio::test]
async fn a_claim_that_cannot_be_read_stands_in_nobodys_way() {
    let (store, prefix, mut raw) = world().await;
    let key = |id: &str| format!("{prefix}{{acct}}:claim:{id}");
    raw.run::<String>(&["SET", &key("text"), "what is this"])
        .await;
    raw.run::<String>(&["SET", &key("empty"), ""]).await;
    raw.run::<String>(&["SET", &key("half"), "P:"]).await;
    raw.run::<i64>(&["RPUSH", &key("list"), "a"]).await;
    for id in ["text", "empty", "list", "half"] {
        let tried = job(id, Transactional);
        let verdict = admit_one(&store, &tried).await;
        assert!(
            verdict == PASSES || (id == "half" && verdict == MAYBE_TWICE),
            "{id}: {verdict:?}"
        );
        assert!(raw.left(&key(id)).await > 0, "{id}");
        store
            .conclude(&[conclusion(&tried, sent(None))])
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn scripts_that_are_gone_are_loaded_again_and_run_once() {
    let (store, prefix, mut raw) = world().await;
    admit(&store, &jobs(Transactional, 10)).await;
    raw.run::<String>(&["SCRIPT", "FLUSH"]).await;
    let tried = jobs(Transactional, 10);
    admit(&store, &tried).await;
    raw.run::<String>(&["SCRIPT", "FLUSH"]).await;
    store
        .conclude(&[conclusion(&tried[0], sent(None))])
        .await
        .unwrap();
    let count: u32 = raw.run(&["GET", &format!("{prefix}{{acct}}:count")]).await;
    assert_eq!(count, 20);
}
