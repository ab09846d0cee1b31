//! What would become of a job now. Nothing is changed by asking.

use std::time::Duration;

use lanekeeper::dispatch::ports::{
    AccountRequest, CapKey, CapRequest, Conclusion, Door, JobRequest, TargetCeiling, TryId,
    TryResult,
};
use lanekeeper::domain::{AccountId, Budget, Ceilings, JobId, Lane, Reserve, recipient_digest};
use lanekeeper::meter::{CounterStore as _, RedisOptions, RedisStore};
use serde_json::{Value, json};

use super::{as_json, explain, gates, text};
use crate::support::eventually;
use crate::support::postgres::TestDatabase;
use crate::support::redis::RedisServer;

/// Both services, and a directory for files.
struct Scene {
    database: TestDatabase,
    redis: RedisServer,
    redis_url: String,
    directory: tempfile::TempDir,
}

impl Scene {
    async fn new() -> Self {
        let redis = RedisServer::start().await;
        Self {
            database: TestDatabase::create().await,
            redis_url: redis.url(),
            redis,
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn environment(&self) -> [(&str, &str); 2] {
        [
            ("LANEKEEPER__DATABASE__URL", self.database.url()),
            ("LANEKEEPER__REDIS__URL", &self.redis_url),
        ]
    }

    fn file(&self, job: &str) -> String {
        let path = self.directory.path().join("job.json");
        std::fs::write(&path, job).unwrap();
        path.display().to_string()
    }

    async fn judge(&self, job: &Value) -> Value {
        let file = self.file(&job.to_string());
        let (json, code) = as_json(&["--dry-run", &file], &self.environment()).await;
        assert_eq!(code, 0);
        json
    }

    /// The verdict of a job, and the gate that decided.
    async fn verdict(&self, job: &Value) -> (String, String) {
        let judgement = self.judge(job).await;
        let gates = gates(&judgement);
        let decisive = gates.iter().find(|gate| !gate.ends_with(" passed"));
        let kind = judgement["verdict_kind"].as_str().unwrap().to_owned();
        (kind, decisive.cloned().unwrap_or_default())
    }

    fn store(&self) -> RedisStore {
        let mut options = RedisOptions::at(&self.redis_url);
        options.timeout = Duration::from_secs(2);
        RedisStore::new(options).unwrap()
    }

    /// Everything that Redis holds.
    async fn memory(&self) -> Vec<String> {
        let keys = self.redis.cli(&["KEYS", "*"]).await;
        let mut memory = Vec::new();
        for key in keys.lines().filter(|key| !key.is_empty()) {
            let content = match &*self.redis.cli(&["TYPE", key]).await {
                "zset" => {
                    self.redis
                        .cli(&["ZRANGE", key, "0", "-1", "WITHSCORES"])
                        .await
                }
                _ => self.redis.cli(&["GET", key]).await,
            };
            memory.push(format!("{key} {content}"));
        }
        memory.sort();
        memory
    }
}

fn job(id: &str) -> Value {
    json!({
        "id": id, "account_id": "acme", "channel": "sms", "to": "+447700900123",
        "from": "+447700900999", "body": "x", "priority": "low", "campaign_id": "spring",
    })
}

fn with(mut job: Value, field: &str, value: Value) -> Value {
    job[field] = value;
    job
}

#[tokio::test]
async fn each_gate_is_told_as_a_worker_would_find_it() {
    let scene = Scene::new().await;
    scene
        .database
        .execute(
            "INSERT INTO accounts (account_id, quiet_hours, quiet_action, time_zone, windows) VALUES
                ('acme', false, 'refuse', NULL, '{}'),
                ('night', true, 'refuse', 'UTC', '{\"email\": \"00:00-00:01\"}'),
                ('later', true, 'defer', 'UTC', '{\"email\": \"00:00-00:01\"}');
             INSERT INTO suppressions (account_id, recipient, scope) VALUES
                ('acme', '+447700900777', 'all');
             INSERT INTO holds (account_id, kind, target, state) VALUES
                ('acme', 'campaign', 'off', 'cancelled'), ('acme', 'campaign', 'still', 'paused');
             INSERT INTO ledger (account_id, id, day, lane, lane_rule, channel, outcome, attempts,
                sheds, carrier, settled_at)
             VALUES ('acme', 'sent', '2026-01-01', 'marketing', 'default', 'sms', 'dispatched', 1, 0,
                'default', '2026-01-01T00:00:00Z')",
        )
        .await;
    let by_mail = |account: &str| {
        let job = with(job("mail"), "channel", json!("email"));
        with(
            with(job, "to", json!("a@example.org")),
            "account_id",
            json!(account),
        )
    };
    let table = [
        (job("plain"), "send", ""),
        (
            with(job("x"), "expires_at", json!("2020-01-01T00:00:00Z")),
            "expired",
            "expiry stopped",
        ),
        (
            with(job("x"), "to", json!("+447700900777")),
            "refused",
            "suppression stopped",
        ),
        (
            with(job("x"), "campaign_id", json!("off")),
            "cancelled",
            "holds stopped",
        ),
        (
            with(job("x"), "campaign_id", json!("still")),
            "wait",
            "holds waits",
        ),
        (
            with(job("x"), "not_before", json!("2999-01-01T00:00:00Z")),
            "wait",
            "not_before waits",
        ),
        (by_mail("night"), "refused", "quiet_hours stopped"),
        (by_mail("later"), "wait", "quiet_hours waits"),
        (job("sent"), "repeat", "sent_before stopped"),
        (
            with(job("x"), "to", json!("nobody")),
            "refused",
            "fields stopped",
        ),
        (
            with(job("x"), "channel", Value::Null),
            "dead",
            "fields stopped",
        ),
    ];
    for (job, kind, decisive) in table {
        let found = scene.verdict(&job).await;
        assert_eq!((&*found.0, &*found.1), (kind, decisive), "{job}");
    }
    let judged = scene.judge(&job("plain")).await;
    assert_eq!(
        (&judged["lane"], &judged["lane_rule"]),
        (&json!("marketing"), &json!("priority"))
    );
    assert!(scene.memory().await.is_empty(), "nothing was counted");
    let rows: i64 =
        sqlx::query_scalar("SELECT (SELECT count(*) FROM waiting) + (SELECT count(*) FROM ledger)")
            .fetch_one(scene.database.pool())
            .await
            .unwrap();
    assert_eq!(rows, 1, "nothing was written");
}

#[tokio::test]
async fn accounts_that_nobody_has_configured_are_refused_where_the_policy_says_so() {
    let scene = Scene::new().await;
    scene
        .database
        .execute("UPDATE directory SET unknown_accounts = 'refuse'")
        .await;
    let found = scene.verdict(&job("x")).await;
    assert_eq!(found, ("refused".to_owned(), "account stopped".to_owned()));
}

/// An admission as a worker asks for it.
fn admission(id: &str, caps: Vec<CapRequest>, number: Option<TargetCeiling>) -> AccountRequest {
    let budget = Budget::per_second(100).unwrap();
    AccountRequest {
        account: AccountId::parse("acme").unwrap(),
        ceilings: Ceilings::of(budget, Reserve::percent(20).unwrap()),
        jobs: vec![JobRequest {
            id: JobId::parse(id).unwrap(),
            lane: Lane::Marketing,
            door: Door::Worker,
            try_id: TryId(7),
            claim_for: Duration::from_secs(60),
            caps,
            number,
            service: None,
        }],
    }
}

#[tokio::test]
async fn claims_and_caps_are_read_and_left_as_they_are() {
    let scene = Scene::new().await;
    scene
        .database
        .execute(
            "INSERT INTO accounts (account_id) VALUES ('acme');
             INSERT INTO frequency_caps VALUES ('acme', 'daily', NULL, NULL, 1, 86400)",
        )
        .await;
    let account = AccountId::parse("acme").unwrap();
    let cap = CapRequest {
        key: CapKey {
            cap: "daily".into(),
            recipient: recipient_digest(&account, "+447700900123"),
        },
        limit: 1,
        window: Duration::from_secs(86_400),
    };
    let store = scene.store();
    store
        .admit(&[admission("first", vec![cap], None)])
        .await
        .remove(0)
        .unwrap();
    let before = scene.memory().await;

    let found = scene.verdict(&job("second")).await;
    assert_eq!(
        found,
        ("refused".to_owned(), "frequency_caps stopped".to_owned())
    );
    let found = scene.verdict(&job("first")).await;
    assert_eq!(
        found,
        ("shed".to_owned(), "sent_before shed".to_owned()),
        "a try is under way"
    );
    let others = with(job("second"), "to", json!("+447700900456"));
    assert_eq!(scene.verdict(&others).await.0, "send");
    // The account's counter has a second to live; claim and cap stay.
    let after = scene.memory().await;
    assert!(after.iter().all(|key| before.contains(key)) && after.len() >= 2);

    let sent = Conclusion {
        account,
        id: JobId::parse("first").unwrap(),
        try_id: TryId(7),
        result: TryResult::Sent {
            carrier: "default".into(),
            carrier_ref: None,
        },
        frees: Vec::new(),
    };
    store.conclude(&[sent]).await.unwrap();
    let found = scene.verdict(&job("first")).await;
    assert_eq!(
        found,
        ("repeat".to_owned(), "sent_before stopped".to_owned())
    );
}

/// The counters live for a second: they are filled again until a look falls into it.
#[tokio::test]
async fn a_ceiling_that_is_reached_is_told() {
    let scene = Scene::new().await;
    scene
        .database
        .execute(
            "INSERT INTO accounts (account_id) VALUES ('acme');
             INSERT INTO ceilings VALUES ('acme', 'number', '+447700900999', 1)",
        )
        .await;
    let keys = [
        "lanekeeper:{acme}:count",
        "lanekeeper:{acme}:number:+447700900999",
    ];
    for (key, count, says) in [
        (keys[0], "80", "its lane: 80 of 80"),
        (keys[1], "1", "its number: 1 of 1"),
    ] {
        let told = async || {
            scene.redis.cli(&["SET", key, count, "PX", "900"]).await;
            let judged = scene.judge(&job("x")).await;
            judged["verdict"].as_str().unwrap().contains(says)
        };
        eventually(says, Duration::from_secs(30), told).await;
        scene.redis.cli(&["DEL", key]).await;
    }
}

#[tokio::test]
async fn people_read_it_and_without_services_it_says_what_it_does_not_know() {
    let scene = Scene::new().await;
    let file = scene.file(&job("x").to_string());
    let away = [("LANEKEEPER__REDIS__URL", "redis://127.0.0.1:1")];
    let output = explain(&["--dry-run", &file], &away).await;
    let shown = text(&output.stdout);
    for part in [
        "job           x of acme",
        "lane          marketing, by its priority",
        "account       100 messages/s, of which marketing 80; this job's lane: 80",
        "suppression     passed     there is no database: everybody passes",
        "ceilings        unknown",
        "now           Redis does not answer",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("+447700900123"), "no recipient is shown");
    let away = [(
        "LANEKEEPER__DATABASE__URL",
        "postgres://u:S3NTINEL@127.0.0.1:1/x",
    )];
    let output = explain(&["--dry-run", &file], &away).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(!text(&output.stderr).contains("S3NTINEL"));
}
