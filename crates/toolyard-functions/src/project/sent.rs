//! A project as it is sent to a gateway.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolyard_core::Json;

use super::{Kind, MOST_BYTES, MOST_TEST_BYTES, Project, TestCase, WrittenLimits};
use crate::code::Language;
use crate::record::word;

/// A project as JSON. What it does not say is as it is by default.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SentProject {
    #[serde(default)]
    kind: Kind,
    #[serde(with = "word")]
    language: Language,
    files: Vec<SentFile>,
    #[serde(default)]
    limits: WrittenLimits,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    network: bool,
    #[serde(default, with = "super::settings::price")]
    price: toolyard_core::access::Price,
    #[serde(default)]
    tests: Vec<SentTest>,
    #[serde(default)]
    notes: String,
}

/// A file: as text, or else in Base64.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SentFile {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SentTest {
    name: String,
    event: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expect: Option<Box<RawValue>>,
}

/// What was sent is no project.
#[derive(Debug, thiserror::Error)]
pub enum SentError {
    /// A file has neither a text nor bytes, or both, or bytes that are none.
    #[error("the file {0:?} is to have either a `text`, or its bytes in `base64`")]
    File(String),
    /// JSON in a test case is not as it has to be.
    #[error("the test case {name:?}: {problem}")]
    Test {
        /// The test case.
        name: String,
        /// What is wrong.
        problem: String,
    },
}

impl SentProject {
    /// The longest that one can be that is no longer than a project may be: Base64 and escapes take room.
    pub const MOST_BYTES: usize = (MOST_BYTES + MOST_TEST_BYTES) * 2;

    /// A project, to be sent.
    #[must_use]
    pub fn new(project: &Project) -> Self {
        let raw = |json: &Json| RawValue::from_string(json.as_text().to_owned()).unwrap_or_default();
        let test = |test: &TestCase| SentTest {
            name: test.name.clone(),
            event: raw(&test.event),
            expect: test.expect.as_ref().map(raw),
        };
        Self {
            kind: project.kind,
            language: project.language,
            files: project.files.iter().map(SentFile::new).collect(),
            limits: project.limits.into(),
            environment: project.environment.clone(),
            network: project.network,
            price: project.price,
            tests: project.tests.iter().map(test).collect(),
            notes: project.notes.clone(),
        }
    }

    /// The project that was sent.
    ///
    /// # Errors
    /// When a file or a test case is none. Whether it is within its bounds is asked when it is saved.
    pub fn into_project(self) -> Result<Project, SentError> {
        let files: Result<_, _> = self.files.into_iter().map(SentFile::into_file).collect();
        let tests: Result<_, _> = self.tests.into_iter().map(SentTest::into_test).collect();
        Ok(Project {
            kind: self.kind,
            language: self.language,
            files: files?,
            limits: self.limits.into(),
            environment: self.environment,
            network: self.network,
            price: self.price,
            tests: tests?,
            notes: self.notes,
        })
    }
}

impl SentFile {
    fn new((path, bytes): &(String, Bytes)) -> Self {
        let text = std::str::from_utf8(bytes).ok().map(str::to_owned);
        let base64 = text.is_none().then(|| STANDARD.encode(bytes));
        Self { path: path.clone(), text, base64 }
    }

    fn into_file(self) -> Result<(String, Bytes), SentError> {
        let bytes = match (self.text, self.base64) {
            (Some(text), None) => Some(Bytes::from(text)),
            (None, Some(base64)) => STANDARD.decode(base64).ok().map(Bytes::from),
            _ => None,
        };
        match bytes {
            Some(bytes) => Ok((self.path, bytes)),
            None => Err(SentError::File(self.path)),
        }
    }
}

impl SentTest {
    fn into_test(self) -> Result<TestCase, SentError> {
        let Self { name, event, expect } = self;
        let json = |raw: &RawValue| {
            Json::parse(raw.get().to_owned())
                .map_err(|error| SentError::Test { name: name.clone(), problem: error.to_string() })
        };
        let expect = expect.as_deref().map(json).transpose()?;
        Ok(TestCase { event: json(&event)?, expect, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::template;

    #[test]
    fn what_was_sent_is_what_arrives() {
        let mut project = Project::of_source(Kind::Function, Language::Lua, "return 1");
        project.files.push(("data.bin".into(), Bytes::from_static(&[0xff, 0, 0xfe])));
        project.environment.insert("TOKEN".into(), "${TOKEN}".into());
        project.price = "0.25".parse().expect("a price");
        let event = Json::parse("{\"a\": 1.10}").expect("JSON");
        project.tests.push(TestCase { name: "one".into(), expect: Some(event.clone()), event });
        project.network = true;
        let text = serde_json::to_string(&SentProject::new(&project)).expect("JSON");
        let sent: SentProject = serde_json::from_str(&text).expect("what was written");
        assert_eq!(sent.into_project().expect("a project"), project);
        assert!(!template::files(Kind::Mcp, Language::Lua, "x").is_empty());
    }

    #[test]
    fn a_file_is_text_or_bytes() {
        let check = |file: &str, expected: Option<&[u8]>| {
            let text = format!("{{\"language\": \"lua\", \"files\": [{file}]}}");
            let sent: SentProject = serde_json::from_str(&text).expect("JSON");
            let bytes = sent.into_project().ok().map(|project| project.files[0].1.clone());
            assert_eq!(bytes.as_deref(), expected, "{file}");
        };
        check(r#"{"path": "a", "text": "x"}"#, Some(b"x"));
        check(r#"{"path": "a", "base64": "eA=="}"#, Some(b"x"));
        check(r#"{"path": "a", "base64": "?"}"#, None);
        check(r#"{"path": "a"}"#, None);
        check(r#"{"path": "a", "text": "", "base64": ""}"#, None);
    }
}
