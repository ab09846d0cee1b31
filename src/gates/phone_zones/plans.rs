//! The numbering plans of all countries: which numbers are valid, and what tells where one is.

use std::sync::LazyLock;

/// The data file, read once.
pub(super) static PLANS: LazyLock<Plans> =
    LazyLock::new(|| Plans::parse(include_str!("plans.txt")));

/// What of a valid number tells where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Located {
    /// Nothing but its country calling code.
    ByCountry,
    /// As much of its beginning as is known.
    ByPrefix,
}

/// An automaton that is fed the digits of a number, its country calling code first.
pub(super) struct Plans(Vec<State>);

struct State {
    /// What a number is that ends here, if it is valid.
    located: Option<Located>,
    /// By digit, where a longer number goes on.
    next: [Option<u16>; 10],
}

impl Plans {
    /// What of the number tells where it is; `None` where it is not valid.
    pub(super) fn located(&self, digits: &str) -> Option<Located> {
        let start = self.0.last()?;
        let mut digits = digits.bytes();
        let end = digits.try_fold(start, |state, digit| self.after(state, digit))?;
        end.located
    }

    fn after(&self, state: &State, digit: u8) -> Option<&State> {
        let digit = usize::from(digit.checked_sub(b'0')?);
        let next = (*state.next.get(digit)?)?;
        self.0.get(usize::from(next))
    }

    /// Reads the format that the head of the data file describes.
    fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(lines.map(State::parse).collect())
    }
}

impl State {
    fn parse(line: &str) -> Self {
        let mut words = line.split(' ');
        let located = match words.next() {
            Some("p") => Some(Located::ByPrefix),
            Some("c") => Some(Located::ByCountry),
            _ => None,
        };
        let mut next = [None; 10];
        for (digits, state) in words.filter_map(|word| word.split_once(':')) {
            let state = state.parse().expect("the data file is generated");
            digits
                .bytes()
                .for_each(|digit| next[usize::from(digit - b'0')] = Some(state));
        }
        Self { located, next }
    }
}
