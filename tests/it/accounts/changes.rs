//! The directory in a worker's memory: right within a second of a change, and kept while the
//! database is away.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lanekeeper::accounts::{AccountPolicy, Directory, QuietAction, QuietPolicy, keep};
use lanekeeper::domain::{AccountId, Channel, Lane};
use lanekeeper::settings::Settings;
use sqlx::{Executor as _, PgPool};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::desk::Desk;
use crate::support::postgres::PrivatePostgres;
use crate::support::{eventually, heavy};

/// A change is seen within this.
const SOON: Duration = Duration::from_secs(1);

/// What takes a server's start or end may take this long.
const LATER: Duration = Duration::from_secs(20);

/// A directory that is kept until the value is dropped.
struct Kept {
    directory: Arc<Directory>,
    stop: CancellationToken,
    keeping: JoinHandle<()>,
}

impl Kept {
    fn start(pool: &PgPool, settings: &str) -> Self {
        let directory = Arc::new(Directory::of_database(&settings_of(settings)));
        let (stop, pool) = (CancellationToken::new(), pool.clone());
        let (kept, until) = (Arc::clone(&directory), stop.clone());
        Self {
            keeping: tokio::spawn(async move { keep(kept, &pool, until).await }),
            directory,
            stop,
        }
    }

    async fn loaded(pool: &PgPool, settings: &str) -> Self {
        let kept = Self::start(pool, settings);
        let mut loaded = kept.directory.loaded();
        let loading = loaded.wait_for(|loaded| *loaded);
        tokio::time::timeout(LATER, loading).await.unwrap().unwrap();
        kept
    }

    fn policy(&self, account: &str) -> Option<Arc<AccountPolicy>> {
        self.directory.policy(&AccountId::parse(account).unwrap())
    }

    fn budget(&self, account: &str) -> Option<u32> {
        Some(self.policy(account)?.ceilings.of_lane(Lane::Transactional))
    }

    async fn sees(&self, account: &str, budget: Option<u32>, within: Duration) {
        let what = format!("{account} has {budget:?}");
        eventually(&what, within, async || self.budget(account) == budget).await;
    }

    async fn end(self) {
        self.stop.cancel();
        tokio::time::timeout(SOON, self.keeping)
            .await
            .unwrap()
            .unwrap();
    }
}

fn settings_of(text: &str) -> Settings {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let none: [(&str, &str); 0] = [];
    Settings::load(Some(Path::new(file.path())), none).unwrap()
}

async fn set_budget(pool: &PgPool, account: &str, budget: u32) {
    let set = format!(
        "INSERT INTO accounts (account_id, budget_per_second) VALUES ('{account}', {budget})
         ON CONFLICT (account_id) DO UPDATE SET budget_per_second = {budget}"
    );
    pool.execute(&*set).await.unwrap();
}

#[tokio::test]
async fn a_change_is_seen_within_a_second_whoever_makes_it() {
    let _alone = heavy().await;
    let desk = Desk::new().await;
    let pool = desk.database.pool();
    let kept = Kept::loaded(pool, "").await;
    assert_eq!(kept.budget("acme"), Some(100));
    for budget in [7, 8, 9] {
        set_budget(pool, "acme", budget).await;
        kept.sees("acme", Some(budget), SOON).await;
    }
    desk.ok("account set acme --budget 11").await;
    kept.sees("acme", Some(11), SOON).await;
    desk.ok("account unknown refuse").await;
    kept.sees("other", None, SOON).await;
    pool.execute("DELETE FROM accounts").await.unwrap();
    kept.sees("acme", None, SOON).await;
    kept.end().await;
}

/// A pooler in between, or a trigger that somebody has dropped, swallows notifications.
#[tokio::test]
async fn a_change_is_seen_within_a_second_without_any_notification() {
    let _alone = heavy().await;
    let desk = Desk::new().await;
    let pool = desk.database.pool();
    pool.execute("DROP TRIGGER announce ON directory")
        .await
        .unwrap();
    let kept = Kept::loaded(pool, "").await;
    for budget in [7, 8, 9] {
        set_budget(pool, "acme", budget).await;
        kept.sees("acme", Some(budget), SOON).await;
    }
    kept.end().await;
}

#[tokio::test]
async fn a_change_is_seen_after_the_connection_was_killed() {
    let _alone = heavy().await;
    let desk = Desk::new().await;
    let pool = desk.database.pool();
    let kept = Kept::loaded(pool, "").await;
    for budget in [7, 8, 9] {
        let killed = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()
                AND query NOT ILIKE '%pg_stat_activity%' AND backend_type = 'client backend'";
        let killed = pool.execute(killed).await.unwrap();
        assert!(killed.rows_affected() >= 1);
        set_budget(pool, "acme", budget).await;
        kept.sees("acme", Some(budget), SOON).await;
    }
    kept.end().await;
}

#[tokio::test]
async fn what_was_read_last_holds_while_the_database_is_away() {
    let mut server = PrivatePostgres::start_migrated().await;
    set_budget(&server.pool(), "acme", 7).await;
    let kept = Kept::loaded(&server.pool(), "").await;
    assert_eq!(kept.budget("acme"), Some(7));
    for _ in 0..2 {
        server.stop().await;
        tokio::time::sleep(SOON).await;
        assert_eq!(kept.budget("acme"), Some(7));
        assert!(kept.directory.is_loaded());
        server.restart().await;
    }
    set_budget(&server.pool(), "acme", 8).await;
    kept.sees("acme", Some(8), LATER).await;

    server.freeze();
    tokio::time::sleep(SOON).await;
    assert_eq!(kept.budget("acme"), Some(8));
    server.thaw();
    set_budget(&server.pool(), "acme", 9).await;
    kept.sees("acme", Some(9), LATER).await;
    kept.end().await;
}

#[tokio::test]
async fn nothing_counts_as_loaded_before_the_first_reading() {
    let mut server = PrivatePostgres::start_migrated().await;
    set_budget(&server.pool(), "acme", 7).await;
    let pool = server.pool();
    server.stop().await;
    let kept = Kept::start(&pool, "");
    tokio::time::sleep(SOON).await;
    assert!(!kept.directory.is_loaded());
    server.restart().await;
    kept.sees("acme", Some(7), LATER).await;
    assert!(kept.directory.is_loaded());
    kept.end().await;
}

#[tokio::test]
async fn the_settings_hold_where_the_tables_say_nothing() {
    let desk = Desk::new().await;
    let settings = "[lanes]\nbudget_per_second = 50\nreserve_percent = 10\n\
        [accounts]\nunknown = \"refuse\"\n\
        [accounts.overrides.file]\nbudget_per_second = 10\n\
        [accounts.overrides.both]\nbudget_per_second = 10\nreserve_percent = 50\n";
    desk.ok("account set both --budget 20").await;
    desk.ok("account set table").await;
    let kept = Kept::loaded(desk.database.pool(), settings).await;
    let both_lanes = |account| {
        let ceilings = kept.policy(account)?.ceilings;
        Some(Lane::ALL.map(|lane| ceilings.of_lane(lane)))
    };
    let by_lane = |transactional, marketing| {
        let mut ceilings = [0, 0];
        ceilings[Lane::Transactional.index()] = transactional;
        ceilings[Lane::Marketing.index()] = marketing;
        let places = Lane::ALL.map(Lane::index);
        Some(places.map(|place| ceilings[place]))
    };
    assert_eq!(both_lanes("file"), by_lane(10, 9));
    assert_eq!(both_lanes("both"), by_lane(20, 10));
    assert_eq!(both_lanes("table"), by_lane(50, 45));
    assert_eq!(both_lanes("neither"), None);
    desk.ok("account unknown default").await;
    kept.sees("neither", Some(50), LATER).await;
    kept.end().await;
}

#[tokio::test]
async fn everything_that_was_laid_down_is_in_the_policy() {
    let desk = Desk::new().await;
    desk.ok("account set acme --quiet-hours on --time-zone Asia/Kolkata --quiet-action defer")
        .await;
    desk.ok("account set acme --window sms=21:00-07:00 voice=off")
        .await;
    desk.ok("cap set --account acme --name b --limit 1 --window 7d --channel sms --category x")
        .await;
    desk.ok("cap set --account acme --name a --limit 3 --window 24h")
        .await;
    desk.ok("ceiling set --account acme --number +447700900123 --per-second 1")
        .await;
    desk.ok("ceiling set --account acme --service news --per-second 20")
        .await;
    let kept = Kept::loaded(desk.database.pool(), "").await;
    let policy = kept.policy("acme").unwrap();
    let caps = policy.caps.iter().map(|cap| {
        let category = cap.category.as_deref();
        (
            &*cap.name,
            cap.channel,
            category,
            cap.limit,
            cap.window.as_secs(),
        )
    });
    assert_eq!(
        caps.collect::<Vec<_>>(),
        [
            ("a", None, None, 3, 86_400),
            ("b", Some(Channel::Sms), Some("x"), 1, 604_800),
        ]
    );
    assert_eq!(policy.numbers.get("+447700900123"), Some(&1));
    assert_eq!(policy.services.get("news"), Some(&20));
    let QuietPolicy::On {
        windows,
        zone,
        action,
    } = &policy.quiet_hours
    else {
        panic!("{policy:?}");
    };
    let window = |channel| windows.get(channel).map(|window| window.to_string());
    assert_eq!(window(Channel::Sms).as_deref(), Some("21:00-07:00"));
    assert_eq!(window(Channel::Voice), None);
    assert_eq!(window(Channel::Whatsapp).as_deref(), Some("09:00-21:00"));
    assert_eq!(zone.iana_name(), Some("Asia/Kolkata"));
    assert_eq!(*action, QuietAction::Defer);
    kept.end().await;
}

/// F5-16, F5-17: what somebody has stored past the commands stops one account, and says why.
#[tokio::test]
async fn a_value_that_cannot_be_read_concerns_its_account_alone() {
    let desk = Desk::new().await;
    desk.database
        .execute(
            r#"INSERT INTO accounts (account_id, quiet_hours, time_zone, windows) VALUES
                ('no-zone', true, NULL, '{}'),
                ('nowhere', true, 'America/Nowhere', '{}'),
                ('window', true, 'utc', '{"sms": "25:99"}'),
                ('shape', true, 'utc', '{"sms": ["08:00", "21:00"]}'),
                ('equal', true, 'utc', '{"sms": "21:00-21:00"}'),
                ('channel', true, 'utc', '{"SMS": "21:00-07:00"}'),
                ('off', false, 'America/Nowhere', '{"sms": "25:99", "fax": "x"}'),
                ('good', true, 'utc', '{"sms": "21:00-07:00"}')"#,
        )
        .await;
    let kept = Kept::loaded(desk.database.pool(), "").await;
    for (account, why) in [
        ("no-zone", "time_zone: missing"),
        ("nowhere", "time_zone: expected"),
        ("window", "windows, sms: expected"),
        ("shape", "windows: expected"),
        ("equal", "windows, sms: expected"),
        ("channel", "windows: expected no channels but"),
    ] {
        let policy = kept.policy(account).unwrap();
        let QuietPolicy::Broken { why: found } = &policy.quiet_hours else {
            panic!("{account}: {policy:?}");
        };
        assert!(found.starts_with(why), "{account}: {found}");
    }
    let quiet_hours = |account| kept.policy(account).unwrap().quiet_hours.clone();
    assert_eq!(quiet_hours("off"), QuietPolicy::Off);
    assert!(matches!(quiet_hours("good"), QuietPolicy::On { .. }));
    kept.end().await;
}
