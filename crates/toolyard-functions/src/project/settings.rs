//! `function.json` and the files of test cases.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use toolyard_core::Json;
use toolyard_core::access::CallPrice;

use super::{FunctionKind, StoredLimits, TestCase};
use crate::code::SourceLanguage;

/// Settings file of a function.
pub const SETTINGS_FILE: &str = "function.json";

/// Folder of test cases.
pub const TESTS_FOLDER: &str = "tests";

/// `function.json`. Missing members have their default.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct FunctionSettings {
    pub(super) id: Option<String>,
    pub(super) kind: FunctionKind,
    #[serde(deserialize_with = "language")]
    pub(super) language: Option<SourceLanguage>,
    pub(super) limits: StoredLimits,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) network: bool,
    #[serde(with = "price")]
    pub(super) price: CallPrice,
    pub(super) notes: String,
}

impl Default for FunctionSettings {
    fn default() -> Self {
        Self {
            id: None,
            kind: FunctionKind::Mcp,
            language: None,
            limits: StoredLimits::default(),
            environment: BTreeMap::new(),
            network: false,
            price: CallPrice::default(),
            notes: String::new(),
        }
    }
}

fn language<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SourceLanguage>, D::Error> {
    crate::record::language_name::deserialize(deserializer).map(Some)
}

/// Serialization of a price as a string; also reads a number.
pub(super) mod price {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use toolyard_core::access::CallPrice;

    pub(crate) fn serialize<S: Serializer>(price: &CallPrice, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(price)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CallPrice, D::Error> {
        let text = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        text.parse().map_err(de::Error::custom)
    }
}

/// File of a test case.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestCaseFile {
    name: Option<String>,
    event: Box<RawValue>,
    expect: Option<Box<RawValue>>,
}

/// Fault of a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSettings {
    /// Member, such as `limits.seconds`; empty for the whole file.
    pub member: String,
    /// Fault, with line and column.
    pub problem: String,
    /// Similar name that exists.
    pub suggestion: Option<String>,
}

impl fmt::Display for InvalidSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.member.is_empty() {
            write!(f, "{}: ", self.member)?;
        }
        f.write_str(&self.problem)?;
        match &self.suggestion {
            Some(meant) => write!(f, "; did you mean `{meant}`?"),
            None => Ok(()),
        }
    }
}

impl FunctionSettings {
    pub(super) fn parse(text: &[u8]) -> Result<Self, InvalidSettings> {
        parse(text)
    }
}

/// Parses a test case. Its default name is that of the file.
pub(super) fn test_case(name: &str, text: &[u8]) -> Result<TestCase, InvalidSettings> {
    let TestCaseFile { name: own, event, expect } = parse(text)?;
    let json = |member: &str, raw: &RawValue| {
        let bad = |error: toolyard_core::JsonError| InvalidSettings {
            member: member.to_owned(),
            problem: error.to_string(),
            suggestion: None,
        };
        Json::parse(raw.get().to_owned()).map_err(bad)
    };
    let expect = expect.as_deref().map(|expect| json("expect", expect)).transpose()?;
    Ok(TestCase { name: own.unwrap_or_else(|| name.to_owned()), event: json("event", &event)?, expect })
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, InvalidSettings> {
    // serde would also accept the members as an array.
    if text.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
        let problem = "expected an object".to_owned();
        return Err(InvalidSettings { member: String::new(), problem, suggestion: None });
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read = serde_path_to_error::deserialize(&mut reader);
    let bad = |error: serde_path_to_error::Error<serde_json::Error>| InvalidSettings {
        // The path of the whole file is `.`, and that of an incomplete one ends with `?`.
        member: error.path().to_string().trim_end_matches(['.', '?']).to_owned(),
        suggestion: similar_name(&error.inner().to_string()),
        problem: error.inner().to_string(),
    };
    let value = read.map_err(bad)?;
    reader.end().map_err(|error| InvalidSettings {
        member: String::new(),
        problem: error.to_string(),
        suggestion: None,
    })?;
    Ok(value)
}

/// Returns the known name that is most similar to an unknown one, from the error message.
fn similar_name(problem: &str) -> Option<String> {
    let mut names = problem.strip_prefix("unknown ")?.split('`').skip(1).step_by(2);
    let wrong = names.next()?;
    let likeness = |name: &str| strsim::jaro_winkler(&wrong.to_lowercase(), &name.to_lowercase());
    let best = names.max_by(|one, other| likeness(one).total_cmp(&likeness(other)))?;
    (likeness(best) > 0.8).then(|| best.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed() {
        let text = r#"{ "id": "weather", "kind": "function", "language": "lua", "limits": { "seconds": 5 },
            "environment": { "TOKEN": "${TOKEN}" }, "network": true, "price": 0.002, "notes": "first" }"#;
        let settings = FunctionSettings::parse(text.as_bytes()).unwrap();
        assert_eq!((settings.id.as_deref(), settings.kind), (Some("weather"), FunctionKind::Function));
        assert_eq!((settings.language, settings.price), (Some(SourceLanguage::Lua), CallPrice(2000)));
        assert_eq!((settings.network, &*settings.notes, settings.environment.len()), (true, "first", 1));
        assert_eq!(FunctionSettings::parse(b"{}").unwrap().kind, FunctionKind::Mcp);
        assert_eq!(FunctionSettings::parse(br#"{"price":"1.5"}"#).unwrap().price, CallPrice(1_500_000));
    }

    #[test]
    fn invalid_settings_are_reported_with_their_position() {
        let check = |text: &str, expected: &str| {
            assert_eq!(
                FunctionSettings::parse(text.as_bytes()).err().unwrap().to_string(),
                expected,
                "{text}"
            );
        };
        check("", "EOF while parsing a value at line 1 column 0");
        check("{", "EOF while parsing an object at line 1 column 1");
        check("{} x", "trailing characters at line 1 column 4");
        check("[]", "expected an object");
        check(
            r#"{"kinds":"mcp"}"#,
            "kinds: unknown field `kinds`, expected one of `id`, `kind`, `language`, `limits`, `environment`, `network`, `price`, `notes` at line 1 column 8; did you mean `kind`?",
        );
        check(
            r#"{"Id":"a"}"#,
            "Id: unknown field `Id`, expected one of `id`, `kind`, `language`, `limits`, `environment`, `network`, `price`, `notes` at line 1 column 5; did you mean `id`?",
        );
        check(
            "{\n  \"limits\": { \"second\": 1 } }",
            "limits.second: unknown field `second`, expected one of `seconds`, `memoryMiB`, `outputKiB`, `concurrent` at line 2 column 22; did you mean `seconds`?",
        );
        check(
            r#"{"limits":{"memoryMib":1}}"#,
            "limits.memoryMib: unknown field `memoryMib`, expected one of `seconds`, `memoryMiB`, `outputKiB`, `concurrent` at line 1 column 22; did you mean `memoryMiB`?",
        );
        check(
            r#"{"kind":"mpc"}"#,
            "kind: unknown variant `mpc`, expected `mcp` or `function` at line 1 column 13",
        );
        check(
            r#"{"language":"cobol"}"#,
            r#"language: unknown language "cobol": expected python, javascript or lua at line 1 column 20"#,
        );
        check(
            r#"{"limits":{"seconds":-1}}"#,
            "limits.seconds: invalid value: integer `-1`, expected u64 at line 1 column 23",
        );
        check(
            r#"{"price":-1}"#,
            "price: a price is a number that is not negative, with at most 6 decimals at line 1 column 12",
        );
        check(
            r#"{"price":"free"}"#,
            "price: a price is a number that is not negative, with at most 6 decimals at line 1 column 16",
        );
        check(
            r#"{"environment":{"A":1}}"#,
            "environment.A: invalid type: integer `1`, expected a string at line 1 column 21",
        );
        check(r#"{"id":"a","id":"b"}"#, "duplicate field `id` at line 1 column 14");
    }
}
