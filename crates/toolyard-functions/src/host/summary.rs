//! Functions and versions, as people and programs are shown them.

use serde::Serialize;
use toolyard_core::Json;
use toolyard_core::timestamp::iso_8601;

use crate::code::Language;
use crate::project::Kind;
use crate::record::{Content, Published, Record, Stored, time, word};
use crate::shelf::Shelved;
use crate::version::Version;

/// A function, in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionSummary {
    /// What it is called by.
    pub id: String,
    /// What it answers; `None` where it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// What it is written in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<&'static str>,
    /// When it was first saved, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The latest version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<Version>,
    /// How many versions are published.
    pub versions: usize,
    /// What is not published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<DraftSummary>,
    /// Why it cannot be used here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A draft, in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DraftSummary {
    /// Its content: drafts of the same digest are the same.
    pub digest: String,
    /// When it was saved, in ISO 8601.
    pub saved: String,
    /// Bytes of its files.
    pub bytes: u64,
    /// What is new.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// A version, in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionSummary {
    /// Its number.
    pub version: Version,
    /// When it was published, in ISO 8601.
    pub published: String,
    /// Its content.
    pub digest: String,
    /// Bytes of its files.
    pub bytes: u64,
    /// What was new.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// A function, and its versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionDetails {
    /// The function.
    #[serde(flatten)]
    pub summary: FunctionSummary,
    /// Its versions, latest first.
    pub published: Vec<VersionSummary>,
}

/// All of a version but the values of its environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionDetails {
    /// The function.
    pub id: String,
    /// Its version, such as `1.2.0` or `draft`.
    pub version: String,
    /// What it answers.
    pub kind: Kind,
    /// What it is written in.
    pub language: &'static str,
    /// Its files, in the order of their names.
    pub files: Vec<FileSummary>,
    /// What a call may take.
    pub limits: LimitsSummary,
    /// The names of its variables.
    pub environment: Vec<String>,
    /// Whether it may reach the network.
    pub network: bool,
    /// What a call costs.
    pub price: String,
    /// The names of its test cases.
    pub tests: Vec<String>,
    /// What is new.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// Its content.
    pub digest: String,
    /// When it was saved, or published, in ISO 8601.
    pub time: String,
}

/// A file of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileSummary {
    /// Its name.
    pub path: String,
    /// Its SHA-256.
    pub digest: String,
    /// How long it is.
    pub bytes: u64,
}

/// What a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitsSummary {
    /// Time, in seconds.
    pub seconds: u64,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// The answer, in bytes.
    pub output_bytes: usize,
    /// Calls at a time.
    pub concurrent: usize,
}

/// What came of a test case.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestReport {
    /// The test case.
    pub name: String,
    /// Whether the reply was as expected.
    pub passed: bool,
    /// How long it took.
    pub duration_ms: f64,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The reply, where there is one.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_json")]
    pub reply: Option<Json>,
    /// What was printed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
}

fn as_json<S: serde::Serializer>(reply: &Option<Json>, serializer: S) -> Result<S::Ok, S::Error> {
    let raw = reply.as_ref().map(|json| serde_json::from_str::<&serde_json::value::RawValue>(json.as_text()));
    raw.transpose().map_err(serde::ser::Error::custom)?.serialize(serializer)
}

impl FunctionSummary {
    pub(crate) fn of(shelved: &Shelved) -> Self {
        let id = shelved.id.to_string();
        match &shelved.record {
            Ok(record) => Self::of_record(id, record),
            Err(why) => Self {
                id,
                kind: None,
                language: None,
                created: None,
                latest: None,
                versions: 0,
                draft: None,
                problem: Some(why.to_string()),
            },
        }
    }

    pub(crate) fn of_record(id: String, record: &Record) -> Self {
        Self {
            id,
            kind: Some(record.kind),
            language: Some(word::of(record.language)),
            created: Some(iso_8601(time(record.created))),
            latest: record.latest(),
            versions: record.versions.len(),
            draft: record.draft.as_ref().map(DraftSummary::of),
            problem: None,
        }
    }
}

impl DraftSummary {
    fn of(stored: &Stored) -> Self {
        let Stored { digest, time: saved, bytes, notes } = stored.clone();
        Self { digest, saved: iso_8601(time(saved)), bytes, notes }
    }
}

impl VersionSummary {
    pub(crate) fn of(published: &Published) -> Self {
        let Stored { digest, time: at, bytes, notes } = published.content.clone();
        Self { version: published.version, published: iso_8601(time(at)), digest, bytes, notes }
    }
}

impl FunctionDetails {
    pub(crate) fn of(id: String, record: &Record) -> Self {
        let published = record.versions.iter().rev().map(VersionSummary::of).collect();
        Self { summary: FunctionSummary::of_record(id, record), published }
    }
}

impl VersionDetails {
    pub(crate) fn of(
        id: &str,
        version: String,
        stored: &Stored,
        content: Content,
        tests: Vec<String>,
    ) -> Self {
        let price = content.price().to_string();
        let Content { kind, language, files, limits, environment, network, notes, .. } = content;
        Self {
            id: id.to_owned(),
            version,
            kind,
            language: word::of(language),
            files: files
                .into_iter()
                .map(|file| FileSummary { path: file.path, digest: file.digest, bytes: file.bytes })
                .collect(),
            limits: LimitsSummary::of(limits.into()),
            environment: environment.into_keys().collect(),
            network,
            price,
            tests,
            notes,
            digest: stored.digest.clone(),
            time: iso_8601(time(stored.time)),
        }
    }
}

impl LimitsSummary {
    const fn of(limits: crate::code::CodeLimits) -> Self {
        let crate::code::CodeLimits { wall, memory_bytes, output_bytes, concurrent, .. } = limits;
        Self { seconds: wall.as_secs(), memory_bytes, output_bytes, concurrent }
    }
}

impl Language {
    /// What it is called in lists and records.
    #[must_use]
    pub const fn word(self) -> &'static str {
        word::of(self)
    }
}
