//! The demonstration as it is run by hand, in a process of its own without any service.

use std::process::{Output, Stdio};

use serde_json::Value;
use tokio::process::Command;

use crate::support::busy;

/// The demonstration, with services that do not exist and a setting that is wrong.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanekeeper"));
    command
        .arg("demo")
        .args(arguments)
        .env("LANEKEEPER__AMQP__URL", "amqp://127.0.0.1:1")
        .env("LANEKEEPER__NO__SUCH", "setting")
        .stdin(Stdio::null());
    command
}

/// Runs it.
async fn demo(arguments: &[&str]) -> Output {
    let _busy = busy().await;
    command(arguments).output().await.unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn piped_it_is_plain_text_and_every_rule_holds() {
    let output = demo(&["--seconds", "3", "--reserve", "40"]).await;
    let (out, errors) = (text(output.stdout), text(output.stderr));
    assert_eq!((output.status.code(), &*errors), (Some(0), ""), "{out}");
    let lines: Vec<_> = out.lines().collect();
    assert!(!out.contains('\u{1b}'), "{out}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{out}");
    let rules = lines.iter().filter(|line| line.starts_with("ok  "));
    assert_eq!(rules.count(), 6, "{out}");
    let first = lines.iter().find(|line| line.starts_with("  1 ")).unwrap();
    let cells: Vec<u64> = first
        .split_whitespace()
        .filter_map(|cell| cell.parse().ok())
        .collect();
    // Second, offered and dispatched of either lane: the reserve leaves the campaign 60.
    assert!((200..=300).contains(&cells[1]), "{out}");
    assert_eq!(
        [cells[0], cells[2], cells[3], cells[4]],
        [1, 0, 60, 0],
        "{out}"
    );
}

#[tokio::test]
async fn as_json_the_lines_add_up() {
    let output = demo(&["--seconds", "3", "--workers", "3", "--json"]).await;
    let out = text(output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}");
    let lines: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (summary, seconds) = lines.split_last().unwrap();
    let numbers: Vec<_> = seconds
        .iter()
        .filter_map(|s| s["second"].as_u64())
        .collect();
    assert_eq!(numbers, (1..=seconds.len() as u64).collect::<Vec<_>>());
    for lane in ["transactional", "marketing"] {
        let sum =
            |what: &str| -> u64 { seconds.iter().filter_map(|s| s[what][lane].as_u64()).sum() };
        assert_eq!(summary["offered"][lane], sum("offered"));
        assert_eq!(summary["dispatched"][lane], sum("dispatched"));
        let ended = summary["dispatched"][lane].as_u64().unwrap();
        let waiting = summary["waiting"][lane].as_u64().unwrap();
        assert_eq!(summary["offered"][lane], ended + waiting);
    }
    assert_eq!(summary["offered"]["transactional"], 30);
    assert_eq!(summary["dispatched"]["transactional"], 30);
    assert_eq!(summary["dispatched_by_worker"].as_array().unwrap().len(), 3);
    let rules = summary["rules"].as_array().unwrap();
    assert!(rules.len() == 6 && rules.iter().all(|rule| rule["held"] == true));
}

#[tokio::test]
async fn when_nobody_reads_on_no_rule_is_called_broken() {
    let _busy = busy().await;
    let mut child = command(&["--seconds", "3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().await.unwrap();
    let errors = text(output.stderr);
    assert_eq!((output.status.code(), &*errors), (Some(141), ""));
}

#[tokio::test]
async fn figures_out_of_range_are_refused_by_name() {
    for (option, value, range) in [
        ("--seconds", "2", "3..=60"),
        ("--budget", "10001", "0..=10000"),
        ("--reserve", "101", "0..=100"),
        ("--workers", "0", "1..=16"),
    ] {
        let output = demo(&[option, value]).await;
        let errors = text(output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(
            errors.contains(option) && errors.contains(range),
            "{errors}"
        );
    }
}
