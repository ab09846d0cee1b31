//! `lanekeeper check` where all is well. It needs a machine that is not busy: a late Redis is an outage.

use crate::operations::{redis_url, run};
use crate::support::amqp_url;

#[test]
fn check_says_ok_for_each_service_that_answers() {
    let (amqp, redis) = (amqp_url(), redis_url());
    let environment = [
        ("LANEKEEPER__AMQP__URL", amqp.as_str()),
        ("LANEKEEPER__REDIS__URL", redis.as_str()),
    ];
    let (output, text) = run(&["check"], &environment);
    for what in [
        "ok    settings",
        "ok    amqp",
        "ok    redis",
        "ok    carrier default",
        "note  database",
    ] {
        assert!(text.contains(what), "{what} is missing:\n{text}");
    }
    assert_eq!(output.status.code(), Some(0), "{text}");
    let (_, json) = run(&["check", "--json"], &environment);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["ok"], true);
    assert_eq!(report["checks"][1]["what"], "amqp");
}
