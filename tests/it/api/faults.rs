//! Faults that users of other HTTP services have suffered, each tried here.

mod bodies;
mod connections;
mod limits;
mod secrets;

use serde_json::Value;

use crate::support::api::DEV_KEY;

/// A text that stands where nothing may be passed on.
pub const SENTINEL: &str = "S3NTINEL";

/// A log of JSON: one event a line, without the sentinel, the secret of the key of `dev`, and
/// anything that moves a cursor or forges a line.
pub fn assert_silent(log: &str) {
    let secret = DEV_KEY.rsplit('_').next().unwrap();
    assert!(!log.is_empty());
    for line in log.lines() {
        let event: Result<Value, _> = serde_json::from_str(line);
        assert!(
            event.is_ok_and(|event| event["level"].is_string()),
            "{line}"
        );
        assert!(!line.contains(SENTINEL) && !line.contains(secret), "{line}");
    }
    assert!(!log.contains(['\u{1b}', '\r']), "{log}");
}
