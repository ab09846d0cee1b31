//! Settings: every documented name works, and every mistake is named.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lanekeeper::domain::{Channel, Lane};
use lanekeeper::settings::{
    CarrierKind, DEFAULTS, LedgerRecipient, Settings, SettingsError, env_name,
};

fn load(environment: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    Settings::load(None, environment.iter().copied())
}

fn load_file(text: &str) -> Result<Settings, SettingsError> {
    load_file_with(text, &[])
}

fn load_file_with(text: &str, environment: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    let file = file_with(text);
    Settings::load(Some(file.path()), environment.iter().copied())
}

fn file_with(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn message(result: Result<Settings, SettingsError>) -> String {
    result.unwrap_err().to_string()
}

/// For every setting a value that differs from its default. A file's content is written to a file,
/// whose name is then the value.
const OTHERS: &[(&str, Other)] = &[
    (
        "accounts.file",
        Other::File("[acme]\nbudget_per_second = 5\n"),
    ),
    ("accounts.unknown", Other::Value("refuse")),
    ("amqp.confirm_timeout_ms", Other::Value("4000")),
    ("amqp.connect_timeout_ms", Other::Value("4000")),
    ("amqp.heartbeat_s", Other::Value("20")),
    ("amqp.prefetch", Other::Value("17")),
    ("amqp.prefix", Other::Value("other.prefix_1-a")),
    ("amqp.url", Other::Value("amqp://elsewhere")),
    ("amqp.url_file", Other::File("amqp://elsewhere\n")),
    ("carriers.default.auth_header", Other::Value("X-Api-Key")),
    ("carriers.default.auth_token", Other::Value("token")),
    ("carriers.default.auth_token_file", Other::File("token\r\n")),
    ("carriers.default.breaker_failures", Other::Value("3")),
    ("carriers.default.breaker_open_cap_ms", Other::Value("7000")),
    ("carriers.default.breaker_open_ms", Other::Value("50")),
    ("carriers.default.channels", Other::Value("sms, email")),
    ("carriers.default.connect_timeout_ms", Other::Value("77")),
    ("carriers.default.kind", Other::Value("http")),
    ("carriers.default.max_in_flight", Other::Value("10")),
    ("carriers.default.sandbox_fail_percent", Other::Value("7")),
    ("carriers.default.sandbox_latency_ms", Other::Value("300")),
    (
        "carriers.default.sandbox_record_file",
        Other::Value("record.jsonl"),
    ),
    (
        "carriers.default.sandbox_throttle_percent",
        Other::Value("7"),
    ),
    ("carriers.default.timeout_ms", Other::Value("77")),
    ("carriers.default.url", Other::Value("https://elsewhere/")),
    (
        "carriers.default.url_file",
        Other::File("https://elsewhere/\n"),
    ),
    ("claims.life_s", Other::Value("0")),
    ("database.connect_timeout_ms", Other::Value("77")),
    ("database.connections", Other::Value("3")),
    ("database.migrate", Other::Value("true")),
    ("database.timeout_ms", Other::Value("77")),
    ("database.url", Other::Value("postgresql://elsewhere/lanes")),
    (
        "database.url_file",
        Other::File("postgresql://elsewhere/lanes\n"),
    ),
    ("hot.idle_s", Other::Value("30")),
    ("hot.jobs", Other::Value("30")),
    ("hot.most", Other::Value("0")),
    ("hot.settle_s", Other::Value("30")),
    ("hot.spare", Other::Value("8")),
    ("hot.within_ms", Other::Value("500")),
    ("jobs.default_region", Other::Value("GB")),
    ("jobs.max_attempts", Other::Value("9")),
    ("jobs.retry_after_cap_s", Other::Value("9")),
    ("jobs.retry_base_ms", Other::Value("90")),
    ("jobs.park_above_ms", Other::Value("900")),
    ("lanes.budget_per_second", Other::Value("250")),
    ("lanes.marketing_sheds_per_second", Other::Value("9")),
    ("lanes.reserve_percent", Other::Value("0")),
    ("lanes.shed_delay_ms", Other::Value("500")),
    ("lanes.transactional_sheds_per_second", Other::Value("9")),
    ("ledger.hash_key", Other::Value("sixteen or more!")),
    ("ledger.hash_key_file", Other::File("sixteen or more!\n")),
    ("ledger.recipient", Other::Value("mask")),
    ("ledger.retention_days", Other::Value("0")),
    ("log.format", Other::Value("json")),
    ("log.level", Other::Value("debug")),
    ("api.listen", Other::Value("[::1]:9998")),
    ("api.confirm_timeout_ms", Other::Value("900")),
    ("api.requests_per_second", Other::Value("7")),
    ("api.max_connections", Other::Value("7")),
    ("api.batch_max_mib", Other::Value("7")),
    ("api.batch_uploads", Other::Value("7")),
    ("api.batch_uploads_per_account", Other::Value("1")),
    ("api.idempotency_life_s", Other::Value("3600")),
    ("inbound.opt_out_words", Other::Value("adieu")),
    ("ops.listen", Other::Value("[::1]:9999")),
    ("outcomes.enabled", Other::Value("false")),
    ("redis.connect_timeout_ms", Other::Value("200")),
    ("redis.prefix", Other::Value("other:prefix")),
    ("redis.timeout_ms", Other::Value("20")),
    ("redis.url", Other::Value("rediss://elsewhere/3")),
    ("redis.url_file", Other::File("rediss://elsewhere/3")),
    ("worker.grace_s", Other::Value("5")),
    ("worker.threads", Other::Value("3")),
];

#[derive(Clone, Copy)]
enum Other {
    Value(&'static str),
    File(&'static str),
}

/// What one kind of carrier never reads needs a carrier of the other kind, and what is said of the
/// database needs one.
fn base_for(name: &str) -> Vec<(&'static str, &'static str)> {
    let key = name.strip_prefix("database.").unwrap_or("url");
    if !key.starts_with("url") {
        return vec![("LANEKEEPER__DATABASE__URL", "postgres://database")];
    }
    let http = ["auth_", "connect_timeout_ms", "url"];
    let key = name.strip_prefix("carriers.default.").unwrap_or_default();
    let url = ("LANEKEEPER__CARRIERS__DEFAULT__URL", "https://carrier/");
    let kind = ("LANEKEEPER__CARRIERS__DEFAULT__KIND", "http");
    match key {
        "kind" => vec![url],
        "url_file" => vec![],
        "url" => vec![kind],
        key if http.iter().any(|start| key.starts_with(start)) => {
            let token = ("LANEKEEPER__CARRIERS__DEFAULT__AUTH_TOKEN", "before");
            let mut base = vec![kind, url];
            base.extend((key == "auth_header").then_some(token));
            base
        }
        _ => vec![],
    }
}

#[test]
fn every_documented_setting_takes_effect_from_the_environment() {
    for (name, other) in OTHERS {
        let base = base_for(name);
        let before = load(&base).map(|settings| format!("{settings:?}"));
        let env = env_name(name);
        let (file, value) = match other {
            Other::Value(value) => (None, (*value).to_owned()),
            Other::File(text) => {
                let file = file_with(text);
                let path = file.path().display().to_string();
                (Some(file), path)
            }
        };
        let mut environment: Vec<_> = base.into_iter().filter(|(key, _)| *key != env).collect();
        if *name == "carriers.default.url_file" {
            environment.push(("LANEKEEPER__CARRIERS__DEFAULT__KIND", "http"));
        }
        environment.push((env.as_str(), value.as_str()));
        let after = load(&environment).map(|settings| format!("{settings:?}"));
        assert!(after.is_ok(), "{env}={value}: {after:?}");
        assert_ne!(before, after, "{env}={value} changes nothing");
        drop(file);
    }
}

#[test]
fn the_table_above_has_every_setting() {
    let known: BTreeSet<String> = Settings::names().unwrap().into_iter().collect();
    let tested: BTreeSet<String> = OTHERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(known, tested);
}

/// The settings of the defaults file, commented out ones included, with the text of their values.
fn documented() -> impl Iterator<Item = (String, String, bool)> {
    let mut section = String::new();
    DEFAULTS.lines().filter_map(move |whole| {
        let line = whole.trim_start_matches(['#', ' ']);
        let table = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        if let Some(name) = table {
            name.clone_into(&mut section);
            return None;
        }
        let (key, value) = line.split_once(" = ")?;
        let name = format!("{section}.{key}");
        Some((
            name,
            value.trim_matches('"').to_owned(),
            whole.starts_with('#'),
        ))
    })
}

#[test]
fn the_defaults_file_documents_every_setting() {
    let documented: BTreeSet<String> = documented().map(|(name, ..)| name).collect();
    let missing: Vec<_> = Settings::names()
        .unwrap()
        .into_iter()
        .filter(|name| !documented.contains(name))
        .collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn the_readme_has_every_setting_with_its_default() {
    let readme = include_str!("../../README.md");
    let (_, table) = readme.split_once("| setting | default |").unwrap();
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut shown = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for name in cells[1].split(", ").map(|name| name.trim_matches('`')) {
            let has_default =
                |(known, _, commented): &(String, String, bool)| known == name && !commented;
            let default = documented().find(has_default).map(|(_, value, _)| value);
            if !name.ends_with("_file") {
                assert_eq!(
                    cells[2].trim_matches('`'),
                    default.unwrap_or_default(),
                    "{name}"
                );
            }
            assert!(shown.insert(name.to_owned()), "{name} twice");
        }
    }
    assert_eq!(shown, Settings::names().unwrap().into_iter().collect());
}

#[test]
fn the_defaults_are_those_that_others_rely_on() {
    let settings = load(&[]).unwrap();
    assert_eq!(settings.lanes.budget.get(), 100);
    assert_eq!(settings.lanes.reserve.get(), 20);
    assert_eq!(settings.lanes.shed_delay, Duration::from_secs(1));
    assert_eq!(settings.lanes.sheds_per_second(Lane::Transactional), 5_000);
    assert_eq!(settings.lanes.sheds_per_second(Lane::Marketing), 1_000);
    assert_eq!(settings.claims.life, Some(Duration::from_mins(15)));
    assert_eq!(settings.amqp.prefix.as_str(), "lanekeeper");
    assert_eq!(settings.amqp.prefetch, 256);
    assert_eq!(settings.ops.listen, "127.0.0.1:9464".parse().unwrap());
    assert_eq!(settings.jobs.max_attempts, 5);
}

#[test]
fn without_a_url_there_is_no_database() {
    let none = load(&[("LANEKEEPER__DATABASE__CONNECTIONS", "5")]).unwrap();
    assert!(none.database.is_none());
    let url = ("LANEKEEPER__DATABASE__URL", "postgres://host/lanes");
    let database = load(&[url]).unwrap().database.unwrap();
    assert_eq!(database.connect_timeout, Duration::from_secs(2));
    assert_eq!(database.timeout, Duration::from_secs(1));
    assert_eq!((database.connections, database.migrate), (8, false));
}

#[test]
fn migrations_without_a_database_are_a_mistake() {
    let text = message(load(&[("LANEKEEPER__DATABASE__MIGRATE", "true")]));
    assert!(text.contains("expected database.url beside it"), "{text}");
}

#[test]
fn the_ledger_keeps_hashes_for_a_month_unless_told_otherwise() {
    let ledger = load(&[]).unwrap().ledger;
    assert_eq!(ledger.recipient, LedgerRecipient::Hash);
    assert_eq!(ledger.retention, Some(Duration::from_hours(30 * 24)));
    assert_eq!(ledger.hash_key, None);
    let for_ever = load(&[("LANEKEEPER__LEDGER__RETENTION_DAYS", "0")]).unwrap();
    assert_eq!(for_ever.ledger.retention, None);
    let short = message(load(&[("LANEKEEPER__LEDGER__HASH_KEY", "too short")]));
    assert!(short.contains("16 bytes or more"), "{short}");
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_defaults() {
    let file = "[lanes]\nbudget_per_second = 7\nreserve_percent = 50\n";
    let environment = [("LANEKEEPER__LANES__BUDGET_PER_SECOND", "9")];
    let settings = load_file_with(file, &environment).unwrap();
    assert_eq!(settings.lanes.budget.get(), 9);
    assert_eq!(settings.lanes.reserve.get(), 50);
    assert_eq!(settings.lanes.shed_delay, Duration::from_secs(1));
}

#[test]
fn the_environment_can_name_the_file_and_the_command_line_wins() {
    let named = file_with("[lanes]\nbudget_per_second = 7\n");
    let given = file_with("[lanes]\nbudget_per_second = 8\n");
    let path = named.path().display().to_string();
    let environment = [("LANEKEEPER_CONFIG", path.as_str())];
    let by_name = Settings::load(None, environment).unwrap();
    assert_eq!(by_name.lanes.budget.get(), 7);
    let by_argument = Settings::load(Some(given.path()), environment).unwrap();
    assert_eq!(by_argument.lanes.budget.get(), 8);
}

#[test]
fn a_wrong_value_is_named_with_what_was_expected() {
    let text = message(load(&[("LANEKEEPER__LANES__RESERVE_PERCENT", "120")]));
    assert_eq!(
        text,
        "LANEKEEPER__LANES__RESERVE_PERCENT (setting lanes.reserve_percent): found \"120\"; \
         expected a whole number from 0 to 100"
    );
    let text = message(load_file("[lanes]\nreserve_percent = \"many\"\n"));
    assert!(text.starts_with("lanes.reserve_percent in /"), "{text}");
    assert!(
        text.contains("(environment: LANEKEEPER__LANES__RESERVE_PERCENT): found \"many\""),
        "{text}"
    );
    let zero = message(load(&[("LANEKEEPER__AMQP__PREFETCH", "0")]));
    assert!(zero.contains("from 1 to 65535"), "{zero}");
    let one = message(load(&[(
        "LANEKEEPER__CARRIERS__DEFAULT__MAX_IN_FLIGHT",
        "1",
    )]));
    assert!(one.contains("from 2 to 65535"), "{one}");
    for bad in ["-1", "1.5", "1e3", "ten", "99999999999999999999"] {
        assert!(
            load(&[("LANEKEEPER__JOBS__MAX_ATTEMPTS", bad)]).is_err(),
            "{bad}"
        );
    }
}

#[test]
fn an_unknown_name_suggests_the_nearest_one() {
    let nearest = |name: &str| message(load(&[(name, "1")]));
    let cases = [
        (
            "LANEKEEPER__LANES__BUDGET_PER_SECONDS",
            "LANEKEEPER__LANES__BUDGET_PER_SECOND",
        ),
        (
            "LANEKEEPER__LANE__RESERVE_PERCENT",
            "LANEKEEPER__LANES__RESERVE_PERCENT",
        ),
        ("LANEKEEPER__AMQP__PREFECTH", "LANEKEEPER__AMQP__PREFETCH"),
        ("LANEKEEPER__AMQP_URL", "LANEKEEPER__AMQP__URL"),
        ("LANEKEEPER_AMQP_URL", "LANEKEEPER__AMQP__URL"),
        (
            "LANEKEEPER__CARRIERS__BULK_EU__ULR",
            "LANEKEEPER__CARRIERS__BULK_EU__URL",
        ),
        ("LANEKEEPER__amqp__url", "LANEKEEPER__AMQP__URL"),
        ("LANEKEEPER__OPS", "LANEKEEPER__OPS__LISTEN"),
    ];
    for (wrong, right) in cases {
        assert_eq!(
            nearest(wrong),
            format!("{wrong} is no setting; the nearest one is {right}")
        );
    }
    let text = message(load_file(
        "[lanes]\nbudget = 5\n[lane]\nreserve_percent = 1\n",
    ));
    assert!(text.starts_with("lane.reserve_percent in /"), "{text}");
    assert!(
        text.ends_with("the nearest one is lanes.reserve_percent"),
        "{text}"
    );
    assert!(load_file("lanes = 5\n").is_err());
    assert!(load_file("[lanes.budget_per_second]\nx = 5\n").is_err());
}

#[test]
fn nothing_is_suggested_for_a_name_like_no_other() {
    let text = message(load(&[("LANEKEEPER__QUOTA__ZZZ", "1")]));
    assert!(
        text.starts_with("LANEKEEPER__QUOTA__ZZZ is no setting; config/default.toml"),
        "{text}"
    );
}

#[test]
fn a_value_that_is_no_secret_is_shown() {
    let percent = message(load(&[("LANEKEEPER__LANES__RESERVE_PERCENT", "20%")]));
    assert!(percent.contains("found \"20%\""), "{percent}");
    let listen = message(load(&[("LANEKEEPER__OPS__LISTEN", ":9465")]));
    assert!(listen.contains("found \":9465\""), "{listen}");
    let login = message(load(&[("LANEKEEPER__OPS__LISTEN", "guest:S3NTINEL")]));
    assert!(!login.contains("S3NTINEL"), "{login}");
}

#[test]
fn names_that_container_platforms_make_are_none_of_ours() {
    let made = [
        ("LANEKEEPER_SERVICE_HOST", "10.0.0.1"),
        ("LANEKEEPER_PORT_9464_TCP", "tcp://10.0.0.1:9464"),
        ("PATH", "/bin"),
    ];
    assert!(load(&made).is_ok());
}

#[test]
fn an_empty_value_is_refused() {
    for name in ["LANEKEEPER__AMQP__PREFIX", "LANEKEEPER_CONFIG"] {
        let text = message(load(&[(name, "")]));
        assert!(
            text.starts_with(&format!("{name} is set but empty")),
            "{text}"
        );
    }
    assert!(load(&[("LANEKEEPER__AMQP__PREFIX", " ")]).is_err());
}

#[test]
fn a_secret_comes_from_a_file_or_directly_but_not_both() {
    let secret = file_with("amqp://user:S3NTINEL@broker\n");
    let path = secret.path().display().to_string();
    let from_file = load(&[("LANEKEEPER__AMQP__URL_FILE", &path)]).unwrap();
    assert_eq!(from_file.amqp.url.expose().password(), Some("S3NTINEL"));
    let both = load(&[
        ("LANEKEEPER__AMQP__URL_FILE", path.as_str()),
        ("LANEKEEPER__AMQP__URL", "amqp://user:S3NTINEL@other"),
    ]);
    assert_eq!(
        message(both),
        "LANEKEEPER__AMQP__URL (setting amqp.url) and LANEKEEPER__AMQP__URL_FILE (setting amqp.url_file) \
         are both given; keep one of them"
    );
    let missing = message(load(&[("LANEKEEPER__REDIS__URL_FILE", "/does/not/exist")]));
    assert!(missing.contains("cannot read /does/not/exist"), "{missing}");
    let empty = file_with("\n");
    let path = empty.path().display().to_string();
    assert!(message(load(&[("LANEKEEPER__REDIS__URL_FILE", &path)])).contains("an empty file"));
}

/// Passwords in places where a mistake makes them the subject of an error.
#[test]
fn no_error_and_no_debug_output_shows_a_secret() {
    let secret_file = file_with("redis://user:S3NTINEL/x@host\n");
    let path = secret_file.path().display().to_string();
    let refused = [
        load(&[("LANEKEEPER__AMQP__URL", "amqp://user:S3NTINEL#1@host")]),
        load(&[("LANEKEEPER__REDIS__URL", "http://user:S3NTINEL@host")]),
        load(&[("LANEKEEPER__REDIS__URL_FILE", &path)]),
        load(&[(
            "LANEKEEPER__DATABASE__URL",
            "postgres://user:S3NTINEL#1@host",
        )]),
        load(&[(
            "LANEKEEPER__DATABASE__URL",
            "postgres://host?password=S3NTINEL",
        )]),
        load(&[("LANEKEEPER__DATABASE__URL_FILE", &path)]),
        load(&[("LANEKEEPER__LEDGER__HASH_KEY", "S3NTINEL")]),
        load(&[("LANEKEEPER__AMQP__PREFIX", "amqp://user:S3NTINEL@host")]),
        load(&[("LANEKEEPER__OPS__LISTEN", "amqp://user:S3NTINEL@host")]),
        load(&[("LANEKEEPER__CARRIERS__DEFAULT__AUTH_TOKEN", "S3NTINEL\n")]),
        load_file("[amqp]\nurl = \"amqp://user:S3NTINEL\n"),
        load_file("[amqp]\nurl = amqp://user:S3NTINEL@host\n"),
        load_file("[amqp]\nurl = \"amqp://user:S3NTINEL\\q@host\"\n"),
        load_file("[amqp]\nurl = [\"amqp://user:S3NTINEL@host\"]\n"),
        load_file("amqp.url = 'S3NTINEL' 'S3NTINEL'\n"),
    ];
    for result in refused {
        let error = result.unwrap_err();
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(!text.contains("S3NTINEL"), "{text}");
        }
    }
    let settings = load(&[
        ("LANEKEEPER__AMQP__URL", "amqp://user:S3NTINEL@host"),
        ("LANEKEEPER__REDIS__URL", "redis://:S3NTINEL@host"),
        (
            "LANEKEEPER__DATABASE__URL",
            "postgres://S3NTINEL:S3NTINEL@host?sslkey=S3NTINEL",
        ),
        ("LANEKEEPER__LEDGER__HASH_KEY", "S3NTINEL S3NTINEL"),
        ("LANEKEEPER__CARRIERS__DEFAULT__KIND", "http"),
        (
            "LANEKEEPER__CARRIERS__DEFAULT__URL",
            "https://S3NTINEL@host/?key=S3NTINEL",
        ),
        ("LANEKEEPER__CARRIERS__DEFAULT__AUTH_TOKEN", "S3NTINEL"),
    ]);
    let shown = format!("{settings:#?}");
    assert!(settings.is_ok() && !shown.contains("S3NTINEL"), "{shown}");
}

#[test]
fn a_broken_file_is_named_with_the_place() {
    let text = message(load_file("[lanes]\nbudget_per_second = \n"));
    assert!(text.contains("is not TOML: line 2, column 21"), "{text}");
    let missing = Settings::load(Some(Path::new("/no/such.toml")), [("", "")]);
    assert!(message(missing).contains("--config or LANEKEEPER_CONFIG: cannot read /no/such.toml"));
}

#[test]
fn carriers_take_the_channels_that_they_name() {
    let settings = load_file_with(
        "[carriers.bulk-eu]\nkind = \"sandbox\"\nchannels = [\"email\", \"push\"]\nsandbox_latency_ms = 5\n",
        &[
            ("LANEKEEPER__CARRIERS__BULK_EU__MAX_IN_FLIGHT", "12"),
            ("LANEKEEPER__CARRIERS__WA__KIND", "http"),
            ("LANEKEEPER__CARRIERS__WA__URL", "https://wa.example/send"),
            ("LANEKEEPER__CARRIERS__WA__CHANNELS", "whatsapp"),
        ],
    )
    .unwrap();
    let of = |channel| settings.carriers.for_channel(channel).to_string();
    assert_eq!(of(Channel::Email), "bulk-eu");
    assert_eq!(of(Channel::Push), "bulk-eu");
    assert_eq!(of(Channel::Whatsapp), "wa");
    assert_eq!(of(Channel::Sms), "default");
    let all: Vec<_> = settings.carriers.iter().collect();
    assert_eq!(all.len(), 3);
    let (name, bulk) = all[0];
    assert_eq!((&**name, bulk.max_in_flight), ("bulk-eu", 12));
    assert!(matches!(&bulk.kind, CarrierKind::Sandbox(s) if s.latency.as_millis() == 5));
    assert!(
        matches!(&all[2].1.kind, CarrierKind::Http(http) if http.url.to_string() == "https://wa.example/send")
    );
}

#[test]
fn carriers_that_make_no_sense_are_refused() {
    let cases = [
        ("[carriers.b]\nkind = \"sandbox\"\n", "carriers.b.channels"),
        ("[carriers.b]\nchannels = [\"sms\"]\n", "carriers.b.kind"),
        (
            "[carriers.b]\nkind = \"http\"\nchannels = [\"sms\"]\n",
            "carriers.b.url",
        ),
        (
            "[carriers.b]\nkind = \"sandbox\"\nchannels = [\"fax\"]\n",
            "carriers.b.channels",
        ),
        (
            "[carriers.B_1]\nkind = \"sandbox\"\nchannels = [\"sms\"]\n",
            "a carrier name of a-z 0-9 and -",
        ),
        (
            "[carriers.a]\nkind = \"sandbox\"\nchannels = [\"sms\"]\n[carriers.b]\nkind = \"sandbox\"\nchannels = [\"sms\"]\n",
            "found sms, which carrier a has",
        ),
        (
            "[carriers.default]\nkind = \"http\"\n",
            "carriers.default.url",
        ),
        (
            "[carriers.default]\nsandbox_fail_percent = 60\nsandbox_throttle_percent = 60\n",
            "at most 100 together",
        ),
    ];
    for (file, expected) in cases {
        let text = message(load_file(file));
        assert!(text.contains(expected), "{file}: {text}");
    }
}

#[test]
fn accounts_keep_their_capitals_and_come_from_either_file() {
    let accounts = file_with("[Other-2]\nbudget_per_second = 3\nreserve_percent = 0\n");
    let path = accounts.path().display().to_string();
    let file = format!(
        "[accounts]\nfile = {path:?}\n[accounts.overrides.Acme_1]\nbudget_per_second = 250\n"
    );
    let settings = load_file(&file).unwrap();
    let found: Vec<_> = settings
        .accounts
        .overrides
        .iter()
        .map(|(id, own)| (id.to_string(), own.budget.get(), own.reserve.get()))
        .collect();
    assert_eq!(
        found,
        [("Acme_1".to_owned(), 250, 20), ("Other-2".to_owned(), 3, 0)]
    );
}

#[test]
fn mistakes_in_accounts_are_named() {
    let cases = [
        (
            "[accounts.overrides.\"a.b\"]\nbudget_per_second = 1\n",
            "account \"a.b\"",
        ),
        (
            "[accounts.overrides.a]\nbudget_per_secnd = 1\n",
            "accounts.overrides.a.budget_per_secnd",
        ),
        (
            "[accounts.overrides.a]\nbudget_per_second = -1\n",
            "from 0 to 1000000000",
        ),
        (
            "[accounts.overrides.a]\nreserve_percent = 101\n",
            "from 0 to 100",
        ),
    ];
    for (file, expected) in cases {
        let text = message(load_file(file));
        assert!(text.contains(expected), "{file}: {text}");
    }
    let in_file = |text: &str| {
        let accounts = file_with(text);
        let path = PathBuf::from(accounts.path()).display().to_string();
        message(load(&[("LANEKEEPER__ACCOUNTS__FILE", &path)]))
    };
    assert!(in_file("[a]\nbudget = 1\n").contains("the nearest one is budget_per_second"));
    assert!(in_file("a = 5\n").contains("it is no table"));
    let twice = file_with("[a]\nbudget_per_second = 1\n");
    let path = twice.path().display().to_string();
    let both =
        format!("[accounts]\nfile = {path:?}\n[accounts.overrides.a]\nbudget_per_second = 1\n");
    assert!(message(load_file(&both)).contains("it is given twice"));
    let environment = load(&[(
        "LANEKEEPER__ACCOUNTS__OVERRIDES__ACME__BUDGET_PER_SECOND",
        "1",
    )]);
    assert!(message(environment).contains("are not read from the environment"));
}
