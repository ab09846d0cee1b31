//! What becomes of rows, and what is said about it.

use serde_json::json;

use super::desk::{BATCH, Desk, ids, rows};

#[tokio::test]
async fn good_rows_are_queued_and_bad_ones_named() {
    let desk = Desk::new("enqueue");
    let content = "\u{feff}{\"to\":\"+44 7700 900123\",\"body\":\"x\"}\r\n\
                   \n\
                   not json\n\
                   {\"to\":\"S3NTINEL\",\"body\":\"x\"}\n\
                   {\"to\":\"+447700900124\",\"body\":\"x\"}\n\
                   {\"to\":\"+447700900123\",\"body\":\"y\"}";
    let file = desk.file("rows.jsonl", content);
    let run = desk.run(&file, &["--campaign-id", "c-1"]).await;
    assert_eq!(run.code, 3, "{run:?}");
    let errors: Vec<_> = run.stderr.lines().collect();
    assert!(errors[0].starts_with("line 3: row: "), "{run:?}");
    assert!(errors[1].starts_with("line 4: to: "), "{run:?}");
    assert!(!format!("{run:?}").contains("S3NTINEL"));
    let destination = format!("to {}.send at 127.0.0.1", desk.prefix);
    for part in [
        "every good row of",
        "rows 5",
        "queued 2",
        "duplicates 1",
        "rejected 2",
        &destination,
        "ids spring-1 to spring-5",
        "next: correct the rejected rows",
    ] {
        assert!(run.summary().contains(part), "{part}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("guest"), "{}", run.stdout);
    let jobs = desk.take_jobs("marketing").await;
    assert_eq!(ids(&jobs), ["spring-1", "spring-5"]);
    assert_eq!(jobs[0]["campaign_id"], "c-1");
    assert!(jobs[0]["enqueued_at"].as_str().unwrap().ends_with('Z'));
    desk.end().await;
}

#[tokio::test]
async fn one_text_serves_a_file_of_numbers() {
    let desk = Desk::new("enqueue");
    let file = desk.file("numbers.csv", "to\n+447700900123\n+447700900124\n");
    let run = desk.run(&file, &["--body", "We open at nine."]).await;
    assert_eq!(run.code, 0, "{run:?}");
    let jobs = desk.take_jobs("marketing").await;
    assert_eq!(ids(&jobs), ["spring-2", "spring-3"]);
    assert_eq!(jobs[1]["body"], "We open at nine.");
    desk.end().await;
}

#[tokio::test]
async fn numbers_without_a_country_code_need_a_region() {
    let desk = Desk::new("enqueue");
    let file = desk.file("numbers.csv", "to,body\n07700 900123,x\n");
    let without = desk.run(&file, &["--dry-run"]).await;
    assert_eq!(without.code, 3, "{without:?}");
    let run = desk.run(&file, &["--region", "GB"]).await;
    assert_eq!(run.code, 0, "{run:?}");
    let jobs = desk.take_jobs("marketing").await;
    assert_eq!(jobs[0]["to"], "+447700900123");
    // The region is one of the options that decide what becomes of a row.
    let again = desk.run(&file, &["--region", "US"]).await;
    assert_eq!(again.code, 4, "{again:?}");
    desk.end().await;
}

#[tokio::test]
async fn a_recipient_is_queued_twice_only_on_request() {
    let desk = Desk::new("enqueue");
    let content = "to,body\n+447700900123,a\n+447700900123,b\n";
    let file = desk.file("twice.csv", content);
    let once = desk.run(&file, &["--json"]).await.json();
    assert_eq!(once["queued"], 1);
    assert_eq!(once["duplicates"], 1);
    let twice = ["--json", "--allow-duplicates", "--batch", "other"];
    let twice = desk.run(&file, &twice).await.json();
    assert_eq!(twice["queued"], 2);
    assert_eq!(twice["duplicates"], 0);
    desk.end().await;
}

#[tokio::test]
async fn a_summary_for_scripts_is_one_object_and_nothing_else() {
    let desk = Desk::new("enqueue");
    let mut content = rows(3);
    content.push_str(&"{\"to\":\"S3NTINEL\",\"body\":\"x\"}\n".repeat(3));
    let file = desk.file("rows.jsonl", content);
    let run = desk.run(&file, &["--json", "--max-errors", "2"]).await;
    assert_eq!(run.stderr, "");
    let mut report = run.json();
    assert!(report["seconds"].as_f64().unwrap() > 0.0);
    assert!(report["rows_per_second"].as_u64().is_some());
    assert!(report["next"].as_str().unwrap().contains("--batch"));
    for changing in ["seconds", "rows_per_second", "next", "rejected_rows"] {
        report.as_object_mut().unwrap().remove(changing);
    }
    let destination = format!("{}.send at 127.0.0.1:5672", desk.prefix);
    assert_eq!(
        report,
        json!({
            "status": "complete", "exit_code": 3,
            "file": file, "account": "acme", "batch": BATCH, "destination": destination,
            "rows": 6, "queued": 3, "already_queued": 0, "duplicates": 0, "rejected": 3,
            "not_queued": 0, "complete_to_line": 6,
            "first_id": "spring-1", "last_id": "spring-3",
            "state": desk.state_of(&file),
            "rejected_rows_not_listed": 1, "error": null,
        })
    );
    let rejected = run.json()["rejected_rows"].clone();
    assert_eq!(rejected.as_array().unwrap().len(), 2);
    assert_eq!(rejected[0]["line"], 4);
    assert_eq!(rejected[0]["field"], "to");
    assert!(!run.stdout.contains("S3NTINEL"));
    desk.end().await;
}

#[tokio::test]
async fn only_so_many_bad_rows_are_shown_and_all_are_counted() {
    let desk = Desk::new("enqueue");
    let file = desk.file("bad.csv", format!("to,body\n{}", "x,y\n".repeat(250)));
    let run = desk.run(&file, &["--dry-run"]).await;
    assert_eq!((run.code, run.stderr.lines().count()), (3, 100));
    assert!(run.stdout.contains("150 of them not listed"), "{run:?}");
    let run = desk.run(&file, &["--dry-run", "--max-errors", "0"]).await;
    assert_eq!((run.code, run.stderr.as_str()), (3, ""));
    assert!(run.summary().contains("rejected 250"), "{run:?}");
}

#[tokio::test]
async fn quiet_says_only_what_went_wrong() {
    let desk = Desk::new("enqueue");
    let file = desk.file("rows.jsonl", rows(3));
    let run = desk.run(&file, &["--quiet"]).await;
    assert_eq!((run.code, run.stdout + &run.stderr), (0, String::new()));
    let bad = desk.file("bad.csv", "to,body\nx,y\n");
    let run = desk.run(&bad, &["--quiet"]).await;
    assert_eq!(run.code, 3);
    assert!(run.stderr.starts_with("line 2: to: "), "{run:?}");
    desk.end().await;
}

#[tokio::test]
async fn with_strict_one_bad_row_keeps_all_back() {
    let desk = Desk::new("enqueue");
    let file = desk.file(
        "rows.jsonl",
        rows(1_200) + "{\"to\":\"x\",\"body\":\"y\"}\n[]\n",
    );
    let run = desk.run(&file, &["--strict"]).await;
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("line 1201: to: "), "{run:?}");
    assert!(run.stderr.contains("line 1202: row: "), "{run:?}");
    assert!(run.stderr.contains("2 of 1,202 rows are bad"), "{run:?}");
    assert!(run.summary().contains("not queued 1,200"), "{run:?}");
    assert_eq!(desk.names(), ["rows.jsonl"]);
    // Not even a connection was made, so there are no queues yet.
    let good = desk.file("rows.jsonl", rows(1_200));
    let run = desk.run(&good, &["--strict", "--json"]).await;
    assert_eq!(run.json()["queued"], 1_200);
    assert_eq!(desk.queued("marketing").await, 1_200);
    desk.end().await;
}

#[tokio::test]
async fn a_dry_run_needs_no_broker_and_leaves_nothing() {
    let desk = Desk::on("enqueue", "amqp://127.0.0.1:1".to_owned());
    let file = desk.file("rows.jsonl", rows(3));
    let run = desk.run(&file, &["--dry-run"]).await;
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    for part in ["was checked", "good 3 ids spring-1 to spring-3"] {
        assert!(run.summary().contains(part), "{part}: {}", run.stdout);
    }
    let report = desk.run(&file, &["--dry-run", "--json"]).await.json();
    assert_eq!(report["status"], "checked");
    assert_eq!(desk.names(), ["rows.jsonl"]);
}

#[tokio::test]
async fn what_comes_through_a_pipe_is_refused_or_queued_as_a_whole() {
    let desk = Desk::new("enqueue");
    let run = desk.pipe("{\n  \"to\": 1,\n  \"body\": 2\n}\n", &[]).await;
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.starts_with("error: "), "{run:?}");
    let run = desk.pipe(&rows(3), &["--json"]).await;
    assert_eq!((run.code, &run.json()["queued"]), (0, &json!(3)));
    assert_eq!(run.json()["state"], json!(null));
    let kept = ["--json", "--state", "kept.json", "--batch", "other"];
    let run = desk.pipe(&rows(3), &kept).await;
    assert_eq!(run.json()["queued"], 3);
    let run = desk.pipe(&rows(3), &kept).await;
    assert_eq!(run.json()["status"], "already_queued");
    let run = desk.pipe(&rows(3), &["--resume"]).await;
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("--state"), "{run:?}");
    assert_eq!(desk.names(), ["kept.json"]);
    desk.end().await;
}

#[tokio::test]
async fn wrong_arguments_are_explained() {
    let desk = Desk::new("enqueue");
    for (arguments, expected) in [
        (["--account", "a.b"], "expected 1 to 64 characters"),
        (["--channel", "fax"], "sms, whatsapp"),
        (["--origin", "me"], "api, campaign, journey"),
        (["--batch", "a b"], "expected 1 to 107 characters"),
        (["--format", "xlsx"], "csv"),
        (["--region", "gb"], "two capitals, such as GB"),
        (["--resume", "--restart"], "cannot be used with"),
        (["--resume", "--dry-run"], "cannot be used with"),
    ] {
        let run = desk.run(&desk.place("none"), &arguments).await;
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(expected), "{expected}: {run:?}");
    }
}

#[tokio::test]
async fn help_tells_exit_codes_and_examples() {
    let desk = Desk::new("enqueue");
    let run = desk.run(&desk.place("none"), &["--help"]).await;
    for part in ["Exit codes", "--resume", "contacts.csv", "143"] {
        assert!(run.stdout.contains(part), "{part}");
    }
}
