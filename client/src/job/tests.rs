use serde_json::json;

use super::*;

fn job() -> Job {
    Job::new("j-1", "acme", Channel::Sms, "+447700900123").unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(entries) => entries,
        other => panic!("no object: {other}"),
    }
}

#[test]
fn every_field_has_its_name_and_form() {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let job = job()
        .body("Hello")
        .content(object(json!({"template": "t"})))
        .from("Acme")
        .service_id("s")
        .campaign_id("c")
        .journey_id("j")
        .batch_id("b")
        .category("otp")
        .recipient_timezone("Europe/Berlin")
        .priority(Priority::Normal)
        .origin(Origin::Journey)
        .traffic_lane(Lane::Transactional)
        .metadata("trace", 7)
        .enqueued_at(at("2026-01-02T03:04:05.6789Z"))
        .not_before(at("2026-01-02T04:04:05+01:00"))
        .expires_at(at("2026-01-02T03:09:05Z"));
    let json: Value = serde_json::from_slice(&job.to_json().unwrap()).unwrap();
    assert_eq!(
        json,
        json!({
            "id": "j-1", "account_id": "acme", "channel": "sms", "to": "+447700900123",
            "body": "Hello", "content": {"template": "t"}, "from": "Acme", "service_id": "s",
            "campaign_id": "c", "journey_id": "j", "batch_id": "b", "category": "otp",
            "recipient_timezone": "Europe/Berlin", "priority": "normal", "origin": "journey",
            "metadata": {"traffic_lane": "transactional", "trace": 7},
            "enqueued_at": "2026-01-02T03:04:05.678Z", "not_before": "2026-01-02T03:04:05.000Z",
            "expires_at": "2026-01-02T03:09:05.000Z",
        })
    );
}

#[test]
fn what_is_not_set_is_not_there() {
    let json: Value = serde_json::from_slice(&job().to_json().unwrap()).unwrap();
    let required =
        json!({"id": "j-1", "account_id": "acme", "channel": "sms", "to": "+447700900123"});
    assert_eq!(json, required);
}

#[test]
fn the_lane_follows_the_first_hint_that_decides() {
    let lane = |job: Job| job.lane_and_rule();
    assert_eq!(lane(job()), (Lane::Transactional, LaneRule::Default));
    let journey = job().origin(Origin::Journey);
    assert_eq!(lane(journey.clone()), (Lane::Marketing, LaneRule::Origin));
    let urgent = journey.priority(Priority::High);
    assert_eq!(
        lane(urgent.clone()),
        (Lane::Transactional, LaneRule::Priority)
    );
    let named = urgent.clone().traffic_lane(Lane::Marketing);
    assert_eq!(lane(named), (Lane::Marketing, LaneRule::TrafficLane));
    let misspelt = urgent.metadata("traffic_lane", "Marketing");
    assert_eq!(lane(misspelt), (Lane::Transactional, LaneRule::Priority));
}

#[test]
fn what_a_worker_would_refuse_names_its_field() {
    let new = |id: &str, account: &str| Job::new(id, account, Channel::Sms, "+447700900123");
    assert_eq!(new("a b", "acme").unwrap_err().field(), "id");
    assert_eq!(new("j", "a.b").unwrap_err().field(), "account_id");
    let to = |to: &str| Job::new("j", "acme", Channel::Email, to).unwrap();
    let wrong = [
        ("to", to(" ")),
        ("to", to("a@example.com\r\nBcc: b@example.com")),
        ("to", to("Ann <a@example.com>")),
        ("to", to(&format!("{}@example.com", "x".repeat(1_024)))),
        ("from", job().from("a\nb")),
        ("body", job().body("a\0b")),
        ("category", job().category("\0")),
        ("campaign_id", job().campaign_id("x".repeat(1_025))),
        ("journey_id", job().journey_id("a\nb")),
        ("batch_id", job().batch_id("\u{85}")),
        ("recipient_timezone", job().recipient_timezone("")),
        (
            "content",
            job().content(object(json!({"a": [{"b": "\0"}]}))),
        ),
        ("metadata", job().metadata("\0", 1)),
        ("expires_at", job().expires_at(Timestamp::MIN)),
        ("job", job().body("x".repeat(MAX_JOB_BYTES))),
    ];
    for (field, job) in wrong {
        assert_eq!(job.validate().unwrap_err().field(), field);
    }
}

#[test]
fn the_largest_job_is_taken_and_one_byte_more_is_not() {
    let rest = job().body("").to_json().unwrap().len();
    let largest = |more: usize| job().body("x".repeat(MAX_JOB_BYTES - rest + more));
    assert_eq!(largest(0).to_json().unwrap().len(), MAX_JOB_BYTES);
    let error = largest(1).validate().unwrap_err().to_string();
    assert_eq!(
        error,
        "job: expected at most 262144 bytes of JSON, not 262145"
    );
}

#[test]
fn neither_debug_nor_errors_show_recipient_or_content() {
    let job = Job::new("j", "acme", Channel::Email, "S3NTINEL\n")
        .unwrap()
        .body("S3NTINEL");
    let shown = format!("{job:?} {}", job.validate().unwrap_err());
    assert!(!shown.contains("S3NTINEL"), "{shown}");
}
