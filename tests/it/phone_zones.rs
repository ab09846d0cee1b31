//! The zones of telephone numbers, held against the Python package that they are taken from.

use std::path::Path;
use std::process::Command;

use jiff::tz::TimeZone;
use lanekeeper::gates::phone_zones;

use crate::support::programs::installed;

const NUMBERS: usize = 11_000;

/// What the package calls a zone that it does not know.
const UNKNOWN: &str = "Etc/Unknown";

#[test]
fn zones_are_those_of_the_python_package() {
    let printed = python("tests/it/phone_zones/numbers.py", &[]);
    let differences: Vec<String> = printed.lines().filter_map(difference).collect();
    assert_eq!(printed.lines().count(), NUMBERS);
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn the_committed_data_are_those_of_the_python_package() {
    let directory = root().join("src/gates/phone_zones");
    python("scripts/phone_zones.py", &["check", path_text(&directory)]);
}

/// What is wrong with the zones of the line's number, if anything.
fn difference(line: &str) -> Option<String> {
    let (number, expected) = line.split_once(' ').unwrap();
    let name = |zone: &'static TimeZone| zone.iana_name().unwrap();
    let names: Vec<&str> = phone_zones::of(number).iter().map(name).collect();
    let found = if names.is_empty() {
        UNKNOWN.to_owned()
    } else {
        names.join(",")
    };
    (found != expected).then(|| format!("{line}, not {found}"))
}

/// What a program that uses the package prints.
fn python(program: &str, arguments: &[&str]) -> String {
    let library = installed("phonenumbers", "scripts/phone_zones.sh");
    let output = Command::new("python3")
        .arg(root().join(program))
        .args(arguments)
        .env("PYTHONPATH", &library)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("python3 is there: scripts/phone_zones.sh installs it");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("the path of the sources is UTF-8")
}
