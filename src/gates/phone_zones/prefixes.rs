//! Prefixes of numbers, and the zones that belong to them.

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::tz::TimeZone;

/// The data file, read once: loading a zone is too dear to be done for each number.
pub(super) static PREFIXES: LazyLock<Prefixes> =
    LazyLock::new(|| Prefixes::parse(include_str!("zones.txt")));

type Zones = &'static [TimeZone];

/// From the digits of a prefix, its country calling code first, to the zones of its numbers.
pub(super) struct Prefixes {
    zones: HashMap<&'static str, Zones>,
    longest: usize,
}

impl Prefixes {
    /// The zones of the longest known prefix of these digits; none where none is known.
    pub(super) fn longest(&self, digits: &str) -> Zones {
        self.first_of(digits, (1..=self.longest).rev())
    }

    /// The zones of the shortest known prefix of these digits, which is their country calling code.
    pub(super) fn shortest(&self, digits: &str) -> Zones {
        self.first_of(digits, 1..=self.longest)
    }

    fn first_of(&self, digits: &str, lengths: impl Iterator<Item = usize>) -> Zones {
        let mut prefixes = lengths.filter_map(|length| digits.get(..length));
        let found = prefixes.find_map(|prefix| self.zones.get(prefix));
        found.copied().unwrap_or_default()
    }

    /// Reads the format that the head of the data file describes.
    fn parse(text: &'static str) -> Self {
        let mut all = HashMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (names, prefixes) = line.split_once(' ').expect("the data file is generated");
            let zones: Zones = load(names).leak();
            all.extend(prefixes.split(' ').map(|prefix| (prefix, zones)));
        }
        let longest = all.keys().map(|prefix| prefix.len()).max();
        Self {
            longest: longest.unwrap_or_default(),
            zones: all,
        }
    }
}

fn load(names: &str) -> Vec<TimeZone> {
    let load = |name| TimeZone::get(name).expect("the zone data have each zone of the data file");
    names.split(',').map(load).collect()
}
