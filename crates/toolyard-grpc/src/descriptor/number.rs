//! Numbers of JSON texts, exactly.

/// The reason why a text is not a number of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberFault {
    NotANumber,
    Fraction,
    OutOfRange,
}

/// Maximum number of digits of a 64-bit integer.
const MAX_DIGITS: usize = 20;

/// Parses a number of JSON's grammar that is an integer, such as `1`, `1.0` or `1e2`.
pub(super) fn integer(text: &str) -> Result<i128, NumberFault> {
    if let Some(number) = plain(text) {
        return Ok(number);
    }
    let number = Decimal::parse(text).ok_or(NumberFault::NotANumber)?;
    number.integer()
}

/// Parses the usual form of integers.
fn plain(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = (1..=MAX_DIGITS).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits.len() == 1 || !digits.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

/// A number of JSON's grammar in its parts.
struct Decimal<'t> {
    is_negative: bool,
    whole: &'t str,
    fraction: &'t str,
    /// Exponent, limited to a range in which every number of 64 bits is.
    exponent: i64,
}

impl<'t> Decimal<'t> {
    fn parse(text: &'t str) -> Option<Self> {
        let is_negative = text.starts_with('-');
        let (mantissa, exponent) = match text[usize::from(is_negative)..].split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (&text[usize::from(is_negative)..], None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let has_leading_zero = whole.len() > 1 && whole.starts_with('0');
        if !is_digits(whole) || has_leading_zero || !fraction.is_none_or(is_digits) {
            return None;
        }
        let exponent = match exponent {
            None => 0,
            Some(text) => {
                let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
                if !is_digits(digits) {
                    return None;
                }
                let size = digits.parse().unwrap_or(i64::MAX).min(i64::MAX / 4);
                if text.starts_with('-') { -size } else { size }
            }
        };
        Some(Self { is_negative, whole, fraction: fraction.unwrap_or_default(), exponent })
    }

    fn integer(&self) -> Result<i128, NumberFault> {
        let digits = [self.whole, self.fraction].concat();
        let digits = digits.trim_start_matches('0');
        let significant = digits.trim_end_matches('0');
        if significant.is_empty() {
            return Ok(0);
        }
        let dropped = (digits.len() - significant.len()) as i64;
        let exponent = self.exponent - self.fraction.len() as i64 + dropped;
        let zeros = usize::try_from(exponent).map_err(|_| NumberFault::Fraction)?;
        if significant.len().saturating_add(zeros) > MAX_DIGITS {
            return Err(NumberFault::OutOfRange);
        }
        let text = format!("{significant}{}", "0".repeat(zeros));
        let number: i128 = text.parse().map_err(|_| NumberFault::OutOfRange)?;
        Ok(if self.is_negative { -number } else { number })
    }
}

/// Returns true for a number of JSON's grammar.
pub(super) fn is_number(text: &str) -> bool {
    Decimal::parse(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_exact() {
        use NumberFault::{Fraction, NotANumber, OutOfRange};
        let check = |text: &str, expected| assert_eq!(integer(text), expected, "{text:?}");
        check("0", Ok(0));
        check("-0", Ok(0));
        check("-0.0e5", Ok(0));
        check("9007199254740993", Ok(9_007_199_254_740_993));
        check("9223372036854775808.0", Ok(9_223_372_036_854_775_808));
        check("-9223372036854775808", Ok(-9_223_372_036_854_775_808));
        check("1e2", Ok(100));
        check("1.5E+1", Ok(15));
        check("1200e-2", Ok(12));
        check("0.1e1", Ok(1));
        check("1e-1", Err(Fraction));
        check("1.5", Err(Fraction));
        check("1e20", Err(OutOfRange));
        check("1e999999999999999999999", Err(OutOfRange));
        check("1e-999999999999999999999", Err(Fraction));
        check("123456789012345678901", Err(OutOfRange));
        for text in
            ["", "-", "+1", " 1", "1 ", "01", "-01", ".5", "1.", "1e", "0x1", "1_0", "NaN", "inf", "١"]
        {
            check(text, Err(NotANumber));
        }
    }
}
