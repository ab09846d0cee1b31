//! Which zones a recipient lives in, or may.

use std::slice;

use jiff::tz::TimeZone;

use crate::gates::phone_zones;

/// The zones that must all allow: the one that the job names (`own`), else those of the recipient's
/// number in E.164 form, else the account's default. Never empty.
///
/// What a job names is believed even where the number says otherwise: people move and keep their
/// numbers, and whoever stored the zone knew more than a prefix tells.
#[must_use]
pub fn zones_of_recipient<'a>(
    own: Option<&'a TimeZone>,
    number: Option<&str>,
    default: &'a TimeZone,
) -> &'a [TimeZone] {
    if let Some(own) = own {
        return slice::from_ref(own);
    }
    match number.map_or(&[][..], phone_zones::of) {
        [] => slice::from_ref(default),
        zones => zones,
    }
}
