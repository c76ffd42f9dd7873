//! The canonical JSON of RFC 8785, and the forms of a card without default values.

use std::fmt::Write;

use serde_json::{Map, Value};

/// Returns the canonical JSON of a value.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => match number.as_f64() {
            Some(float) => write_number(text, float),
            None => text.push_str("null"),
        },
        Value::String(string) => write_string(text, string),
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_value(text, item);
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            text.push('{');
            for (at, (name, member)) in members.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_string(text, name);
                text.push(':');
                write_value(text, member);
            }
            text.push('}');
        }
    }
}

/// Writes a number as JavaScript does.
fn write_number(text: &mut String, number: f64) {
    if number == 0.0 {
        return text.push('0');
    }
    // Shortest digits that are read as the same number, such as `-1.25e-7`.
    let shortest = format!("{number:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |mantissa| ("-", mantissa));
    let digits = mantissa.replace('.', "");
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // Number of digits before the decimal point.
    let point = exponent.parse::<i32>().unwrap_or_default() + 1;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or_default());
    let split = |at: i32| digits.split_at(usize::try_from(at).unwrap_or_default());
    text.push_str(sign);
    match point {
        point if (count..=21).contains(&point) => text.push_str(&(digits.clone() + &zeros(point - count))),
        1..=21 => {
            let (whole, fraction) = split(point);
            text.push_str(&format!("{whole}.{fraction}"));
        }
        -5..=0 => text.push_str(&format!("0.{}{digits}", zeros(-point))),
        _ => {
            let (first, rest) = split(1);
            let point_sign = if rest.is_empty() { "" } else { "." };
            let exponent_sign = if point > 0 { "+" } else { "-" };
            text.push_str(&format!("{first}{point_sign}{rest}e{exponent_sign}{}", (point - 1).abs()));
        }
    }
}

fn write_string(text: &mut String, string: &str) {
    text.push('"');
    for letter in string.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\u{c}' => text.push_str("\\f"),
            '\r' => text.push_str("\\r"),
            letter if letter < ' ' => {
                let _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            letter => text.push(letter),
        }
    }
    text.push('"');
}

/// Members of a card that are always present, by the place of their object. All other members that are empty have their
/// default value; a flag that is present was set.
const REQUIRED: [(&str, &[&str]); 4] = [
    (
        "",
        &[
            "name",
            "description",
            "supportedInterfaces",
            "version",
            "capabilities",
            "defaultInputModes",
            "defaultOutputModes",
            "skills",
        ],
    ),
    ("supportedInterfaces", &["url", "protocolBinding", "protocolVersion"]),
    ("skills", &["id", "name", "description", "tags"]),
    ("provider", &["url", "organization"]),
];

/// Optional flags and objects, which are present if they were set.
const OPTIONAL: [&str; 3] = ["streaming", "pushNotifications", "extendedAgentCard"];

/// Returns a card without the members that have their default value, as the protocol prescribes.
#[must_use]
pub fn without_defaults(card: &Value) -> Value {
    cleaned(card, "")
}

fn cleaned(value: &Value, place: &str) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| cleaned(item, place)).collect(),
        Value::Object(members) => {
            let required = REQUIRED.iter().find(|(of, _)| *of == place).map_or(&[][..], |(_, names)| names);
            let is_kept = |name: &str, member: &Value| {
                required.contains(&name) || OPTIONAL.contains(&name) || !is_default(member)
            };
            let members = members.iter().filter(|(name, member)| is_kept(name, member));
            let members = members.map(|(name, member)| (name.clone(), cleaned(member, name)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        value => value.clone(),
    }
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(_) => false,
    }
}

/// Returns a value without empty texts, lists and objects at any place, as the Python SDK signs cards.
#[must_use]
pub fn without_empty(value: &Value) -> Value {
    filled(value).unwrap_or_else(|| Value::Object(Map::new()))
}

fn filled(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) => (!text.is_empty()).then(|| value.clone()),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().filter_map(filled).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(members) => {
            let members = members.iter().filter_map(|(name, member)| Some((name.clone(), filled(member)?)));
            let members: Map<_, _> = members.collect();
            (!members.is_empty()).then_some(Value::Object(members))
        }
        value => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The examples of RFC 8785.
    #[test]
    fn examples_of_the_rfc() {
        let value = serde_json::from_str(
            r#"{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
                "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
                "literals": [null, true, false]}"#,
        );
        let value: Value = value.expect("JSON");
        assert_eq!(
            canonical(&value),
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
        );
        let members =
            json!({"\u{20ac}": 1, "\r": 2, "\u{fb33}": 3, "1": 4, "\u{1f600}": 5, "\u{80}": 6, "ö": 7});
        let names = canonical(&members);
        assert_eq!(names, "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}");
    }

    #[test]
    fn numbers_are_those_of_javascript() {
        let check = |number: f64, expected: &str| assert_eq!(canonical(&json!(number)), expected);
        check(0.0, "0");
        check(-0.0, "0");
        check(1.0, "1");
        check(-1.5, "-1.5");
        check(1e21, "1e+21");
        check(1e20, "100000000000000000000");
        check(123456789012345680000.0, "123456789012345680000");
        check(1e-6, "0.000001");
        check(1.2e-7, "1.2e-7");
        check(9007199254740993.0, "9007199254740992");
        check(5e-324, "5e-324");
        check(1.7976931348623157e308, "1.7976931348623157e+308");
        assert_eq!(canonical(&json!(12)), "12");
    }

    /// The example of A2A 1.0.
    #[test]
    fn default_values_are_left_out() {
        let card = json!({
            "name": "Example Agent", "description": "",
            "capabilities": {"streaming": false, "pushNotifications": false, "extensions": []},
            "skills": [], "iconUrl": "", "securitySchemes": null,
        });
        let expected = r#"{"capabilities":{"pushNotifications":false,"streaming":false},"description":"","name":"Example Agent","skills":[]}"#;
        assert_eq!(canonical(&without_defaults(&card)), expected);
        let expected =
            r#"{"capabilities":{"pushNotifications":false,"streaming":false},"name":"Example Agent"}"#;
        assert_eq!(canonical(&without_empty(&card)), expected);
    }
}
