//! Prefixes and their zones.

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::tz::TimeZone;

/// The data file, read once: loading a zone is too dear to be done for each number.
pub(super) static TABLE: LazyLock<Table> =
    LazyLock::new(|| Table::parse(include_str!("zones.txt")));

/// From the digits of a prefix to the zones of the numbers that begin with it.
pub(super) struct Table {
    zones_of: HashMap<&'static str, &'static [TimeZone]>,
    longest: usize,
}

impl Table {
    /// The zones of the longest known prefix of these digits; none where no prefix is known.
    pub(super) fn of_longest_prefix(&self, digits: &str) -> &'static [TimeZone] {
        let mut prefixes = (1..=self.longest).rev().filter_map(|len| digits.get(..len));
        prefixes
            .find_map(|prefix| self.zones_of.get(prefix))
            .unwrap_or(&&[][..])
    }

    /// Reads the format that is described in the head of the data file.
    fn parse(text: &'static str) -> Self {
        let mut zones_of = HashMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (names, prefixes) = line.split_once(' ').expect("the data file is generated");
            let zones = &*load(names).leak();
            zones_of.extend(prefixes.split(' ').map(|prefix| (prefix, zones)));
        }
        let longest = zones_of.keys().map(|prefix| prefix.len()).max();
        Self {
            longest: longest.unwrap_or(0),
            zones_of,
        }
    }
}

fn load(names: &str) -> Vec<TimeZone> {
    let zone =
        |name| TimeZone::get(name).expect("a test holds that each zone of the file is known");
    names.split(',').map(zone).collect()
}
