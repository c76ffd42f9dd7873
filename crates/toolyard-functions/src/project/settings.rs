//! `function.json`, and the files of test cases.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use toolyard_core::Json;
use toolyard_core::access::Price;

use super::{Kind, TestCase, WrittenLimits};
use crate::code::Language;

/// What is said of a function.
pub const SETTINGS: &str = "function.json";

/// The folder of test cases.
pub const TESTS: &str = "tests";

/// `function.json`. What it does not say is as it is by default.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Settings {
    pub(super) id: Option<String>,
    pub(super) kind: Kind,
    #[serde(deserialize_with = "language")]
    pub(super) language: Option<Language>,
    pub(super) limits: WrittenLimits,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) network: bool,
    #[serde(with = "price")]
    pub(super) price: Price,
    pub(super) notes: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            id: None,
            kind: Kind::Mcp,
            language: None,
            limits: WrittenLimits::default(),
            environment: BTreeMap::new(),
            network: false,
            price: Price::default(),
            notes: String::new(),
        }
    }
}

fn language<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Language>, D::Error> {
    crate::record::word::deserialize(deserializer).map(Some)
}

/// A price, as a text or a number.
pub(super) mod price {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use toolyard_core::access::Price;

    pub(crate) fn serialize<S: Serializer>(price: &Price, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(price)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Price, D::Error> {
        let text = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        text.parse().map_err(de::Error::custom)
    }
}

/// A file of a test case.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTest {
    name: Option<String>,
    event: Box<RawValue>,
    expect: Option<Box<RawValue>>,
}

/// What is wrong with what was written, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSettings {
    /// The member, such as `limits.seconds`; empty for the whole.
    pub member: String,
    /// What is wrong, with the line and column.
    pub problem: String,
    /// The name that was probably meant.
    pub meant: Option<String>,
}

impl fmt::Display for BadSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.member.is_empty() {
            write!(f, "{}: ", self.member)?;
        }
        f.write_str(&self.problem)?;
        match &self.meant {
            Some(meant) => write!(f, "; is it `{meant}` that was meant?"),
            None => Ok(()),
        }
    }
}

impl Settings {
    pub(super) fn parse(text: &[u8]) -> Result<Self, BadSettings> {
        parse(text)
    }
}

/// Reads a test case, which is called like its file unless it says otherwise.
pub(super) fn test_case(name: &str, text: &[u8]) -> Result<TestCase, BadSettings> {
    let WrittenTest { name: own, event, expect } = parse(text)?;
    let json = |member: &str, raw: &RawValue| {
        let bad = |error: toolyard_core::JsonError| BadSettings {
            member: member.to_owned(),
            problem: error.to_string(),
            meant: None,
        };
        Json::parse(raw.get().to_owned()).map_err(bad)
    };
    let expect = expect.as_deref().map(|expect| json("expect", expect)).transpose()?;
    Ok(TestCase { name: own.unwrap_or_else(|| name.to_owned()), event: json("event", &event)?, expect })
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, BadSettings> {
    // Otherwise the members could come as an array, in their order.
    if text.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
        let problem = "an object is expected".to_owned();
        return Err(BadSettings { member: String::new(), problem, meant: None });
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read = serde_path_to_error::deserialize(&mut reader);
    let bad = |error: serde_path_to_error::Error<serde_json::Error>| BadSettings {
        // What has no name, such as the whole, is a dot there, and what was not read to its end a question mark.
        member: error.path().to_string().trim_end_matches(['.', '?']).to_owned(),
        meant: meant(&error.inner().to_string()),
        problem: error.inner().to_string(),
    };
    let value = read.map_err(bad)?;
    reader.end().map_err(|error| BadSettings {
        member: String::new(),
        problem: error.to_string(),
        meant: None,
    })?;
    Ok(value)
}

/// Of what is said about a name that is not known, the known name that is like it.
fn meant(problem: &str) -> Option<String> {
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
    fn what_is_said_of_a_function() {
        let text = r#"{ "id": "weather", "kind": "function", "language": "lua", "limits": { "seconds": 5 },
            "environment": { "TOKEN": "${TOKEN}" }, "network": true, "price": 0.002, "notes": "first" }"#;
        let settings = Settings::parse(text.as_bytes()).unwrap();
        assert_eq!((settings.id.as_deref(), settings.kind), (Some("weather"), Kind::Function));
        assert_eq!((settings.language, settings.price), (Some(Language::Lua), Price(2000)));
        assert_eq!((settings.network, &*settings.notes, settings.environment.len()), (true, "first", 1));
        assert_eq!(Settings::parse(b"{}").unwrap().kind, Kind::Mcp);
        assert_eq!(Settings::parse(br#"{"price":"1.5"}"#).unwrap().price, Price(1_500_000));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Settings::parse(text.as_bytes()).err().unwrap().to_string(), expected, "{text}");
        };
        check("", "EOF while parsing a value at line 1 column 0");
        check("{", "EOF while parsing an object at line 1 column 1");
        check("{} x", "trailing characters at line 1 column 4");
        check("[]", "an object is expected");
        check(
            r#"{"kinds":"mcp"}"#,
            "kinds: unknown field `kinds`, expected one of `id`, `kind`, `language`, `limits`, `environment`, `network`, `price`, `notes` at line 1 column 8; is it `kind` that was meant?",
        );
        check(
            r#"{"Id":"a"}"#,
            "Id: unknown field `Id`, expected one of `id`, `kind`, `language`, `limits`, `environment`, `network`, `price`, `notes` at line 1 column 5; is it `id` that was meant?",
        );
        check(
            "{\n  \"limits\": { \"second\": 1 } }",
            "limits.second: unknown field `second`, expected one of `seconds`, `memoryMiB`, `outputKiB`, `concurrent` at line 2 column 22; is it `seconds` that was meant?",
        );
        check(
            r#"{"limits":{"memoryMib":1}}"#,
            "limits.memoryMib: unknown field `memoryMib`, expected one of `seconds`, `memoryMiB`, `outputKiB`, `concurrent` at line 1 column 22; is it `memoryMiB` that was meant?",
        );
        check(
            r#"{"kind":"mpc"}"#,
            "kind: unknown variant `mpc`, expected `mcp` or `function` at line 1 column 13",
        );
        check(
            r#"{"language":"cobol"}"#,
            r#"language: "cobol" is no language: python, javascript or lua at line 1 column 20"#,
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
