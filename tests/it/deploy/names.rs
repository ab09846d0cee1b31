//! The manifests name real settings, queues and ports, and their time limits fit each other.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use lanekeeper::domain::Lane;
use lanekeeper::intake::Names;
use lanekeeper::settings::{ENV_PREFIX, Settings};

use super::{text, values_of};

const DEPLOYMENT: &str = "deploy/kubernetes/deployment.yaml";
const API: &str = "deploy/kubernetes/api.yaml";
const SETTINGS: &str = "deploy/kubernetes/settings.env";
const AUTOSCALER: &str = "deploy/kubernetes/scaledobject.yaml";

/// The settings in a file, by their environment names: `NAME: value`, `NAME=value`, or, as
/// Kubernetes has it, a `name:` and the `value:` below it.
fn settings_in(file: &str) -> BTreeMap<String, String> {
    let text = text(file);
    let lines = text.lines().map(|line| line.split('#').next().unwrap());
    let mut lines = lines.filter(|line| !line.trim().is_empty()).peekable();
    let mut found = BTreeMap::new();
    while let Some(line) = lines.next() {
        let Some(start) = line.find(ENV_PREFIX) else {
            continue;
        };
        let setting = &line[start..];
        let end = setting.find([':', '=']);
        let value = match end {
            Some(end) => &setting[end + 1..],
            None => {
                lines
                    .next()
                    .and_then(|next| next.split_once("value:"))
                    .unwrap()
                    .1
            }
        };
        let name = &setting[..end.unwrap_or(setting.len())];
        let value = value.trim().trim_matches('"').to_owned();
        assert!(
            found.insert(name.to_owned(), value).is_none(),
            "{name} twice in {file}"
        );
    }
    found
}

/// Reads settings as the program does. Files of secrets are there, with what belongs into them.
fn load(mut settings: BTreeMap<String, String>) -> Settings {
    let secrets = tempfile::tempdir().unwrap();
    for (name, value) in settings
        .iter_mut()
        .filter(|(name, _)| name.ends_with("_FILE"))
    {
        let secret = match name.as_str() {
            "LANEKEEPER__AMQP__URL_FILE" => "amqps://user:password@rabbitmq.example/vhost",
            "LANEKEEPER__REDIS__URL_FILE" => "rediss://user:password@redis.example",
            "LANEKEEPER__DATABASE__URL_FILE" => "postgres://user:password@postgres.example/lanes",
            _ => "a-token",
        };
        let path = secrets.path().join(name);
        std::fs::write(&path, secret).unwrap();
        *value = path.display().to_string();
    }
    let environment = settings
        .into_iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Settings::load(None, environment).unwrap_or_else(|error| panic!("{error}"))
}

fn in_cluster() -> Settings {
    let mut settings = settings_in("Dockerfile");
    settings.extend(settings_in(SETTINGS));
    settings.extend(settings_in(DEPLOYMENT));
    load(settings)
}

fn in_compose() -> Settings {
    let mut settings = settings_in("Dockerfile");
    settings.extend(settings_in("compose.yaml"));
    load(settings)
}

fn seconds(text: &str) -> Duration {
    Duration::from_secs(text.trim_end_matches('s').parse().unwrap())
}

#[test]
fn every_setting_in_the_manifests_is_one() {
    assert_eq!(settings_in(DEPLOYMENT).len(), 4);
    assert_eq!(settings_in(SETTINGS).len(), 7);
    assert_eq!(settings_in(API).len(), 4);
    assert_eq!(settings_in("compose.yaml").len(), 6);
    in_cluster();
    let mut api = settings_in("Dockerfile");
    api.extend(settings_in(SETTINGS));
    api.extend(settings_in(API));
    assert_eq!(load(api).api.listen, in_compose().api.listen);
}

#[test]
fn secrets_are_mounted_where_the_settings_look() {
    let deployment = text(DEPLOYMENT);
    let [mount] = values_of(&deployment, "mountPath:")[..] else {
        panic!("one mount");
    };
    let secret = text("deploy/kubernetes/secret.example.yaml");
    for (name, path) in settings_in(DEPLOYMENT) {
        let key = path
            .strip_prefix(mount)
            .and_then(|rest| rest.strip_prefix('/'));
        let key = key.unwrap_or_else(|| panic!("{name}: {path} is not under {mount}"));
        assert_eq!(values_of(&secret, &format!("{key}:")).len(), 1, "{key}");
    }
}

#[test]
fn workers_are_killed_only_after_their_grace_period() {
    let deployment = text(DEPLOYMENT);
    let granted = values_of(&deployment, "terminationGracePeriodSeconds:");
    assert_eq!(granted.len(), 1);
    assert!(seconds(granted[0]) > in_cluster().worker.grace);
    let compose = text("compose.yaml");
    let granted = values_of(&compose, "stop_grace_period:");
    assert_eq!(granted.len(), 1);
    assert!(seconds(granted[0]) > in_compose().worker.grace);
}

#[test]
fn everybody_knows_the_port_and_the_user_of_the_image() {
    let dockerfile = text("Dockerfile");
    let deployment = text(DEPLOYMENT);
    let port = in_compose().ops.listen.port().to_string();
    assert_eq!(values_of(&dockerfile, "EXPOSE "), [&port]);
    assert_eq!(values_of(&deployment, "containerPort:"), [&port]);
    assert!(text("compose.yaml").contains(&format!("/dev/tcp/127.0.0.1/{port} ")));
    assert!(text("deploy/prometheus/prometheus.yaml").contains(&format!(":{port}\"")));

    let user = values_of(&deployment, "runAsUser:")[0];
    assert_eq!(values_of(&dockerfile, "USER "), [format!("{user}:{user}")]);
}

#[test]
fn the_autoscaler_looks_at_the_queues_that_wait_for_workers() {
    let names = Names::new(in_cluster().amqp.prefix.as_str()).unwrap();
    let lanes = Lane::ALL.map(|lane| names.lane(lane).to_string());
    assert_eq!(values_of(&text(AUTOSCALER), "queueName:"), lanes);
    let target = "  name: lanekeeper-worker\n";
    assert!(text(DEPLOYMENT).contains(&format!("metadata:\n{target}")));
    assert!(text(AUTOSCALER).contains(&format!("scaleTargetRef:\n  {target}")));
}
