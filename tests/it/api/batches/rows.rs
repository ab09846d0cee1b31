//! What becomes of rows.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::desk::{CSV, Desk, JSON, LINES, figures, rows_of};
use crate::support::api::{RECIPIENT, answer};

/// JSON lines, each with a recipient of its own.
pub fn lines(count: usize) -> String {
    let mut lines = String::with_capacity(count * 64);
    for number in 0..count {
        let to = recipient(number);
        writeln!(lines, r#"{{"to":"{to}","body":"message {number}"}}"#).unwrap();
    }
    lines
}

/// A number that no other row has.
pub fn recipient(number: usize) -> String {
    format!("+4479{:08}", 10_000_000 + number)
}

fn ids(jobs: &[Value]) -> Vec<&str> {
    jobs.iter().map(|job| job["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_batch_is_marketing_unless_it_says_otherwise_whatever_the_key() {
    let desk = Desk::new("api-lane").await;
    let mut keys = vec![desk.key.clone()];
    for origin in ["campaign", "journey"] {
        keys.push(desk.key_of("acme", &["send"], origin).await);
    }
    for (number, key) in keys.iter().enumerate() {
        let parameters = format!("batch_id=plain{number}&campaign_id=spring&category=offers");
        let upload = super::desk::uploading(&desk.api, key, &parameters, LINES, lines(2));
        let answer = answer(upload).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        let jobs = desk.take_jobs("marketing").await;
        let batch = format!("plain{number}");
        assert_eq!(ids(&jobs), [format!("{batch}-1"), format!("{batch}-2")]);
        for job in &jobs {
            assert_eq!(job["batch_id"], batch);
            assert_eq!(
                (&job["campaign_id"], &job["category"]),
                (&json!("spring"), &json!("offers"))
            );
            assert_eq!(job["account_id"], "acme");
            let origin = if number == 2 { "journey" } else { "campaign" };
            assert_eq!(job["origin"], origin);
        }
    }
    let rows = "to,body,priority,traffic_lane\n\
        +447700900123,a,high,\n+447700900124,b,,transactional\n+447700900125,c,,\n";
    assert_eq!(desk.upload("batch_id=mixed", CSV, rows).await.status, 202);
    assert_eq!(
        ids(&desk.take_jobs("transactional").await),
        ["mixed-2", "mixed-3"]
    );
    assert_eq!(ids(&desk.take_jobs("marketing").await), ["mixed-4"]);
    let high = desk
        .upload("batch_id=high&priority=high", LINES, lines(1))
        .await;
    assert_eq!(high.status, 202, "{high:?}");
    assert_eq!(ids(&desk.take_jobs("transactional").await), ["high-1"]);
    desk.end().await;
}

#[tokio::test]
async fn an_array_has_items_instead_of_lines() {
    let desk = Desk::new("api-array").await;
    let array = json!([
        {"to": RECIPIENT, "body": "two\nlines"},
        {"to": "nobody", "body": "x"},
        7,
        {"channel": "email", "to": "a@example.org", "content": {"subject": "x"}},
    ]);
    let text = serde_json::to_string_pretty(&array).unwrap();
    let answer = desk.upload("batch_id=array", JSON, text).await;
    assert_eq!(figures(&answer.body["data"]), [4, 2, 0, 2], "{answer:?}");
    let told = rows_of(&answer.body["data"]["rejections"]);
    assert_eq!(told, [(2, "to".to_owned()), (3, "row".to_owned())]);
    let jobs = desk.take_jobs("marketing").await;
    assert_eq!(ids(&jobs), ["array-1", "array-4"]);
    assert_eq!(jobs[0]["body"], "two\nlines");
    for (items, status) in [(1_000, 202), (1_001, 422)] {
        let rows = lines(items).trim_end().replace('\n', ",");
        let parameters = format!("batch_id=array{items}");
        let answer = desk.upload(&parameters, JSON, format!("[{rows}]")).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    assert_eq!(desk.take_jobs("marketing").await.len(), 1_000);
    let long = format!("[\"{}\"]", "x".repeat(9 << 20));
    let answer = desk.upload("batch_id=long", JSON, long).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code()),
        (413, "PAYLOAD_TOO_LARGE")
    );
    for broken in ["[1", "{\"to\":1}", "", "nonsense"] {
        let answer = desk.upload("batch_id=broken", JSON, broken).await;
        assert!([400, 422].contains(&answer.status.as_u16()), "{answer:?}");
    }
    desk.end().await;
}

/// Rows add up wherever the bad ones stand among the chunks that are published together (500 rows).
#[tokio::test]
async fn the_figures_add_up_wherever_the_bad_rows_are() {
    let desk = Desk::new("api-sums").await;
    for (number, (count, bad)) in [
        (3, vec![0, 1, 2]),
        (3, vec![0]),
        (3, vec![2]),
        (500, vec![0, 250, 499]),
        (501, vec![0, 250, 500]),
        (1_001, vec![0, 499, 500, 999, 1_000]),
        (1_001, vec![]),
    ]
    .into_iter()
    .enumerate()
    {
        let mut rows: Vec<String> = lines(count).lines().map(str::to_owned).collect();
        for place in &bad {
            rows[*place] = "{\"to\":\"nobody\",\"body\":\"x\"}".to_owned();
        }
        let parameters = format!("batch_id=sums{number}");
        let answer = desk.upload(&parameters, LINES, rows.join("\n")).await;
        let data = &answer.body["data"];
        let (count, wrong) = (count as u64, bad.len() as u64);
        assert_eq!(
            figures(data),
            [count, count - wrong, 0, wrong],
            "{answer:?}"
        );
        assert_eq!(data["complete_to_row"], count);
        let told: Vec<u64> = rows_of(&data["rejections"])
            .into_iter()
            .map(|row| row.0)
            .collect();
        let expected: Vec<u64> = bad.iter().map(|place| *place as u64 + 1).collect();
        assert_eq!(told, expected);
        let jobs = desk.take_ids("marketing").await;
        assert_eq!(jobs.len() as u64, count - wrong);
        assert!(jobs.values().all(|times| *times == 1));
    }
    desk.end().await;
}

#[tokio::test]
async fn every_one_of_ten_thousand_rejected_rows_is_listed() {
    let desk = Desk::new("api-listed").await;
    let mut rows = "to,body\n".to_owned();
    for number in 0..10_050 {
        writeln!(rows, "nobody{number},x").unwrap();
    }
    let answer = desk.upload("batch_id=bad", CSV, rows.clone()).await;
    let data = &answer.body["data"];
    assert_eq!(figures(data), [10_050, 0, 0, 10_050], "{answer:?}");
    assert_eq!(rows_of(&data["rejections"]).len(), 100);
    assert_eq!(data["more_rejections"], true);
    let expected: Vec<_> = (2..10_052).map(|row| (row, "to".to_owned())).collect();
    assert_eq!(desk.rejections("bad", 1_000).await, expected);
    // Again: nothing is listed twice.
    let again = desk.upload("batch_id=bad", CSV, rows).await;
    assert_eq!(again.status, 202);
    assert_eq!(desk.rejections("bad", 999).await.len(), 10_050);
    assert!(
        !answer.body.to_string().contains("nobody"),
        "values are not repeated"
    );
    desk.end().await;
}

/// One rule for numbers, over both ways.
#[tokio::test]
async fn a_number_means_the_same_in_a_batch_and_alone() {
    let with_region = |region: Option<&'static str>| async move {
        Desk::with(
            "api-numbers",
            crate::support::amqp_url(),
            |config| match region {
                Some(region) => config.set("JOBS__DEFAULT_REGION", region),
                None => config,
            },
        )
        .await
    };
    for region in [None, Some("AM")] {
        let desk = with_region(region).await;
        for (number, to) in [
            "0774768867",
            "+37498123456",
            "37498123456",
            "0037498123456",
            "098123456",
        ]
        .into_iter()
        .enumerate()
        {
            let single = desk
                .api
                .send(&desk.key, &json!({"to": to, "body": "x"}))
                .await;
            let rows = format!("to,body\n{to},x\n");
            let parameters = format!("batch_id=n{number}");
            let batch = desk.upload(&parameters, CSV, rows).await;
            let accepted = &batch.body["data"]["accepted"];
            assert_eq!(
                *accepted == 1,
                single.status == 202,
                "{region:?} {to}: {single:?} {batch:?}"
            );
            let rejections = rows_of(&batch.body["data"]["rejections"]);
            if single.status == 422 {
                assert_eq!(single.code(), "INVALID_PHONE_NUMBER");
                assert_eq!(rejections, [(2, "to".to_owned())]);
            }
            if let Some(job) = desk.take_jobs("marketing").await.first() {
                assert_eq!(job["to"], single.body["data"]["to"]);
            }
        }
        desk.end().await;
    }
}

#[tokio::test]
async fn a_file_of_numbers_alone_is_cut_nowhere() {
    let desk = Desk::new("api-column").await;
    let rows = "to\n+447700900123\n\"+44 7700 900124\"\n";
    let answer = desk.upload("batch_id=column", CSV, rows).await;
    let told = rows_of(&answer.body["data"]["rejections"]);
    assert_eq!(told, [(2, "body".to_owned()), (3, "body".to_owned())]);
    let no_header = "+447700900123\n+447700900124\n";
    let answer = desk.upload("batch_id=column2", CSV, no_header).await;
    assert_eq!(answer.status, 422);
    assert!(!answer.body.to_string().contains("+4477009"), "{answer:?}");
    desk.end().await;
}
