//! When a recipient may be written to.

use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::resources::{Client, SOON, Services, on_dev, wrong_field};
use crate::support::eventually;

const PATH: &str = "/api/v1/compliance/quiet-hours/preview";
const NEW_YORK: &str = "%2B12125550123";

/// A window of an hour of UTC's day, that many hours from now.
fn window(hours: i64) -> String {
    let start = Timestamp::now() + hours.hours();
    let hour = |at: Timestamp| at.strftime("%H:00").to_string();
    format!("{}-{}", hour(start), hour(start + 1.hour()))
}

async fn with_quiet_hours(services: &Services, sms: &str) {
    let set = format!(
        "INSERT INTO accounts (account_id, quiet_hours, time_zone, windows)
         VALUES ('acme', true, 'UTC', '{{\"sms\": \"{sms}\"}}')
         ON CONFLICT (account_id) DO UPDATE SET windows = excluded.windows"
    );
    services.database.execute(&set).await;
}

#[tokio::test]
async fn the_preview_says_what_the_gate_does() {
    let services = Services::start("api-preview").await;
    let client = services.client();
    let utc = format!("{PATH}?channel=sms&phone={NEW_YORK}&recipient_timezone=UTC");
    let off = client.get(&utc).await.body["data"].take();
    assert_eq!(
        (&off["allowed_now"], &off["reason"]),
        (&json!(true), &json!("quiet_hours_off"))
    );
    let sms = window(3);
    with_quiet_hours(&services, &sms).await;
    let closed = async || client.get(&utc).await.body["data"]["allowed_now"] == false;
    eventually("the window holds", SOON, closed).await;
    let view = client.get(&utc).await.body["data"].take();
    let (start, end) = sms.split_once('-').unwrap();
    assert_eq!(view["reason"], "outside_window");
    assert_eq!(
        (&view["window_start_local"], &view["window_end_local"]),
        (&json!(start), &json!(end))
    );
    assert_eq!(
        (&view["local_timezone"], &view["timezone_source"]),
        (&json!("UTC"), &json!("recipient"))
    );
    let next: Timestamp = view["next_allowed_at"].as_str().unwrap().parse().unwrap();
    assert!(next > Timestamp::now() && next < Timestamp::now() + 3.hours());
    let send = client
        .send_to("+12125550123", json!({"recipient_timezone": "UTC"}))
        .await;
    assert_eq!((send.status.as_u16(), send.code()), (403, "QUIET_HOURS"));
    assert_eq!(
        send.body["error"]["details"]["next_allowed_at"],
        view["next_allowed_at"]
    );

    for field in [
        "reason",
        "local_timezone",
        "window_start_local",
        "window_end_local",
    ] {
        assert_eq!(send.body["error"]["details"][field], view[field], "{field}");
    }

    let number = client
        .get(&format!("{PATH}?channel=sms&phone={NEW_YORK}"))
        .await;
    let number = &number.body["data"];
    assert_eq!(
        (&number["local_timezone"], &number["timezone_source"]),
        (&json!("America/New_York"), &json!("number"))
    );
    let toll_free = client
        .get(&format!("{PATH}?channel=sms&phone=+18005550123"))
        .await;
    let zones = toll_free.body["data"]["possible_timezones"]
        .as_array()
        .unwrap()
        .len();
    assert!(zones > 30, "a plus that was not encoded is one");
    let email = client.get(&format!("{PATH}?channel=email")).await;
    assert_eq!(email.body["data"]["reason"], "any_hour");
    with_quiet_hours(&services, "nonsense").await;
    let broken = async || client.get(&utc).await.body["data"]["reason"] == "policy_unreadable";
    eventually("what cannot be read lets nothing pass", SOON, broken).await;
    services.stop().await;
}

#[tokio::test]
async fn what_cannot_be_asked_is_named() {
    on_dev(async |client: Client<'_>| {
        for (query, field) in [
            ("phone=%2B12125550123", "channel"),
            ("channel=fax&phone=%2B12125550123", "channel"),
            ("channel=sms", "phone"),
            ("channel=sms&phone=", "phone"),
            ("channel=sms&phone=12", "phone"),
            (
                "channel=sms&phone=%2B12125550123&recipient_timezone=Mars",
                "recipient_timezone",
            ),
        ] {
            let answer = client.get(&format!("{PATH}?{query}")).await;
            assert_eq!(wrong_field(&answer), field, "{query}");
            assert_eq!(answer.body["error"]["details"]["value"], Value::Null);
        }
        let all = client.get(&format!("{PATH}?channel=telegram")).await;
        assert_eq!(all.body["data"]["allowed_now"], true);
    })
    .await;
}
