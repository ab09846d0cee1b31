use utoipa::PartialSchema as _;

use super::*;

fn given(account: &AccountId) -> Given<'_> {
    Given {
        account,
        origin: Origin::Api,
        channel: Channel::Sms,
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        default_region: None,
    }
}

fn job(body: &str) -> ApiResult<Box<Job>> {
    let account = AccountId::parse("acme").unwrap();
    let id = JobId::parse("msg_1").unwrap();
    Message::read(body.as_bytes())?.job(&id, given(&account))
}

fn wrong(body: &str) -> (Code, String) {
    let error = job(body).unwrap_err();
    let field = error.details().get("field").and_then(Value::as_str);
    (error.code(), field.unwrap_or_default().to_owned())
}

#[test]
fn a_request_becomes_the_job_that_a_worker_reads() {
    let job = job(
        r#"{"to":"+44 7700 900123","body":"hello","priority":"low","campaign_id":"c1",
        "metadata":{"a":[1]},"expires_at":"2026-01-02T00:00:00Z"}"#,
    )
    .unwrap();
    assert_eq!(&*job.to, "+447700900123");
    assert_eq!(job.lane(), Lane::Marketing);
    assert_eq!(job.head.origin, Some(Origin::Api));
    assert_eq!(job.head.campaign_id.as_deref(), Some("c1"));
    let again = decode(job.payload.to_bytes(), None).decoded;
    assert_eq!(again, Decoded::Job(job));
}

#[test]
fn the_origin_of_the_key_decides_where_nothing_else_does() {
    let plain = r#"{"to":"+447700900123","body":"x"}"#;
    assert_eq!(job(plain).unwrap().lane(), Lane::Transactional);
    let account = AccountId::parse("acme").unwrap();
    let id = JobId::parse("msg_1").unwrap();
    let campaign = Given {
        origin: Origin::Campaign,
        ..given(&account)
    };
    let job = Message::read(plain.as_bytes()).unwrap().job(&id, campaign);
    assert_eq!(job.unwrap().lane(), Lane::Marketing);
}

#[test]
fn every_wrong_field_is_named() {
    for (body, code, field) in [
        (r#"{"to":"12","body":"x"}"#, Code::InvalidPhoneNumber, "to"),
        (r#"{"to":"","body":"x"}"#, Code::InvalidPhoneNumber, "to"),
        (r#"{"body":"x"}"#, Code::ValidationError, "to"),
        (r#"{"to":"+447700900123"}"#, Code::ValidationError, "body"),
        (
            r#"{"to":"+447700900123","body":null}"#,
            Code::ValidationError,
            "body",
        ),
        (
            r#"{"to":"+447700900123","body":1}"#,
            Code::ValidationError,
            "body",
        ),
        (
            r#"{"to":"+447700900123","body":"x","content":[]}"#,
            Code::ValidationError,
            "content",
        ),
        (
            r#"{"to":"+447700900123","body":"x","metadata":"m"}"#,
            Code::ValidationError,
            "metadata",
        ),
        (
            r#"{"to":"+447700900123","body":"x","priority":"urgent"}"#,
            Code::ValidationError,
            "priority",
        ),
        (
            r#"{"to":"+447700900123","body":"x","priority":1}"#,
            Code::ValidationError,
            "priority",
        ),
        (
            r#"{"to":"+447700900123","body":"x","metadata":{"traffic_lane":"fast"}}"#,
            Code::ValidationError,
            "metadata.traffic_lane",
        ),
        (
            r#"{"to":"+447700900123","body":"x","recipient_timezone":"Mars/X"}"#,
            Code::ValidationError,
            "recipient_timezone",
        ),
        (
            r#"{"to":"+447700900123","body":"x","not_before":"soon"}"#,
            Code::ValidationError,
            "not_before",
        ),
        (
            r#"{"to":"+447700900123","body":"x","prority":"low"}"#,
            Code::ValidationError,
            "prority",
        ),
        (
            r#"{"to":"+447700900123","body":"x","account_id":"other"}"#,
            Code::ValidationError,
            "account_id",
        ),
        (
            r#"{"to":"+447700900123","body":"x","origin":"campaign"}"#,
            Code::ValidationError,
            "origin",
        ),
        (
            r#"{"to":"+447700900123","to":"+447700900124","body":"x"}"#,
            Code::ValidationError,
            "to",
        ),
        (
            r#"{"to":"+447700900123","body":"x\u0000"}"#,
            Code::ValidationError,
            "body",
        ),
        (
            r#"{"to":"+447700900123","body":"\ud800"}"#,
            Code::ValidationError,
            "body",
        ),
        ("[]", Code::ValidationError, "body"),
        ("\"x\"", Code::ValidationError, "body"),
        ("{", Code::MalformedBody, ""),
        ("", Code::MalformedBody, ""),
        ("{} {}", Code::MalformedBody, ""),
    ] {
        assert_eq!(wrong(body), (code, field.to_owned()), "{body}");
    }
}

#[test]
fn neither_recipient_nor_content_is_told_back() {
    for body in [
        r#"{"to":"S3NTINEL","body":"x"}"#,
        r#"{"to":"+447700900123","from":"S3NTINEL\n","body":"x"}"#,
        r#"{"to":"+447700900123","body":["S3NTINEL"]}"#,
        r#"{"to":"+447700900123","content":"S3NTINEL"}"#,
        r#"{"to":"+447700900123","body":"x","metadata":"S3NTINEL"}"#,
        r#"{"to":"+447700900123","body":"x","metadata":{"traffic_lane":"S3NTINEL"}}"#,
        r#"{"to":S3NTINEL}"#,
    ] {
        let error = job(body).unwrap_err();
        assert!(!format!("{error:?}").contains("S3NTINEL"), "{body}");
    }
}

#[test]
fn a_value_that_names_nobody_is_told_back() {
    let error = job(r#"{"to":"+447700900123","body":"x","priority":"urgent"}"#).unwrap_err();
    assert_eq!(error.details()["value"], "urgent");
    assert_eq!(
        error.details()["expected"],
        "expected one of high, normal, low"
    );
}

#[test]
fn a_misspelt_field_gets_the_nearest_one() {
    let error = job(r#"{"to":"+447700900123","body":"x","sevice_id":"s"}"#).unwrap_err();
    assert!(
        error.message().contains("did you mean service_id?"),
        "{error:?}"
    );
}

/// Comparing it with the known names would take a minute.
#[test]
fn a_name_that_is_no_misspelling_is_not_compared() {
    let name = "sevice_id".repeat(20_000);
    let error = job(&format!(r#"{{"to":"+447700900123","{name}":1}}"#)).unwrap_err();
    assert!(error.message().len() < 500, "{}", error.message().len());
    assert!(!error.message().contains("did you mean"));
}

#[test]
fn a_message_is_worthless_from_its_end_on() {
    let body = r#"{"to":"+447700900123","body":"x","expires_at":"2026-01-01T00:00:00Z"}"#;
    let message = Message::read(body.as_bytes()).unwrap();
    // It can be read all the same: a request that is repeated is known again.
    let job = job(body).unwrap();
    let end: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let before = end - jiff::SignedDuration::from_millis(1);
    assert!(message.in_time(&job, before).is_ok());
    let error = message.in_time(&job, end).unwrap_err();
    assert_eq!(error.code(), Code::ValidationError);
    assert_eq!(error.details()["field"], "expires_at");
}

#[test]
fn workers_need_not_know_the_country_of_a_number() {
    let account = AccountId::parse("acme").unwrap();
    let id = JobId::parse("msg_1").unwrap();
    let in_britain = Given {
        default_region: Region::parse("GB"),
        ..given(&account)
    };
    let body = r#"{"to":"07700 900123","from":"07700 900456","body":"x"}"#;
    let message = Message::read(body.as_bytes()).unwrap();
    let job = message.job(&id, in_britain).unwrap();
    assert_eq!(&*job.to, "+447700900123");
    let again = decode(job.payload.to_bytes(), None).decoded;
    assert_eq!(again, Decoded::Job(job));
}

#[test]
fn what_cannot_be_read_makes_another_request_too() {
    let digest = |content: &str| {
        let body = format!(r#"{{"to":"+1","content":{content}}}"#);
        Message::read(body.as_bytes()).unwrap().digest()
    };
    let deep = |inside: &str| format!("{}{inside}{}", "[".repeat(150), "]".repeat(150));
    assert_ne!(digest(&deep("1")), digest(&deep("2")));
    assert_ne!(digest("{\"a\":1e400}"), digest("{\"a\":2e400}"));
    assert_eq!(digest(&deep("1")), digest(&deep("1")));
    // Read as numbers and names these would be the same.
    for (one, other) in [
        (
            r#"{"n":1234567890123456789012345}"#,
            r#"{"n":1234567890123456789012346}"#,
        ),
        (r#"{"n":0.1}"#, r#"{"n":0.10000000000000000001}"#),
        (
            r#"{"n":0.30000000000000004}"#,
            r#"{"n":0.30000000000000003}"#,
        ),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
    ] {
        assert_ne!(digest(one), digest(other), "{one}");
    }
}

#[test]
fn order_and_blanks_make_no_other_request() {
    let digest = |body: &str| Message::read(body.as_bytes()).unwrap().digest();
    let base = digest(r#"{"to":"+1","body":"x","metadata":{"a":1,"b":2}}"#);
    let same = digest(
        "{ \"metadata\": {\"b\":2, \"a\":1},\n\"body\":\"\\u0078\", \"from\":null, \"to\":\"+1\"}",
    );
    assert_eq!(base, same);
    for other in [
        r#"{"to":"+2","body":"x","metadata":{"a":1,"b":2}}"#,
        r#"{"to":"+1","body":"y","metadata":{"a":1,"b":2}}"#,
        r#"{"to":"+1","body":"x","metadata":{"a":1,"b":3}}"#,
        r#"{"to":"+1","body":"x"}"#,
    ] {
        assert_ne!(base, digest(other), "{other}");
    }
}

#[test]
fn the_description_lists_the_fields_that_are_read() {
    let schema = serde_json::to_value(MessageRequest::schema()).unwrap();
    let mut described: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    let mut read = FIELDS.map(Field::as_str).to_vec();
    described.sort();
    read.sort_unstable();
    assert_eq!(described, read);
}
