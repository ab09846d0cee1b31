//! `[inbound]`: how replies are read.

use std::sync::Arc;

use super::SettingsError;
use super::reader::Section;
use crate::domain::Keywords;

/// How replies are read.
#[derive(Debug, Clone)]
pub struct Inbound {
    /// The words by which recipients opt out and in.
    pub keywords: Arc<Keywords>,
}

impl Inbound {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, SettingsError> {
        let expected = "words, none of which means something else in a reply";
        let usable = |word: &str| {
            let alone = Keywords::default().with_opt_out(word);
            alone.map(|_| word.to_owned())
        };
        let words = section.list("opt_out_words", expected, usable)?;
        let keywords = words.iter().fold(Keywords::default(), |keywords, word| {
            // Each of them is usable, and none stands in another's way.
            keywords.clone().with_opt_out(word).unwrap_or(keywords)
        });
        Ok(Self {
            keywords: Arc::new(keywords),
        })
    }
}
