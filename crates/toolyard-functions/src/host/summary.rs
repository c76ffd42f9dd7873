//! Representations of functions and versions in lists and in the API.

use bytes::Bytes;
use serde::Serialize;
use toolyard_core::Json;
use toolyard_core::timestamp::iso_8601;

use crate::code::SourceLanguage;
use crate::function_index::IndexedFunction;
use crate::project::FunctionKind;
use crate::record::{
    FunctionRecord, PublishedContent, StoredContent, StoredFile, VersionContent, language_name, time,
};
use crate::version::FunctionVersion;

/// Summary of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionSummary {
    /// Id of the function.
    pub id: String,
    /// Protocol; `None` if the record is unreadable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<FunctionKind>,
    /// Programming language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<&'static str>,
    /// Creation time, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// Latest published version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<FunctionVersion>,
    /// Number of published versions.
    pub versions: usize,
    /// Current draft.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<DraftSummary>,
    /// Reason why the function cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Summary of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DraftSummary {
    /// Digest of the content: drafts with equal digests are equal.
    pub digest: String,
    /// Time of saving, in ISO 8601.
    pub saved: String,
    /// Size of the files, in bytes.
    pub bytes: u64,
    /// Release notes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// Summary of a published version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionSummary {
    /// Version number.
    pub version: FunctionVersion,
    /// Time of publication, in ISO 8601.
    pub published: String,
    /// Digest of the content.
    pub digest: String,
    /// Size of the files, in bytes.
    pub bytes: u64,
    /// Release notes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// A function and its versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionDetails {
    /// Summary of the function.
    #[serde(flatten)]
    pub summary: FunctionSummary,
    /// Published versions, latest first.
    pub published: Vec<VersionSummary>,
}

/// A version, except for the values of its environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionDetails {
    /// Id of the function.
    pub id: String,
    /// Version, such as `1.2.0` or `draft`.
    pub version: String,
    /// Protocol of the function.
    pub kind: FunctionKind,
    /// Programming language.
    pub language: &'static str,
    /// Files, in the order of their paths.
    pub files: Vec<FileSummary>,
    /// Limits of a call.
    pub limits: LimitsSummary,
    /// Names of the variables.
    pub environment: Vec<String>,
    /// True if the function may access the network.
    pub network: bool,
    /// Price of a call.
    pub price: String,
    /// Names of the test cases.
    pub tests: Vec<String>,
    /// Release notes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// Digest of the content.
    pub digest: String,
    /// Time of saving or publication, in ISO 8601.
    pub time: String,
}

/// A file of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileSummary {
    /// Path of the file.
    pub path: String,
    /// SHA-256 digest.
    pub digest: String,
    /// Size, in bytes.
    pub bytes: u64,
}

/// A file of a version with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceFile {
    /// The file.
    #[serde(flatten)]
    pub file: FileSummary,
    /// Text of the file. `None` if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitsSummary {
    /// Time, in seconds.
    pub seconds: u64,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Maximum length of the answer, in bytes.
    pub output_bytes: usize,
    /// Maximum number of concurrent calls.
    pub concurrent: usize,
}

/// Report of a test case.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestReport {
    /// Name of the test case.
    pub name: String,
    /// True if the reply was as expected.
    pub passed: bool,
    /// Duration, in milliseconds.
    pub duration_ms: f64,
    /// Reason of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Reply, if any.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_json")]
    pub reply: Option<Json>,
    /// Printed output.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
}

fn as_json<S: serde::Serializer>(reply: &Option<Json>, serializer: S) -> Result<S::Ok, S::Error> {
    let raw = reply.as_ref().map(|json| serde_json::from_str::<&serde_json::value::RawValue>(json.as_text()));
    raw.transpose().map_err(serde::ser::Error::custom)?.serialize(serializer)
}

impl FunctionSummary {
    pub(crate) fn of(function: &IndexedFunction) -> Self {
        let id = function.id.to_string();
        match &function.record {
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

    pub(crate) fn of_record(id: String, record: &FunctionRecord) -> Self {
        Self {
            id,
            kind: Some(record.kind),
            language: Some(language_name::name_of(record.language)),
            created: Some(iso_8601(time(record.created))),
            latest: record.latest(),
            versions: record.versions.len(),
            draft: record.draft.as_ref().map(DraftSummary::of),
            problem: None,
        }
    }
}

impl DraftSummary {
    fn of(stored: &StoredContent) -> Self {
        let StoredContent { digest, time: saved, bytes, notes } = stored.clone();
        Self { digest, saved: iso_8601(time(saved)), bytes, notes }
    }
}

impl VersionSummary {
    pub(crate) fn of(published: &PublishedContent) -> Self {
        let StoredContent { digest, time: at, bytes, notes } = published.content.clone();
        Self { version: published.version, published: iso_8601(time(at)), digest, bytes, notes }
    }
}

impl FunctionDetails {
    pub(crate) fn of(id: String, record: &FunctionRecord) -> Self {
        let published = record.versions.iter().rev().map(VersionSummary::of).collect();
        Self { summary: FunctionSummary::of_record(id, record), published }
    }
}

impl VersionDetails {
    pub(crate) fn of(
        id: &str,
        version: String,
        stored: &StoredContent,
        content: VersionContent,
        tests: Vec<String>,
    ) -> Self {
        let price = content.price().to_string();
        let VersionContent { kind, language, files, limits, environment, network, notes, .. } = content;
        Self {
            id: id.to_owned(),
            version,
            kind,
            language: language_name::name_of(language),
            files: files.into_iter().map(FileSummary::of).collect(),
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

impl FileSummary {
    fn of(file: StoredFile) -> Self {
        let StoredFile { path, digest, bytes } = file;
        Self { path, digest, bytes }
    }
}

impl SourceFile {
    pub(crate) fn of(file: StoredFile, bytes: Bytes) -> Self {
        Self { file: FileSummary::of(file), text: String::from_utf8(bytes.into()).ok() }
    }
}

impl LimitsSummary {
    const fn of(limits: crate::code::CodeLimits) -> Self {
        let crate::code::CodeLimits {
            time_limit,
            memory_bytes,
            output_bytes,
            max_concurrent: concurrent,
            ..
        } = limits;
        Self { seconds: time_limit.as_secs(), memory_bytes, output_bytes, concurrent }
    }
}

impl SourceLanguage {
    /// Name in lists and records.
    #[must_use]
    pub const fn word(self) -> &'static str {
        language_name::name_of(self)
    }
}
