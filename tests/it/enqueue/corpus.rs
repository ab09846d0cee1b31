//! The awkward files, through the whole command.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::desk::{Desk, Ended};
use crate::batch_files::{AwkwardFile, Expected, corpus};

/// What is looked at of a job; one is nested deeper than a whole value may be.
#[derive(Deserialize)]
struct Ids {
    id: String,
    batch_id: String,
}

/// Runs the command on a file, in its own batch.
async fn run(desk: &Desk, file: &AwkwardFile, batch: &str, more: &[&str]) -> Ended {
    let path = desk.file(file.name, &file.bytes);
    let body = file.default_body.map(|body| ["--body", body]);
    let batch = ["--json", "--batch", batch];
    let more = [
        &batch[..],
        body.as_ref().map_or(&[], |body| &body[..]),
        more,
    ]
    .concat();
    desk.run(&path, &more).await
}

/// How a run's report differs from what the file must give.
fn difference(file: &AwkwardFile, run: &Ended) -> Option<String> {
    let report = run.json();
    let as_expected = match &file.expected {
        Expected::Refused(part) => {
            run.code == 2 && report["status"] == "refused" && run.stderr.contains(part)
        }
        Expected::Rows {
            jobs,
            duplicates,
            rejected,
        } => {
            let counts = [
                ("queued", jobs.len()),
                ("duplicates", duplicates.len()),
                ("rejected", rejected.len()),
                ("rows", jobs.len() + duplicates.len() + rejected.len()),
            ];
            let code = if rejected.is_empty() { 0 } else { 3 };
            run.code == code
                && counts.iter().all(|(name, count)| report[*name] == *count)
                && told(&report).eq(rejected.iter().copied())
        }
    };
    let (name, expected) = (file.name, &file.expected);
    (!as_expected).then(|| format!("{name}: expected {expected:?}, found {run:?}"))
}

fn told(report: &Value) -> impl Iterator<Item = (u64, &str)> {
    let rejected = report["rejected_rows"].as_array().into_iter().flatten();
    rejected.map(|row| {
        (
            row["line"].as_u64().unwrap(),
            row["field"].as_str().unwrap(),
        )
    })
}

#[tokio::test]
async fn a_dry_run_finds_in_every_file_what_is_expected_of_it() {
    let desk = Desk::on("corpus", "amqp://127.0.0.1:1".to_owned());
    let mut differences = Vec::new();
    for file in corpus() {
        let all = ["--dry-run", "--max-errors", "2000"];
        let run = run(&desk, &file, "spring", &all).await;
        differences.extend(difference(&file, &run));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[tokio::test]
async fn of_every_third_file_the_expected_jobs_are_queued() {
    let desk = Desk::new("corpus");
    let mut expected = BTreeMap::new();
    for (number, file) in corpus().iter().enumerate().step_by(3) {
        let batch = format!("file{number}");
        let run = run(&desk, file, &batch, &["--max-errors", "2000"]).await;
        assert_eq!(difference(file, &run), None);
        if let Expected::Rows { jobs, .. } = &file.expected
            && !jobs.is_empty()
        {
            let ids: Vec<_> = jobs.iter().map(|line| format!("{batch}-{line}")).collect();
            expected.insert(batch, ids);
        }
    }
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for lane in ["marketing", "transactional"] {
        for message in desk.take_messages(lane).await {
            let job: Ids = serde_json::from_slice(&message).unwrap();
            found.entry(job.batch_id).or_default().push(job.id);
        }
    }
    let line = |id: &String| id.rsplit('-').next().unwrap().parse::<u64>().unwrap();
    for ids in found.values_mut() {
        ids.sort_by_key(line);
    }
    assert_eq!(found, expected);
    desk.end().await;
}
