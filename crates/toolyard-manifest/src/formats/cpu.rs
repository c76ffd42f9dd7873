//! Shares of processors, in the notation of Kubernetes.

use super::FormatError;

/// The format of a share, for messages.
pub(crate) const CPU: &str = "a number of processors, or of thousandths with an `m`: 2, \"0.5\", 500m";

const INVALID: FormatError = FormatError::new("a share of processors", CPU);

/// The minimum for any program.
const MIN_MILLIS: u32 = 10;
/// More than any machine has.
const MAX_MILLIS: u32 = 1_000_000;

/// Parses a share into thousandths of a processor.
pub(crate) fn cpu(text: &str) -> Result<u32, FormatError> {
    let millis = match text.strip_suffix('m') {
        Some(millis) => number(millis).ok_or(INVALID)?,
        None => whole_and_decimals(text).ok_or(INVALID)?,
    };
    (MIN_MILLIS..=MAX_MILLIS).contains(&millis).then_some(millis).ok_or(INVALID.hint("from 10m to 1000"))
}

fn whole_and_decimals(text: &str) -> Option<u32> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    if decimals.len() > 3 {
        return None;
    }
    let (whole, thousandths) = (number(whole)?, number(&format!("{decimals:0<3}"))?);
    number(decimals)?;
    whole.checked_mul(1000)?.checked_add(thousandths)
}

/// Parses digits, without a sign.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_processors_or_thousandths() {
        let check = |text: &str, expected: Option<u32>| assert_eq!(cpu(text).ok(), expected, "{text:?}");
        check("500m", Some(500));
        check("2", Some(2000));
        check("0.5", Some(500));
        check("1.25", Some(1250));
        check("0.125", Some(125));
        check("10m", Some(10));
        check("9m", None);
        check("0", None);
        check("0.0001", None);
        check("1001", None);
        for text in ["", "m", ".", "1.", ".5", "+1", "-1", "1e3", "500 m", "500M", "4294967296"] {
            check(text, None);
        }
    }
}
