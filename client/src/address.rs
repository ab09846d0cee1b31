//! E-mail addresses in one spelling, so that whoever has opted out is recognised in any other.

use std::borrow::Cow;

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};
use thiserror::Error;
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

/// A text is not one bare e-mail address. It does not hold the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "expected one bare e-mail address, such as a@example.org, without a name, brackets, quotation \
     marks or invisible characters"
)]
pub struct AddressError;

/// The form in which an e-mail address is compared: in small letters and composed characters (NFC),
/// the domain in its ASCII form (`xn--…`) and without a dot at its end. Blanks around it are dropped.
///
/// The part before the `@` may hold letters of any script, and dots anywhere, because some networks
/// have given out such addresses. Quoted parts and addresses of machines in brackets are not read:
/// they spell an address in more than one way, and nobody is written to by them.
///
/// # Errors
/// [`AddressError`], for anything but one bare address.
pub fn normalise_address(text: &str) -> Result<Cow<'_, str>, AddressError> {
    let text = text.trim();
    let (local, domain) = text.split_once('@').ok_or(AddressError)?;
    if local.is_empty() || !local.chars().all(is_local) || domain.chars().any(is_invisible) {
        return Err(AddressError);
    }
    let ascii = ascii_domain(domain)?;
    if *ascii == *domain && is_plain(local) {
        return Ok(Cow::Borrowed(text));
    }
    Ok(Cow::Owned(format!("{}@{ascii}", one_spelling(local))))
}

/// Most addresses are in their one spelling already.
fn is_plain(local: &str) -> bool {
    local
        .bytes()
        .all(|b| b.is_ascii() && !b.is_ascii_uppercase())
}

/// Small letters of composed characters are not always composed themselves.
fn one_spelling(local: &str) -> String {
    let composed: String = local.nfc().collect();
    let small = composed.to_lowercase();
    if is_nfc(&small) {
        small
    } else {
        small.nfc().collect()
    }
}

fn ascii_domain(domain: &str) -> Result<Cow<'_, str>, AddressError> {
    // What stands for a dot or a letter in another script is only known once it is mapped: the
    // characters are checked afterwards.
    let ascii = Uts46::new()
        .to_ascii(
            domain.as_bytes(),
            AsciiDenyList::EMPTY,
            Hyphens::Allow,
            DnsLength::VerifyAllowRootDot,
        )
        .map_err(|_| AddressError)?;
    let is_domain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if !ascii.bytes().all(is_domain) {
        return Err(AddressError);
    }
    Ok(match ascii {
        Cow::Borrowed(ascii) => ascii.strip_suffix('.').unwrap_or(ascii).into(),
        Cow::Owned(mut ascii) => {
            if ascii.ends_with('.') {
                ascii.pop();
            }
            ascii.into()
        }
    })
}

/// Whether a character may stand before the `@` without quotation marks.
fn is_local(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphanumeric() || ".!#$%&'*+-/=?^_`{|}~".contains(c)
    } else {
        !c.is_whitespace() && !c.is_control() && !is_invisible(c)
    }
}

/// Whether a character shows nothing (Unicode's `Default_Ignorable_Code_Point`): with one of them
/// an address looks like another and is compared as one of its own.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_one_address_become_one() {
        for (spellings, one) in [
            (
                &["ann@example.org", " Ann@Example.ORG ", "ann@example.org."][..],
                "ann@example.org",
            ),
            (
                &[
                    "ann@exämple.org",
                    "ann@EXÄMPLE.org",
                    "ann@exa\u{308}mple.org",
                    "ann@xn--exmple-cua.org",
                    "ann@XN--exmple-cua.ORG",
                    "ann@exämple。org",
                ],
                "ann@xn--exmple-cua.org",
            ),
            (
                &[
                    "änn@example.org",
                    "ÄNN@example.org",
                    "a\u{308}nn@example.org",
                ],
                "änn@example.org",
            ),
            (&["Σας@example.org"], "σας@example.org"),
            (&["a..b.+c/d'e@x_y-z"], "a..b.+c/d'e@x_y-z"),
        ] {
            for text in spellings {
                assert_eq!(normalise_address(text).as_deref(), Ok(one), "{text}");
            }
        }
        let plain = normalise_address("ann@example.org").unwrap();
        assert!(matches!(plain, Cow::Borrowed(_)));
    }

    #[test]
    fn whatever_is_not_one_bare_address_is_refused() {
        for text in [
            "",
            "ann",
            "@example.org",
            "ann@",
            "ann@.",
            "ann@a@b",
            "ann lee@example.org",
            "Ann <ann@example.org>",
            "<ann@example.org>",
            "mailto:ann@example.org",
            "\"ann\"@example.org",
            "ann(x)@example.org",
            "a@x.org, ann@example.org",
            "a@x.org;ann",
            "ann\\@example.org",
            "ann@example.org\u{200b}",
            "ann\u{200b}@example.org",
            "ann\u{a0}@example.org",
            "ann\u{ad}@example.org",
            "ann@exam\u{ad}ple.org",
            "ann@exam ple.org",
            "ann@[192.0.2.1]",
            "ann@a..b",
            "ann@example.org..",
            "ann@xn--a.org",
            "ann@℀.org",
            "ann@a?b",
            "ann＠example.org",
            "+447700900123",
        ] {
            assert_eq!(normalise_address(text), Err(AddressError), "{text:?}");
        }
        let long = format!("ann@{}.org", "x".repeat(64));
        assert_eq!(normalise_address(&long), Err(AddressError));
    }

    proptest! {
        #[test]
        fn the_one_spelling_stays_as_it_is(local in "\\PC{1,8}", domain in "[a-zA-Zäß.-]{1,8}") {
            let address = format!("{local}@{domain}");
            if let Ok(one) = normalise_address(&address) {
                let again = normalise_address(&one);
                prop_assert_eq!(again.as_deref(), Ok(&*one));
            }
        }
    }
}
