//! The awkward files, uploaded: each gives what it gives from the command line.

use std::collections::BTreeMap;

use super::desk::{CSV, Desk, LINES, figures, rows_of, uploading};
use crate::batch_files::{AwkwardFile, Expected, corpus};
use crate::support::api::{Answer, ApiServer, DEV_KEY, answer};

/// Files that need no text for all rows: that cannot be given over HTTP, where parameters stand in
/// addresses.
fn files() -> Vec<AwkwardFile> {
    let all = corpus().into_iter();
    all.filter(|file| file.default_body.is_none()).collect()
}

fn kind(file: &AwkwardFile) -> &'static str {
    let text = String::from_utf8_lossy(&file.bytes);
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if text.starts_with(['{', '[']) {
        LINES
    } else {
        CSV
    }
}

/// How an answer differs from what the file must give.
fn difference(file: &AwkwardFile, answer: &Answer) -> Option<String> {
    let data = &answer.body["data"];
    let as_expected = match &file.expected {
        Expected::Refused(part) => {
            let message = answer.body["error"]["message"].as_str().unwrap_or_default();
            answer.status == 422 && answer.code() == "VALIDATION_ERROR" && message.contains(part)
        }
        Expected::Rows {
            jobs,
            duplicates,
            rejected,
        } => {
            let counts = [jobs, duplicates].map(|lines| lines.len() as u64);
            let bad = rejected.len() as u64;
            let told: Vec<_> = rejected.iter().take(100).copied().collect();
            answer.status == 202
                && figures(data) == [counts[0] + counts[1] + bad, counts[0], counts[1], bad]
                && rows_of(&data["rejections"])
                    .iter()
                    .map(|(row, field)| (*row, field.as_str()))
                    .eq(told)
                && data["more_rejections"] == (rejected.len() > 100)
        }
    };
    let (name, expected) = (file.name, &file.expected);
    (!as_expected).then(|| format!("{name}: expected {expected:?}, found {answer:?}"))
}

#[tokio::test]
async fn every_file_gives_what_is_expected_of_it_without_any_service() {
    let dev = ApiServer::dev().await;
    let mut differences = Vec::new();
    for (number, file) in files().iter().enumerate() {
        let parameters = format!("batch_id=file{number}");
        let upload = uploading(&dev, DEV_KEY, &parameters, kind(file), file.bytes.clone());
        differences.extend(difference(file, &answer(upload).await));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(files().len() > 60, "{}", files().len());
}

#[tokio::test]
async fn the_expected_jobs_are_queued_and_none_of_a_file_that_is_refused() {
    let desk = Desk::new("api-files").await;
    let mut expected = BTreeMap::new();
    for (number, file) in files().iter().enumerate() {
        let batch = format!("file{number}");
        let parameters = format!("batch_id={batch}");
        let answer = desk
            .upload(&parameters, kind(file), file.bytes.clone())
            .await;
        assert_eq!(difference(file, &answer), None);
        if let Expected::Rows { jobs, .. } = &file.expected {
            expected.extend(jobs.iter().map(|line| (format!("{batch}-{line}"), 1)));
        }
    }
    let mut found = BTreeMap::new();
    for lane in ["marketing", "transactional"] {
        found.extend(desk.take_ids(lane).await);
    }
    assert_eq!(found, expected);
    desk.end().await;
}
