//! What is kept of functions: one record for each, and parts that do not change.
//!
//! A function's record says which versions it has, and what their contents are called: by their digests. A content says
//! all of a version but its number, and what its files are called. So to publish is to change one record, whatever else
//! it takes, and a version that is published cannot become another one.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use toolyard_core::Json;
use toolyard_core::access::Price;

use crate::code::Language;
use crate::project::{Kind, Project, TestCase, WrittenLimits};
use crate::version::Version;

/// Which form records and contents have. What has a later one is a later program's.
const FORMAT: u32 = 1;

/// A function as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Record {
    format: u32,
    pub(crate) kind: Kind,
    #[serde(with = "word")]
    pub(crate) language: Language,
    /// In milliseconds since 1970, as all times here.
    pub(crate) created: u64,
    /// The highest number that was ever given: none is given twice, whatever was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<Version>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) draft: Option<Stored>,
    /// In the order in which they were published, which is that of their numbers.
    pub(crate) versions: Vec<Published>,
}

/// A content, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Stored {
    /// What the content is called.
    pub(crate) digest: String,
    /// When it was saved.
    pub(crate) time: u64,
    /// Bytes of all its files.
    pub(crate) bytes: u64,
    /// What is new, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) notes: String,
}

/// A version that is published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Published {
    pub(crate) version: Version,
    pub(crate) content: Stored,
}

/// All of a version but its number.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Content {
    format: u32,
    pub(crate) kind: Kind,
    #[serde(with = "word")]
    pub(crate) language: Language,
    pub(crate) files: Vec<StoredFile>,
    pub(crate) limits: WrittenLimits,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) network: bool,
    /// In millionths.
    price: u64,
    tests: Vec<StoredTest>,
    pub(crate) notes: String,
}

/// A file, and where it is.
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

/// Why something that is kept cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("it was written by a later Toolyard, in format {0}")]
    Later(u32),
    #[error("it is damaged: {0}")]
    Damaged(String),
    #[error("a part of it is missing")]
    Missing,
}

/// What of a text every format has.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Unusable> {
    let damaged = |error: serde_json::Error| Unusable::Damaged(error.to_string());
    match serde_json::from_slice(bytes).map_err(damaged)? {
        Format { format: FORMAT } => serde_json::from_slice(bytes).map_err(damaged),
        Format { format } => Err(Unusable::Later(format)),
    }
}

fn written(value: &impl Serialize) -> Bytes {
    // Nothing in it can fail to be written.
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// What bytes are called.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A time as it is kept.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The time that is kept so.
pub(crate) fn time(millis: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(millis)).unwrap_or(UNIX_EPOCH)
}

impl Record {
    /// A function without any version.
    pub(crate) fn new(kind: Kind, language: Language, now: SystemTime) -> Self {
        let created = millis(now);
        Self { format: FORMAT, kind, language, created, last: None, draft: None, versions: Vec::new() }
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Unusable> {
        read(bytes)
    }

    pub(crate) fn written(&self) -> Bytes {
        written(self)
    }

    /// The contents of all its versions.
    pub(crate) fn contents(&self) -> impl Iterator<Item = &Stored> {
        self.draft.iter().chain(self.versions.iter().map(|published| &published.content))
    }

    pub(crate) fn published(&self, version: Version) -> Option<&Published> {
        self.versions.iter().find(|published| published.version == version)
    }

    pub(crate) fn latest(&self) -> Option<Version> {
        self.versions.iter().map(|published| published.version).max()
    }
}

impl Content {
    /// The content of a project, and the bytes of its files by their digests.
    pub(crate) fn of(project: &Project) -> (Self, BTreeMap<String, Bytes>) {
        let mut parts = BTreeMap::new();
        let stored = project.files.iter().map(|(path, bytes)| {
            let digest = digest(bytes);
            parts.insert(digest.clone(), bytes.clone());
            StoredFile { path: path.clone(), digest, bytes: bytes.len() as u64 }
        });
        let mut files: Vec<_> = stored.collect();
        // So that the same files have the same digest, in whichever order they came.
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

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Unusable> {
        read(bytes)
    }

    pub(crate) fn written(&self) -> Bytes {
        written(self)
    }

    pub(crate) const fn price(&self) -> Price {
        Price(self.price)
    }

    pub(crate) fn tests(&self) -> Result<Vec<TestCase>, Unusable> {
        self.tests.iter().map(StoredTest::case).collect()
    }
}

impl StoredTest {
    fn of(test: &TestCase) -> Self {
        // Both are JSON already.
        let raw = |json: &Json| RawValue::from_string(json.as_text().to_owned()).unwrap_or_default();
        Self { name: test.name.clone(), event: raw(&test.event), expect: test.expect.as_ref().map(raw) }
    }

    fn case(&self) -> Result<TestCase, Unusable> {
        let json = |raw: &RawValue| {
            Json::parse(raw.get().to_owned()).map_err(|error| Unusable::Damaged(error.to_string()))
        };
        let expect = self.expect.as_deref().map(json).transpose()?;
        Ok(TestCase { name: self.name.clone(), event: json(&self.event)?, expect })
    }
}

/// A language, as it is written down.
pub(crate) mod word {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::code::Language;

    pub(crate) const fn of(language: Language) -> &'static str {
        match language {
            Language::Python => "python",
            Language::JavaScript => "javascript",
            Language::Lua => "lua",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    pub(crate) fn serialize<S: Serializer>(language: &Language, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(of(*language))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Language, D::Error> {
        let word = String::deserialize(deserializer)?;
        let found = Language::ALL.into_iter().find(|language| of(*language) == word);
        found.ok_or_else(|| {
            de::Error::custom(format_args!("{word:?} is no language: python, javascript or lua"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_as_it_was() {
        let mut project = Project::of_source(Kind::Function, Language::JavaScript, "source");
        project.files.push(("data/a.csv".into(), "1,2".into()));
        project.price = "0.002".parse().unwrap();
        project.environment.insert("TOKEN".into(), "${TOKEN}".into());
        let event = Json::parse(r#"{"number":12345678901234567890123,"text":"ä"}"#).unwrap();
        project.tests.push(TestCase { name: "one".into(), event, expect: None });
        let (content, parts) = Content::of(&project);
        let text = content.written();
        let read = Content::read(&text).unwrap();
        assert_eq!(read.written(), text);
        assert_eq!(read.tests().unwrap(), project.tests);
        assert_eq!(parts.len(), 2);
        // The order of its files is nothing that makes another content.
        project.files.reverse();
        assert_eq!(Content::of(&project).0.written(), text);
        insta::assert_snapshot!(std::str::from_utf8(&text).unwrap());
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Record::read(text.as_bytes()).unwrap_err().to_string(), expected);
        };
        check(r#"{"format":2,"anything":[]}"#, "it was written by a later Toolyard, in format 2");
        check("", "it is damaged: EOF while parsing a value at line 1 column 0");
        check(r#"{"format":1,"kind":"mcp"}"#, "it is damaged: missing field `language` at line 1 column 25");
        check(
            r#"{"format":1,"kind":"mcp","language":"cobol"}"#,
            "it is damaged: \"cobol\" is no language: python, javascript or lua at line 1 column 44",
        );
        let record = Record::new(Kind::Mcp, Language::Lua, UNIX_EPOCH);
        assert_eq!(Record::read(&record.written()), Ok(record));
    }
}
