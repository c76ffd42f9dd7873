//! Stored functions: one record per function, and immutable parts.
//!
//! A record lists the versions of a function and the digests of their contents. A content describes a version except
//! for its number, and has the digests of its files. Publication changes only the record, so it is atomic, and a
//! published version cannot change.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use toolyard_core::Json;
use toolyard_core::access::CallPrice;

use crate::code::SourceLanguage;
use crate::project::{FunctionKind, FunctionProject, StoredLimits, TestCase};
use crate::version::FunctionVersion;

/// Format of records and contents. A later format belongs to a later release.
const FORMAT: u32 = 1;

/// Record of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FunctionRecord {
    format: u32,
    pub(crate) kind: FunctionKind,
    #[serde(with = "language_name")]
    pub(crate) language: SourceLanguage,
    /// Creation time, in milliseconds since 1970, as all times here.
    pub(crate) created: u64,
    /// Highest published number. Numbers are not reused, even after deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<FunctionVersion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) draft: Option<StoredContent>,
    /// Published versions, in ascending order.
    pub(crate) versions: Vec<PublishedContent>,
}

/// Reference to a content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StoredContent {
    /// Digest of the content.
    pub(crate) digest: String,
    /// Time of saving.
    pub(crate) time: u64,
    /// Size of all files, in bytes.
    pub(crate) bytes: u64,
    /// Release notes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) notes: String,
}

/// A published version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PublishedContent {
    pub(crate) version: FunctionVersion,
    pub(crate) content: StoredContent,
}

/// A version except for its number.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct VersionContent {
    format: u32,
    pub(crate) kind: FunctionKind,
    #[serde(with = "language_name")]
    pub(crate) language: SourceLanguage,
    pub(crate) files: Vec<StoredFile>,
    pub(crate) limits: StoredLimits,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) network: bool,
    /// Price, in millionths.
    price: u64,
    tests: Vec<StoredTest>,
    pub(crate) notes: String,
}

/// Reference to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredFile {
    pub(crate) path: String,
    pub(crate) digest: String,
    pub(crate) bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct StoredTest {
    name: String,
    event: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expect: Option<Box<RawValue>>,
}

/// Fault of a stored record or part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("written by a later version of Toolyard, in format {0}")]
    Later(u32),
    #[error("it is damaged: {0}")]
    Damaged(String),
    #[error("a part of it is missing")]
    Missing,
}

/// Member that every format has.
#[derive(Deserialize)]
struct FormatHeader {
    format: u32,
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, RecordError> {
    let damaged = |error: serde_json::Error| RecordError::Damaged(error.to_string());
    match serde_json::from_slice(bytes).map_err(damaged)? {
        FormatHeader { format: FORMAT } => serde_json::from_slice(bytes).map_err(damaged),
        FormatHeader { format } => Err(RecordError::Later(format)),
    }
}

fn serialize_json(value: &impl Serialize) -> Bytes {
    // Serialization of these types cannot fail.
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// Returns the SHA-256 digest in hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    toolyard_core::random::hex(&Sha256::digest(bytes))
}

/// Converts a time to milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Converts milliseconds since 1970 to a time.
pub(crate) fn time(millis: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(millis)).unwrap_or(UNIX_EPOCH)
}

impl FunctionRecord {
    /// Creates a record without versions.
    pub(crate) fn new(kind: FunctionKind, language: SourceLanguage, now: SystemTime) -> Self {
        let created = millis(now);
        Self { format: FORMAT, kind, language, created, last: None, draft: None, versions: Vec::new() }
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        read(bytes)
    }

    pub(crate) fn to_bytes(&self) -> Bytes {
        serialize_json(self)
    }

    /// Returns the contents of all versions, including the draft.
    pub(crate) fn contents(&self) -> impl Iterator<Item = &StoredContent> {
        self.draft.iter().chain(self.versions.iter().map(|published| &published.content))
    }

    pub(crate) fn published(&self, version: FunctionVersion) -> Option<&PublishedContent> {
        self.versions.iter().find(|published| published.version == version)
    }

    pub(crate) fn latest(&self) -> Option<FunctionVersion> {
        self.versions.iter().map(|published| published.version).max()
    }
}

impl VersionContent {
    /// Returns the content of a project, and its files by digest.
    pub(crate) fn of(project: &FunctionProject) -> (Self, BTreeMap<String, Bytes>) {
        let mut parts = BTreeMap::new();
        let stored = project.files.iter().map(|(path, bytes)| {
            let digest = digest(bytes);
            parts.insert(digest.clone(), bytes.clone());
            StoredFile { path: path.clone(), digest, bytes: bytes.len() as u64 }
        });
        let mut files: Vec<_> = stored.collect();
        // Sorted, so that the digest does not depend on the order of the files.
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let content = Self {
            format: FORMAT,
            kind: project.kind,
            language: project.language,
            files,
            limits: project.limits.into(),
            environment: project.environment.clone(),
            network: project.network,
            price: project.price.0,
            tests: project.tests.iter().map(StoredTest::of).collect(),
            notes: project.notes.clone(),
        };
        (content, parts)
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        read(bytes)
    }

    pub(crate) fn to_bytes(&self) -> Bytes {
        serialize_json(self)
    }

    pub(crate) const fn price(&self) -> CallPrice {
        CallPrice(self.price)
    }

    pub(crate) fn tests(&self) -> Result<Vec<TestCase>, RecordError> {
        self.tests.iter().map(StoredTest::case).collect()
    }
}

impl StoredTest {
    fn of(test: &TestCase) -> Self {
        // Both are JSON already.
        let raw = |json: &Json| RawValue::from_string(json.as_text().to_owned()).unwrap_or_default();
        Self { name: test.name.clone(), event: raw(&test.event), expect: test.expect.as_ref().map(raw) }
    }

    fn case(&self) -> Result<TestCase, RecordError> {
        let json = |raw: &RawValue| {
            Json::parse(raw.get().to_owned()).map_err(|error| RecordError::Damaged(error.to_string()))
        };
        let expect = self.expect.as_deref().map(json).transpose()?;
        Ok(TestCase { name: self.name.clone(), event: json(&self.event)?, expect })
    }
}

/// Serialized names of languages.
pub(crate) mod language_name {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::code::SourceLanguage;

    pub(crate) const fn name_of(language: SourceLanguage) -> &'static str {
        match language {
            SourceLanguage::Python => "python",
            SourceLanguage::JavaScript => "javascript",
            SourceLanguage::Lua => "lua",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    pub(crate) fn serialize<S: Serializer>(
        language: &SourceLanguage,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(name_of(*language))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<SourceLanguage, D::Error> {
        let word = String::deserialize(deserializer)?;
        let language = SourceLanguage::ALL.into_iter().find(|language| name_of(*language) == word);
        language.ok_or_else(|| {
            de::Error::custom(format_args!("unknown language {word:?}: expected python, javascript or lua"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_content_is_read_unchanged() {
        let mut project =
            FunctionProject::from_source(FunctionKind::Function, SourceLanguage::JavaScript, "source");
        project.files.push(("data/a.csv".into(), "1,2".into()));
        project.price = "0.002".parse().unwrap();
        project.environment.insert("TOKEN".into(), "${TOKEN}".into());
        let event = Json::parse(r#"{"number":12345678901234567890123,"text":"ä"}"#).unwrap();
        project.tests.push(TestCase { name: "one".into(), event, expect: None });
        let (content, parts) = VersionContent::of(&project);
        let text = content.to_bytes();
        let read = VersionContent::read(&text).unwrap();
        assert_eq!(read.to_bytes(), text);
        assert_eq!(read.tests().unwrap(), project.tests);
        assert_eq!(parts.len(), 2);
        // The order of files does not affect the content.
        project.files.reverse();
        assert_eq!(VersionContent::of(&project).0.to_bytes(), text);
        insta::assert_snapshot!(std::str::from_utf8(&text).unwrap());
    }

    #[test]
    fn unusable_record_has_a_reason() {
        let check = |text: &str, expected: &str| {
            assert_eq!(FunctionRecord::read(text.as_bytes()).unwrap_err().to_string(), expected);
        };
        check(r#"{"format":2,"anything":[]}"#, "written by a later version of Toolyard, in format 2");
        check("", "it is damaged: EOF while parsing a value at line 1 column 0");
        check(r#"{"format":1,"kind":"mcp"}"#, "it is damaged: missing field `language` at line 1 column 25");
        check(
            r#"{"format":1,"kind":"mcp","language":"cobol"}"#,
            "it is damaged: unknown language \"cobol\": expected python, javascript or lua at line 1 column 44",
        );
        let record = FunctionRecord::new(FunctionKind::Mcp, SourceLanguage::Lua, UNIX_EPOCH);
        assert_eq!(FunctionRecord::read(&record.to_bytes()), Ok(record));
    }
}
