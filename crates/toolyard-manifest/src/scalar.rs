//! Resolves scalars by the core schema of YAML 1.2.
//!
//! Unlike in YAML 1.1, `yes`, `no`, `on` and `off` are strings, and `010` is ten.

use saphyr_parser::ScalarStyle;

use crate::tree::NodeContent;

/// Resolves a scalar. Quotes and blocks are always strings.
pub(crate) fn resolve_scalar(text: &str, style: ScalarStyle) -> NodeContent {
    match style {
        ScalarStyle::Plain => plain(text),
        _ => NodeContent::Text(text.to_owned()),
    }
}

fn plain(text: &str) -> NodeContent {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => NodeContent::Null,
        "true" | "True" | "TRUE" => NodeContent::Bool(true),
        "false" | "False" | "FALSE" => NodeContent::Bool(false),
        number if is_integer(number) => integer(number).map_or_else(|| float(number), NodeContent::Integer),
        number if is_float(number) => float(number),
        text => NodeContent::Text(text.to_owned()),
    }
}

fn is_integer(text: &str) -> bool {
    if let Some(octal) = text.strip_prefix("0o") {
        return !octal.is_empty() && octal.bytes().all(|b| matches!(b, b'0'..=b'7'));
    }
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        return !hexadecimal.is_empty() && hexadecimal.bytes().all(|b| b.is_ascii_hexdigit());
    }
    is_digits(unsigned(text))
}

fn integer(text: &str) -> Option<i64> {
    let radix = |digits, radix| i64::from_str_radix(digits, radix).ok();
    match text.get(..2) {
        Some("0o") => radix(&text[2..], 8),
        Some("0x") => radix(&text[2..], 16),
        _ => text.parse().ok(),
    }
}

/// Parses a float. Infinities, and integers beyond 64 bits that are not decimal, become NaN.
fn float(text: &str) -> NodeContent {
    NodeContent::Float(text.parse().ok().filter(|number: &f64| number.is_finite()).unwrap_or(f64::NAN))
}

/// Matches `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`, infinity, or NaN.
fn is_float(text: &str) -> bool {
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let text = unsigned(text);
    if matches!(text, ".inf" | ".Inf" | ".INF") {
        return true;
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(unsigned(exponent))),
        None => (text, None),
    };
    exponent.is_none_or(is_digits) && is_mantissa(mantissa)
}

fn is_mantissa(text: &str) -> bool {
    match text.split_once('.') {
        Some(("", fraction)) => is_digits(fraction),
        Some((whole, fraction)) => is_digits(whole) && (fraction.is_empty() || is_digits(fraction)),
        None => is_digits(text),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(texts: &[&str], expected: &str) {
        for text in texts {
            assert_eq!(format!("{:?}", plain(text)), expected.replace('@', text), "{text}");
        }
    }

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        check(&["", "~", "null", "NULL"], "Null");
        check(&["true", "TRUE"], "Bool(true)");
        check(&["false", "False"], "Bool(false)");
        check(&["12", "+12", "0o14", "0xc", "0xC", "0012"], "Integer(12)");
        check(&["-9223372036854775808"], "Integer(@)");
        check(&["1.5", "+1.5", "1.50", "15e-1"], "Float(1.5)");
        check(&[".5", "0.5", "5E-1"], "Float(0.5)");
        check(&["5."], "Float(5.0)");
        check(&["9223372036854775808"], "Float(9.223372036854776e18)");
        check(&[".inf", "-.Inf", ".nan", "0xffffffffffffffffff", "1e999"], "Float(NaN)");
        let texts =
            ["yes", "on", "nULL", "0x", "0o8", "1_000", "1.2.3", "1e", ".", "-", "e1", "30s", "+.nan"];
        check(&texts, "Text(\"@\")");
    }
}
