//! What the jobs say that are made of rows.

use std::fs::File;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use lanekeeper::batch::{Batch, BatchFile, FileError, Format, RowOptions, RowOutcome};
use lanekeeper::domain::{Field, Priority, Region};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{AwkwardFile, Expected};

fn file(text: &str) -> AwkwardFile {
    AwkwardFile {
        name: "content",
        bytes: text.as_bytes().to_vec(),
        default_body: Some("Default"),
        expected: Expected::Refused(""),
    }
}

/// The messages of the good rows.
fn messages(text: &str) -> Vec<Value> {
    messages_of(text, &file(text).batch())
}

fn messages_of(text: &str, batch: &Batch) -> Vec<Value> {
    let file = BatchFile::spool(text.as_bytes(), None).unwrap();
    let rows = file.rows(batch, RowOptions::default(), Timestamp::UNIX_EPOCH);
    let jobs = rows.unwrap().map(|row| match row.unwrap().outcome {
        RowOutcome::Job(job) => serde_json::from_slice(job.payload.as_bytes()).unwrap(),
        other => panic!("{other:?}"),
    });
    jobs.collect()
}

#[test]
fn a_row_becomes_a_job_of_its_batch() {
    let expected = json!({
        "id": "spring-2", "account_id": "acme", "origin": "campaign", "batch_id": "spring",
        "enqueued_at": "1970-01-01T00:00:00.000Z", "channel": "sms",
        "to": "+447700900001", "body": "Hallo"
    });
    let csv = "to,body\n+447700900001,Hallo\n";
    let json_lines = "\n{\"to\":\"+447700900001\",\"body\":\"Hallo\"}";
    for text in [csv, json_lines] {
        assert_eq!(messages(text), std::slice::from_ref(&expected), "{text}");
    }
}

#[test]
fn a_row_may_differ_from_the_defaults() {
    let mut batch = file("").batch();
    batch.priority = Some(Priority::Low);
    batch.defaults = vec![(Field::From, "Acme".to_owned())];
    let csv = "to,body,from,priority,channel\n\
               +447700900001,Hallo,Other,high,rcs\n\
               +447700900002,Hallo,,,\n";
    let json_lines = "{\"to\":\"+447700900001\",\"body\":\"Hallo\",\"from\":\"Other\",\
                      \"priority\":\"high\",\"channel\":\"rcs\"}\n\
                      {\"to\":\"+447700900002\",\"body\":\"Hallo\",\"from\":null}\n";
    for text in [csv, json_lines] {
        let messages = messages_of(text, &batch);
        let fields = |place: usize| {
            ["from", "priority", "channel"].map(|field| messages[place][field].clone())
        };
        assert_eq!(fields(0), ["Other", "high", "rcs"], "{text}");
        assert_eq!(fields(1), ["Acme", "low", "sms"], "{text}");
    }
}

#[test]
fn bodies_pass_unchanged() {
    for body in [
        "=HYPERLINK(\"https://example.org\",\"x\")",
        "+1+1",
        "@SUM(1)",
        " Hallo\r\nyou ",
        "4.47901E+11",
        "\u{202b}שלום\u{202c} e\u{301} \u{1f469}\u{200d}\u{1f467}",
    ] {
        let cell = body.replace('"', "\"\"");
        let message = &messages(&format!("to,body\n+447700900001,\"{cell}\"\n"))[0];
        assert_eq!(message["body"], body);
    }
}

proptest! {
    #[test]
    fn what_the_usual_library_writes_is_read_alike(
        bodies in prop::collection::vec("[a-c,;\"\r\n é]{0,12}x", 1..8),
        crlf: bool,
    ) {
        let terminator = if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
        let mut writer = csv::WriterBuilder::new().terminator(terminator).from_writer(Vec::new());
        writer.write_record(["to", "body"]).unwrap();
        for (number, body) in bodies.iter().enumerate() {
            writer.write_record([&format!("+44770090000{number}"), body]).unwrap();
        }
        let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        let messages = messages(&text);
        let mut line = 2;
        for (message, body) in messages.iter().zip(&bodies) {
            prop_assert_eq!(&message["body"], body);
            prop_assert_eq!(&message["id"], &format!("spring-{line}"));
            line += 1 + body.matches('\n').count();
        }
        prop_assert_eq!(messages.len(), bodies.len());
    }
}

/// What belongs to the notation of either format, and little else.
const ANYTHING: &str =
    "(\u{feff})?(to,body\n|\"to\";body\r\n|\\{\"to\":)?[to,;\t\"\r\n{}:\\[\\]+47é \u{a0}]{0,80}";

proptest! {
    #[test]
    fn no_text_stops_the_reading(text in ANYTHING, csv: bool) {
        let hint = csv.then_some(Format::Csv);
        let Ok(file) = BatchFile::spool(text.as_bytes(), hint) else {
            return Ok(());
        };
        let batch = self::file("").batch();
        let rows = file.rows(&batch, RowOptions::default(), Timestamp::UNIX_EPOCH).unwrap();
        let places: Vec<_> = rows.map(|row| row.map(|row| (row.line, row.end)).unwrap()).collect();
        prop_assert!(places.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1));
    }
}

#[test]
fn columns_of_other_names_are_metadata() {
    let text = "to;First Name;metadata;traffic_lane\n\
                +447700900001; Ann ;{\"n\":1.10};transactional\n\
                +447700900002;;;\n";
    let messages = messages(text);
    let metadata = json!({"First Name": " Ann ", "n": 1.10, "traffic_lane": "transactional"});
    assert_eq!(messages[0]["metadata"], metadata);
    assert_eq!(messages[1].get("metadata"), None);
    assert_eq!(messages[1]["body"], "Default");
}

#[test]
fn a_default_body_is_not_added_to_content() {
    let text = "{\"to\":\"+447700900001\",\"content\":{\"a\":1}}\n{\"to\":\"+447700900002\"}";
    let messages = messages(text);
    assert_eq!(messages[0].get("body"), None);
    assert_eq!(messages[1]["body"], "Default");
}

#[test]
fn duplicates_become_jobs_where_they_are_allowed() {
    let file = file("to\n+447700900001\n+447700900001\n");
    let batch = BatchFile::spool(&file.bytes[..], None).unwrap();
    let options = RowOptions {
        allow_duplicates: true,
    };
    let rows = batch.rows(&file.batch(), options, Timestamp::UNIX_EPOCH);
    let jobs = rows.unwrap().map(|row| row.unwrap().outcome);
    let jobs: Vec<_> = jobs.collect();
    assert!(
        matches!(jobs[..], [RowOutcome::Job(_), RowOutcome::Job(_)]),
        "{jobs:?}"
    );
}

#[test]
fn a_named_format_is_taken_instead_of_the_one_that_is_told() {
    let csv = "to,body\na,b\nc,d\n";
    let refused = BatchFile::spool(csv.as_bytes(), Some(Format::JsonLines));
    assert!(
        matches!(refused, Err(FileError::NotJsonLines { .. })),
        "{refused:?}"
    );
    let json = "{\"to\":\"+447700900001\"}";
    let refused = BatchFile::spool(json.as_bytes(), Some(Format::Csv));
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn a_file_that_changes_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = file("to\n+447700900001\n+447700900002\n");
    let shorter = "to\n+447700900001\n";
    let as_long = "to\n+447700900001\n+447700900003\n";
    for changed in [shorter, as_long] {
        let path = file.write(&folder);
        let batch = BatchFile::open(&path, None).unwrap();
        let rows = || batch.rows(&file.batch(), RowOptions::default(), Timestamp::UNIX_EPOCH);
        let begun = rows().unwrap();
        std::fs::write(&path, changed).unwrap();
        // Two writes may come within one tick of the file system's clock.
        let written = File::options().write(true).open(&path).unwrap();
        let later = SystemTime::now() + Duration::from_secs(1);
        written.set_modified(later).unwrap();
        assert!(matches!(rows(), Err(FileError::Changed)));
        let last = begun.last();
        assert!(matches!(last, Some(Err(FileError::Changed))), "{last:?}");
    }
}

#[test]
fn a_file_whose_name_another_one_takes_is_read_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = file("to\n+447700900001\n+447700900002\n");
    let path = file.write(&folder);
    let batch = BatchFile::open(&path, None).unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, "to\n").unwrap();
    std::fs::rename(other, path).unwrap();
    let rows = batch.rows(&file.batch(), RowOptions::default(), Timestamp::UNIX_EPOCH);
    assert_eq!(rows.unwrap().flatten().count(), 2);
}

#[test]
fn a_number_is_queued_with_the_country_code_that_the_region_gives_it() {
    let mut batch = file("").batch();
    batch.default_region = Region::parse("GB");
    let csv =
        "to,body,channel\n07700 900001,07700 900001,\n+44 7700 900002,x,\n07700 900001,x,push\n";
    let json_lines = "{\"body\":\"07700 900001\",\"to\":\"07700 \\u0039\\u00300001\"}\n\
                      {\"to\":\"+44 7700 900002\",\"body\":\"x\"}\n\
                      {\"channel\":\"push\",\"to\":\"07700 900001\",\"body\":\"x\"}\n";
    for text in [csv, json_lines] {
        let messages = messages_of(text, &batch);
        let recipients: Vec<_> = messages
            .iter()
            .map(|it| it["to"].as_str().unwrap())
            .collect();
        let expected = ["+447700900001", "+447700900002", "07700 900001"];
        assert_eq!(recipients, expected, "{text}");
        assert_eq!(messages[0]["body"], "07700 900001");
    }
}

#[test]
fn what_cannot_be_opened_is_named() {
    let open = |path: &std::path::Path| BatchFile::open(path, None).unwrap_err().to_string();
    let folder = tempfile::tempdir().unwrap();
    assert!(
        open(folder.path()).ends_with("is a directory; expected a file of CSV or JSON lines, or -")
    );
    let missing = open(&folder.path().join("missing.csv"));
    assert!(missing.contains("missing.csv: No such file"), "{missing}");
}
