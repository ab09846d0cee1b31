//! What is found in a file, and what of it is played.

use std::io::Write as _;

use super::*;
use crate::domain::{Budget, Reserve};

fn ceilings(budget: u64) -> Ceilings {
    let reserve = Reserve::percent(20).unwrap();
    Ceilings::of(Budget::per_second(budget).unwrap(), reserve)
}

fn contents(rows: &str, budget: u64) -> Contents {
    contents_in(None, rows, budget)
}

fn contents_in(region: Option<&str>, rows: &str, budget: u64) -> Contents {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(rows.as_bytes()).unwrap();
    let account = AccountId::parse("demo").unwrap();
    let room = Room {
        ceilings: ceilings(budget),
        seconds: 2,
    };
    let sender = Sender {
        account: &account,
        channel: Channel::Sms,
        region: region.and_then(Region::parse),
    };
    read(file.path(), sender, room).unwrap()
}

#[test]
fn numbers_without_a_country_code_need_a_region() {
    let rows = "to,body\n07700 900123,x\n";
    let opening = |contents: &Contents| {
        let account = AccountId::parse("demo").unwrap();
        contents.opening(&account, ceilings(5), 2)
    };
    let without = contents(rows, 5);
    assert_eq!((without.jobs, without.rejected), ([0, 0], 1));
    assert!(opening(&without).contains("--region GB"));
    let with = contents_in(Some("GB"), rows, 5);
    assert_eq!((with.jobs, with.rejected), ([0, 1], 0));
    assert!(!opening(&with).contains("--region"));
    // The workers of the demonstration have no default region.
    let offered = String::from_utf8(with.offers[0].payload.to_vec()).unwrap();
    assert!(offered.contains(r#""to":"+447700900123""#));
    let elsewhere = contents_in(Some("US"), rows, 5);
    assert_eq!(elsewhere.rejected, 1);
    assert!(!opening(&elsewhere).contains("--region"));
}

/// Twelve campaign rows, every fourth of them urgent, and two that are none.
fn rows() -> String {
    let urgent = |number| if number % 4 == 0 { "high" } else { "normal" };
    let row = |number| {
        let urgent = urgent(number);
        format!(r#"{{"to":"+4477009001{number:02}","body":"x","priority":"{urgent}"}}"#)
    };
    let good: Vec<_> = (0..12).map(row).collect();
    format!(
        "{}\n{}\n{{\"to\":\"S3NTINEL\",\"body\":\"x\"}}\n",
        good.join("\n"),
        good[1]
    )
}

#[test]
fn every_row_is_counted_and_as_many_are_played_as_leave_in_time() {
    let contents = contents(&rows(), 5);
    assert_eq!((contents.rows, contents.jobs), (14, [3, 9]));
    assert_eq!((contents.duplicates, contents.rejected), (1, 1));
    // Two seconds of 5, of which the campaign gets 4.
    assert_eq!((contents.played, contents.remaining()), ([3, 7], 2));
    assert_eq!(contents.seconds(ceilings(5)), Some(3));
    let told = contents.opening(&AccountId::parse("demo").unwrap(), ceilings(5), 2);
    assert!(
        told.contains("\n  line 14: to: ") && !told.contains("S3NTINEL"),
        "{told}"
    );
}

#[test]
fn what_can_never_leave_is_not_offered() {
    let contents = contents(&rows(), 1);
    assert_eq!(contents.played, [2, 0]);
    assert_eq!(contents.seconds(ceilings(1)), None);
}
