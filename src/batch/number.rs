//! What spreadsheets do to telephone numbers.

use super::cells::trim;

/// The number that a cell was meant to hold: without the quotes by which spreadsheets are told that
/// it is a text (`="447700900123"`, `'447700900123`), and without the `.0` of a number that was
/// taken for a decimal. Nothing else is changed: whether it is a number that can be written to is
/// found where all jobs are read.
///
/// # Errors
/// When its digits were lost.
pub(super) fn as_meant(cell: &str) -> Result<&str, LostDigits> {
    let cell = trim(cell);
    let formula = cell
        .strip_prefix("=\"")
        .and_then(|cell| cell.strip_suffix('"'));
    let text = formula.or_else(|| cell.strip_prefix('\'')).unwrap_or(cell);
    let text = trim(text);
    if is_rounded(text) {
        return Err(LostDigits);
    }
    Ok(without_decimals(text))
}

/// The cell holds `4.47901E+11`, which stands for many numbers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LostDigits;

impl LostDigits {
    /// What is to be done.
    pub(super) const REASON: &str =
        "digits were lost by the spreadsheet: format the column as text and enter the number again";
}

fn is_rounded(text: &str) -> bool {
    let Some((mantissa, exponent)) = text.split_once(['E', 'e']) else {
        return false;
    };
    let is_decimal = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let digits = exponent.strip_prefix('+').unwrap_or("");
    let mantissa = mantissa.strip_prefix('+').unwrap_or(mantissa);
    is_digits(digits) && !mantissa.is_empty() && mantissa.chars().all(is_decimal)
}

fn without_decimals(text: &str) -> &str {
    match text.split_once('.') {
        Some((whole, decimals))
            if is_digits(whole.strip_prefix('+').unwrap_or(whole))
                && !decimals.is_empty()
                && decimals.bytes().all(|byte| byte == b'0') =>
        {
            whole
        }
        _ => text,
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_for_spreadsheets_are_unwrapped() {
        for cell in [
            "447700900123",
            "447700900123.0",
            "447700900123.00",
            "=\"447700900123\"",
            "'447700900123",
            "\u{a0}447700900123 ",
            "\u{202a}447700900123\u{202c}",
        ] {
            assert_eq!(as_meant(cell), Ok("447700900123"), "{cell}");
        }
    }

    #[test]
    fn rounded_numbers_are_lost() {
        for cell in [
            "4.47901E+11",
            "4,47901E+11",
            "4.479009e+11",
            "4E+11",
            "=\"4.4E+11\"",
        ] {
            assert_eq!(as_meant(cell), Err(LostDigits), "{cell}");
        }
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        for cell in [
            "+44.7700.900123",
            "447700900123.5",
            "Acme E+1",
            "E+",
            ".0",
            "=447",
        ] {
            assert_eq!(as_meant(cell), Ok(cell), "{cell}");
        }
    }
}
