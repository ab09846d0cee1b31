//! What one run leaves for the next.

use std::path::Path;

use super::desk::{Desk, Ended, rows};

async fn finished(desk: &Desk, content: &str) -> std::path::PathBuf {
    let file = desk.file("rows.jsonl", content);
    let run = desk.run(&file, &[]).await;
    assert_eq!(run.code, 0, "{run:?}");
    file
}

/// Makes a finished state one that stopped after a line.
fn interrupt(desk: &Desk, file: &Path, line: u64) {
    let mut state = desk.state(file).unwrap();
    state["finished"] = false.into();
    state["confirmed_line"] = line.into();
    std::fs::write(desk.state_of(file), state.to_string()).unwrap();
}

fn assert_undecided(run: &Ended, parts: &[&str]) {
    assert_eq!(run.code, 4, "{run:?}");
    for part in parts {
        assert!(run.stderr.contains(part), "{part}: {run:?}");
    }
}

#[tokio::test]
async fn a_finished_batch_is_queued_again_only_on_request() {
    let desk = Desk::new("enqueue");
    let file = finished(&desk, &rows(3)).await;
    let text = std::fs::read_to_string(desk.state_of(&file)).unwrap();
    assert!(!text.contains("+44"), "no recipients: {text}");
    assert_eq!(desk.names().len(), 2, "no lock is left: {:?}", desk.names());
    for more in [&[][..], &["--resume"]] {
        let run = desk.run(&file, more).await;
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.stdout.contains("was queued already"), "{run:?}");
        assert!(run.summary().contains("already queued 3"), "{run:?}");
    }
    assert_eq!(desk.queued("marketing").await, 3);
    let run = desk.run(&file, &["--restart", "--json"]).await.json();
    assert_eq!((&run["queued"], &run["rows"]), (&3.into(), &3.into()));
    assert_eq!(desk.queued("marketing").await, 6);
    desk.end().await;
}

#[tokio::test]
async fn a_file_may_be_queued_under_a_second_batch() {
    let desk = Desk::new("enqueue");
    let file = finished(&desk, &rows(3)).await;
    let run = desk.run(&file, &["--batch", "summer", "--json"]).await;
    assert_eq!(run.json()["queued"], 3);
    assert_eq!(desk.names().len(), 3);
    // A state that was named by hand is not taken for another batch's.
    let state = desk.state_of(&file);
    let more = ["--batch", "autumn", "--state", state.to_str().unwrap()];
    for choice in ["--resume", "--restart"] {
        let run = desk.run(&file, &[&more[..], &[choice]].concat()).await;
        assert_undecided(&run, &["is the state of batch spring", "--state"]);
    }
    desk.end().await;
}

#[tokio::test]
async fn an_unfinished_run_asks_and_goes_on_after_its_mark() {
    let desk = Desk::new("enqueue");
    let content = rows(3) + &rows(1) + "{\"to\":\"x\"}\n" + &rows(5)[rows(3).len()..];
    let file = desk.file("rows.jsonl", content);
    assert_eq!(desk.run(&file, &[]).await.code, 3);
    interrupt(&desk, &file, 6);
    let run = desk.run(&file, &[]).await;
    assert_undecided(&run, &["up to line 6", "--resume", "--restart"]);
    let run = desk.run(&file, &["--resume", "--json"]).await;
    let report = run.json();
    // Line 4 repeats a recipient, line 5 is bad; both were told by the earlier run.
    for (figure, expected) in [
        ("exit_code", 3),
        ("rows", 7),
        ("already_queued", 4),
        ("queued", 1),
        ("duplicates", 1),
        ("rejected", 1),
    ] {
        assert_eq!(report[figure], expected, "{figure}: {report}");
    }
    assert_eq!(report["first_id"], "spring-7");
    assert_eq!(report["rejected_rows"].as_array().unwrap().len(), 0);
    let state = desk.state(&file).unwrap();
    assert_eq!(state["finished"], true);
    assert_eq!(state["counts"]["queued"], 5);
    interrupt(&desk, &file, 6);
    let report = desk.run(&file, &["--restart", "--json"]).await.json();
    assert_eq!((&report["queued"], &report["rows"]), (&5.into(), &7.into()));
    desk.end().await;
}

#[tokio::test]
async fn a_row_that_is_queued_twice_is_the_same_byte_for_byte() {
    let desk = Desk::new("enqueue");
    let file = finished(&desk, &rows(3)).await;
    let first = desk.take_messages("marketing").await;
    assert_eq!(first.len(), 3);
    for (choice, line) in [("--resume", 1), ("--resume", 0), ("--restart", 2)] {
        interrupt(&desk, &file, line);
        let run = desk.run(&file, &[choice]).await;
        assert_eq!(run.code, 0, "{run:?}");
        let again = desk.take_messages("marketing").await;
        let skipped = if choice == "--restart" { 0 } else { line };
        assert!(
            again == first[usize::try_from(skipped).unwrap()..],
            "{choice}"
        );
    }
    // A restart after a finished run is a second time as well; with another file it is the first.
    assert_eq!(desk.run(&file, &["--restart"]).await.code, 0);
    assert!(desk.take_messages("marketing").await == first);
    let file = desk.file("rows.jsonl", rows(4));
    assert_eq!(desk.run(&file, &["--restart"]).await.code, 0);
    let jobs = desk.take_jobs("marketing").await;
    let before: serde_json::Value = serde_json::from_slice(&first[0]).unwrap();
    assert!(
        jobs.iter()
            .all(|job| job["enqueued_at"] != before["enqueued_at"])
    );
    desk.end().await;
}

#[tokio::test]
async fn duplicates_of_rows_before_the_mark_are_known_on_resume() {
    let desk = Desk::new("enqueue");
    let file = finished(&desk, &(rows(2) + &rows(2))).await;
    interrupt(&desk, &file, 2);
    let report = desk.run(&file, &["--resume", "--json"]).await.json();
    assert_eq!(report["already_queued"], 2, "{report}");
    assert_eq!(report["duplicates"], 2, "{report}");
    assert_eq!(report["queued"], 0, "{report}");
    desk.end().await;
}

#[tokio::test]
async fn a_changed_file_or_changed_options_are_not_queued_under_the_old_ids() {
    let desk = Desk::new("enqueue");
    let file = finished(&desk, &rows(3)).await;
    for choice in [&[][..], &["--resume"]] {
        let more = [choice, &["--from", "Acme"]].concat();
        let run = desk.run(&file, &more).await;
        assert_undecided(&run, &["other options", "--batch"]);
    }
    let file = desk.file("rows.jsonl", rows(4));
    for choice in [&[][..], &["--resume"]] {
        let run = desk.run(&file, choice).await;
        assert_undecided(&run, &["the file has changed", "--batch"]);
    }
    assert_eq!(desk.queued("marketing").await, 3);
    let run = desk.run(&file, &["--restart", "--json"]).await;
    assert_eq!(run.json()["queued"], 4);
    desk.end().await;
}

#[tokio::test]
async fn without_a_place_for_the_state_nothing_is_queued() {
    let desk = Desk::new("enqueue");
    // The state's name is longer than any file's may be; root may write to every directory.
    let file = desk.file(&format!("{}.jsonl", "x".repeat(245)), rows(3));
    let run = desk.run(&file, &[]).await;
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("cannot write the state"), "{run:?}");
    assert!(run.stderr.contains("--state"), "{run:?}");
    let run = desk.run(&file, &["--state", "short.json"]).await;
    assert_eq!(run.code, 0, "{run:?}");
    desk.end().await;
}

#[tokio::test]
async fn a_state_is_never_written_over_another_file() {
    let desk = Desk::new("enqueue");
    let file = desk.file("rows.jsonl", rows(3));
    for choice in [&[][..], &["--restart"]] {
        let more = [choice, &["--state", "rows.jsonl"]].concat();
        let run = desk.run(&file, &more).await;
        assert_undecided(&run, &["is no state of"]);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), rows(3));
}

#[tokio::test]
async fn a_resume_without_an_earlier_run_begins_at_the_first_row() {
    let desk = Desk::new("enqueue");
    let file = desk.file("rows.jsonl", rows(3));
    let run = desk.run(&file, &["--resume", "--json"]).await;
    assert_eq!((run.code, &run.json()["queued"]), (0, &3.into()));
    desk.end().await;
}
