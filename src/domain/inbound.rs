//! What a recipient's reply asks for, by the words that are agreed on for it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Whoever writes one of these, and nothing else, wants no more messages. The English words are those
/// of CTIA's handbook and of the American rules on consent (47 CFR 64.1200(a)(10)); of the others
/// some are what a country prescribes (RET, TD, הסר), the rest what people write.
///
/// They are compared as [`words`] gives them: capitals, accents, widths, blanks and hyphens make no
/// difference.
const OPT_OUT: [&str; 66] = [
    // English
    "stop",
    "stopall",
    "unsubscribe",
    "cancel",
    "end",
    "quit",
    "optout",
    "revoke",
    // Dutch, German
    "afmelden",
    "uitschrijven",
    "stoppen",
    "stopp",
    "abmelden",
    "abbestellen",
    // Danish, Norwegian, Swedish, Finnish
    "afmeld",
    "avmeld",
    "avsluta",
    "avregistrera",
    "lopeta",
    // French
    "arret",
    "arreter",
    "desabonner",
    "desabonnement",
    "desinscrire",
    "desinscription",
    // Italian
    "basta",
    "ferma",
    "disiscrivi",
    "disiscrivimi",
    "cancellami",
    "annulla",
    // Portuguese, Spanish
    "parar",
    "pare",
    "sair",
    "cancelar",
    "descadastrar",
    "alto",
    "baja",
    "detener",
    "salir",
    // Polish, Czech
    "rezygnuje",
    "wypisz",
    "odhlasit",
    // Turkish, Indonesian, Vietnamese
    "ret",
    "iptal",
    "dur",
    "berhenti",
    "tuchoi",
    // Russian, Ukrainian, Bulgarian, Greek
    "стоп",
    "отписаться",
    "отписка",
    "відписатися",
    "στοπ",
    // Arabic, Hebrew, Hindi, Thai
    "ايقاف",
    "إيقاف",
    "الغاء",
    "הסר",
    "रोकें",
    "ยกเลิก",
    // Chinese, Japanese, Korean
    "td",
    "退订",
    "退訂",
    "停止",
    "配信停止",
    "수신거부",
    "중지",
];

/// Whoever writes one of these, and nothing else, wants messages again. None in other languages:
/// what was not agreed on is no consent.
const OPT_IN: [&str; 4] = ["start", "unstop", "yes", "optin"];

/// Whoever writes one of these asks who is writing and how to stop it.
const HELP: [&str; 8] = [
    "help", "info", "aide", "ajuda", "ayuda", "aiuto", "hilfe", "hulp",
];

/// Politeness around such a word changes nothing.
const COURTESY: [&str; 13] = [
    "please", "pls", "plz", "thank", "thanks", "thx", "you", "bitte", "danke", "merci", "gracias",
    "obrigado", "grazie",
];

/// Words that say something about stopping in whatever sentence they stand. The rest of [`OPT_OUT`]
/// means that only alone: "see you at the end".
const TELLING: [&str; 8] = [
    "stop",
    "stopp",
    "stopall",
    "unsubscribe",
    "optout",
    "revoke",
    "стоп",
    "στοπ",
];

/// What a reply asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// No more messages, by this word.
    OptOut(Arc<str>),
    /// Messages again, by this word.
    OptIn(Arc<str>),
    /// To be told who writes.
    Help,
    /// It speaks of stopping, but is more than a word: a person should read it.
    Unclear,
    /// Nothing that is known here.
    Other,
}

/// The words that replies are read by.
#[derive(Debug, Clone)]
pub struct Keywords {
    known: HashMap<String, Wish>,
    telling: HashSet<String>,
}

impl Default for Keywords {
    fn default() -> Self {
        let named = |words: &[&'static str], wish: fn(Arc<str>) -> Wish| {
            let words = words.iter();
            words
                .map(|word| (bare(word), wish(Arc::from(*word))))
                .collect()
        };
        let mut known: HashMap<String, Wish> = named(&OPT_OUT, Wish::OptOut);
        known.extend::<HashMap<_, _>>(named(&OPT_IN, Wish::OptIn));
        known.extend(HELP.iter().map(|word| (bare(word), Wish::Help)));
        Self {
            known,
            telling: TELLING.iter().map(|word| bare(word)).collect(),
        }
    }
}

impl Keywords {
    /// The same, and this word, which may be several with blanks between them, for opting out;
    /// `None` where it has no letters, or means something else.
    #[must_use]
    pub fn with_opt_out(mut self, word: &str) -> Option<Self> {
        let form = bare(word);
        let means = self.known.get(&form);
        let is_free = means.is_none_or(|wish| matches!(wish, Wish::OptOut(_)));
        if form.is_empty() || !is_free {
            return None;
        }
        self.known.insert(form, Wish::OptOut(Arc::from(word)));
        Some(self)
    }

    /// Reads a whole reply.
    #[must_use]
    pub fn wish(&self, reply: &str) -> Wish {
        let words = words(reply);
        let said = without_courtesy(&words);
        let wish = self.known.get(&said.concat());
        // What was not said clearly is no consent: "un stop" is nobody's word for starting again.
        let wish = wish.filter(|wish| !matches!(wish, Wish::OptIn(_)) || is_one_word(said));
        match wish {
            Some(wish) => wish.clone(),
            None if self.speaks_of_stopping(&words) => Wish::Unclear,
            None => Wish::Other,
        }
    }

    fn speaks_of_stopping(&self, words: &[String]) -> bool {
        words.iter().any(|word| self.telling.contains(word))
            || words.windows(2).any(|pair| pair == ["opt", "out"])
    }
}

/// The words of a text in small letters, without accents, in the width and form that most are
/// written in. What is repeated at once is there once: "stop stop".
fn words(text: &str) -> Vec<String> {
    let plain: String = text
        .nfkd()
        .filter(|c| !is_combining_mark(*c) && !is_joiner(*c))
        .flat_map(char::to_lowercase)
        .collect();
    let words = plain.split(|c: char| !c.is_alphanumeric());
    let mut words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    words.dedup();
    words
}

/// Whether it was written as one word, letter by letter, or as "opt in".
fn is_one_word(said: &[String]) -> bool {
    let is_letter = |word: &String| word.chars().count() == 1;
    said.len() == 1 || said.iter().all(is_letter) || said == ["opt", "in"]
}

/// A word that is known, in the form in which replies are compared with it.
fn bare(word: &str) -> String {
    words(word).concat()
}

/// Characters that are not seen: they must not part a word in two.
const fn is_joiner(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'
    )
}

fn without_courtesy(words: &[String]) -> &[String] {
    let is_courtesy = |word: &&String| COURTESY.contains(&word.as_str());
    let before = words.iter().take_while(is_courtesy).count();
    let rest = &words[before..];
    let after = rest.iter().rev().take_while(is_courtesy).count();
    &rest[..rest.len() - after]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wish(reply: &str) -> Wish {
        Keywords::default().wish(reply)
    }

    /// F5-27: each of these was missed by somebody.
    #[test]
    fn one_word_is_an_opt_out_however_it_is_written() {
        for reply in [
            "stop",
            "STOP",
            " Stop. ",
            "STOP!",
            "\"Stop\"",
            "ＳＴＯＰ",
            "stop\n",
            "S.T.O.P.",
            "OPT OUT",
            "opt-out",
            "Optout",
            "revoke",
            "STOP ALL",
            "stopall",
            "Unsubscribe.",
            "CANCEL",
            "End",
            "quit!!!",
            "Stop. Thank you",
            "Please stop",
            "stop please!",
            "stop stop STOP",
            "st\u{200b}op",
            "Arrêt",
            "ARRET",
            "Désabonner",
            "STOPP",
            "İPTAL",
            "Ret",
            "СТОП",
            "退订",
            "הסר",
            "停止",
            "수신거부",
            "إيقاف",
            "रोकें",
        ] {
            assert!(matches!(wish(reply), Wish::OptOut(_)), "{reply:?}");
        }
        assert_eq!(wish("Stop. Thank you"), Wish::OptOut("stop".into()));
    }

    #[test]
    fn a_sentence_about_stopping_is_for_a_person_to_read() {
        for reply in [
            "Please don't stop",
            "I will stop by at nine",
            "how do I opt out of this?",
            "stop sending me these",
            "STOP or I call my lawyer",
            "UN STOP",
        ] {
            assert_eq!(wish(reply), Wish::Unclear, "{reply:?}");
        }
    }

    #[test]
    fn words_that_mean_it_only_alone_mean_nothing_in_a_sentence() {
        for reply in [
            "",
            " ",
            "!",
            "thank you",
            "see you at the end",
            "cancel my Tuesday appointment",
            "nonstop",
            "stopwatch",
            "yes, at nine",
            "the quit button",
            "👍",
        ] {
            assert_eq!(wish(reply), Wish::Other, "{reply:?}");
        }
    }

    #[test]
    fn whoever_stopped_can_start_again() {
        for reply in ["START", "start", "Unstop", "YES", "yes please", "opt in"] {
            assert!(matches!(wish(reply), Wish::OptIn(_)), "{reply:?}");
        }
        for reply in ["HELP", "help!", "Info", "Hilfe bitte"] {
            assert_eq!(wish(reply), Wish::Help, "{reply:?}");
        }
    }

    #[test]
    fn words_can_be_added_but_none_that_means_something_else() {
        let more = Keywords::default().with_opt_out("Genug  Werbung").unwrap();
        let expected = Wish::OptOut("Genug  Werbung".into());
        assert_eq!(more.wish("genug WERBUNG, danke!"), expected);
        assert_eq!(more.wish("stop"), Wish::OptOut("stop".into()));
        assert!(Keywords::default().with_opt_out("stop").is_some());
        for wrong in ["", " ", "!?", "yes", "HELP"] {
            assert!(Keywords::default().with_opt_out(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn no_word_is_in_two_lists_or_without_letters() {
        let all = OPT_OUT.iter().chain(&OPT_IN).chain(&HELP);
        let forms: Vec<_> = all.map(|word| bare(word)).collect();
        assert!(forms.iter().all(|form| !form.is_empty()));
        // Two spellings of one Arabic word have one form.
        let distinct: HashSet<_> = forms.iter().collect();
        assert_eq!(distinct.len(), forms.len() - 1);
        assert!(COURTESY.iter().all(|word| !forms.contains(&bare(word))));
    }

    proptest! {
        #[test]
        fn punctuation_and_capitals_around_a_word_change_nothing(
            place in 0..OPT_OUT.len(), before in "[ .!?\"'(*\t\n-]{0,6}", after in "[ .!?\"')*\t\n-]{0,6}",
        ) {
            let reply = format!("{before}{}{after}", OPT_OUT[place].to_uppercase());
            prop_assert!(matches!(wish(&reply), Wish::OptOut(_)));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,64}") {
            let _ = wish(&text);
        }
    }
}
