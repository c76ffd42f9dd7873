//! Upload format of a project.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolyard_core::Json;

use super::{FunctionKind, FunctionProject, MAX_BYTES, MAX_TEST_BYTES, StoredLimits, TestCase};
use crate::code::SourceLanguage;
use crate::record::language_name;

/// A project as JSON. Missing members have their default.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectUpload {
    #[serde(default)]
    kind: FunctionKind,
    #[serde(with = "language_name")]
    language: SourceLanguage,
    files: Vec<UploadFile>,
    #[serde(default)]
    limits: StoredLimits,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    network: bool,
    #[serde(default, with = "super::settings::price")]
    price: toolyard_core::access::CallPrice,
    #[serde(default)]
    tests: Vec<UploadTest>,
    #[serde(default)]
    notes: String,
}

/// A file, as text or in Base64.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UploadFile {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UploadTest {
    name: String,
    event: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expect: Option<Box<RawValue>>,
}

/// Fault of an upload.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// A file has neither text nor bytes, or both, or invalid Base64.
    #[error("the file {0:?} must have either `text` or `base64`")]
    File(String),
    /// JSON of a test case is invalid.
    #[error("the test case {name:?}: {problem}")]
    Test {
        /// Name of the test case.
        name: String,
        /// Fault.
        problem: String,
    },
}

impl ProjectUpload {
    /// Maximum length of an upload, in bytes: Base64 and escapes add to the size of a project.
    pub const MAX_UPLOAD_BYTES: usize = (MAX_BYTES + MAX_TEST_BYTES) * 2;

    /// Creates the upload of a project.
    #[must_use]
    pub fn new(project: &FunctionProject) -> Self {
        let raw = |json: &Json| RawValue::from_string(json.as_text().to_owned()).unwrap_or_default();
        let test = |test: &TestCase| UploadTest {
            name: test.name.clone(),
            event: raw(&test.event),
            expect: test.expect.as_ref().map(raw),
        };
        Self {
            kind: project.kind,
            language: project.language,
            files: project.files.iter().map(UploadFile::new).collect(),
            limits: project.limits.into(),
            environment: project.environment.clone(),
            network: project.network,
            price: project.price,
            tests: project.tests.iter().map(test).collect(),
            notes: project.notes.clone(),
        }
    }

    /// Converts the upload to a project.
    ///
    /// # Errors
    /// If a file or test case is invalid. Limits are checked when the project is saved.
    pub fn into_project(self) -> Result<FunctionProject, UploadError> {
        let files: Result<_, _> = self.files.into_iter().map(UploadFile::into_file).collect();
        let tests: Result<_, _> = self.tests.into_iter().map(UploadTest::into_test).collect();
        Ok(FunctionProject {
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

impl UploadFile {
    fn new((path, bytes): &(String, Bytes)) -> Self {
        let text = std::str::from_utf8(bytes).ok().map(str::to_owned);
        let base64 = text.is_none().then(|| STANDARD.encode(bytes));
        Self { path: path.clone(), text, base64 }
    }

    fn into_file(self) -> Result<(String, Bytes), UploadError> {
        let bytes = match (self.text, self.base64) {
            (Some(text), None) => Some(Bytes::from(text)),
            (None, Some(base64)) => STANDARD.decode(base64).ok().map(Bytes::from),
            _ => None,
        };
        match bytes {
            Some(bytes) => Ok((self.path, bytes)),
            None => Err(UploadError::File(self.path)),
        }
    }
}

impl UploadTest {
    fn into_test(self) -> Result<TestCase, UploadError> {
        let Self { name, event, expect } = self;
        let json = |raw: &RawValue| {
            Json::parse(raw.get().to_owned())
                .map_err(|error| UploadError::Test { name: name.clone(), problem: error.to_string() })
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
    fn upload_preserves_the_project() {
        let mut project =
            FunctionProject::from_source(FunctionKind::Function, SourceLanguage::Lua, "return 1");
        project.files.push(("data.bin".into(), Bytes::from_static(&[0xff, 0, 0xfe])));
        project.environment.insert("TOKEN".into(), "${TOKEN}".into());
        project.price = "0.25".parse().expect("a price");
        let event = Json::parse("{\"a\": 1.10}").expect("JSON");
        project.tests.push(TestCase { name: "one".into(), expect: Some(event.clone()), event });
        project.network = true;
        let text = serde_json::to_string(&ProjectUpload::new(&project)).expect("JSON");
        let sent: ProjectUpload = serde_json::from_str(&text).expect("what was written");
        assert_eq!(sent.into_project().expect("a project"), project);
        assert!(!template::files(FunctionKind::Mcp, SourceLanguage::Lua, "x").is_empty());
    }

    #[test]
    fn a_file_is_text_or_bytes() {
        let check = |file: &str, expected: Option<&[u8]>| {
            let text = format!("{{\"language\": \"lua\", \"files\": [{file}]}}");
            let sent: ProjectUpload = serde_json::from_str(&text).expect("JSON");
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
