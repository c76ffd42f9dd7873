//! `/memory`: what agents keep in working memory, for operators. Values belong to the callers and are not shown.

use std::time::{Duration, UNIX_EPOCH};

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use toolyard_agent::memory::{MemoryError, MemoryNamespace, MemoryRecord, NamespaceSummary, WorkingMemory};
use toolyard_core::timestamp::iso_8601;
use toolyard_manifest::MemorySettings;

use super::key_reference::KeyReference;
use super::query::{NoQuery, Query, QueryParams, QueryValues};
use super::{ProblemDetails, Rest, RestResult, RestState, json_value};

#[derive(Serialize)]
struct NamespaceList<'a> {
    /// `false`: the manifest has no working memory.
    enabled: bool,
    /// `true`: there are more namespaces than are listed.
    truncated: bool,
    namespaces: Vec<NamespaceEntry<'a>>,
}

#[derive(Serialize)]
struct NamespaceEntry<'a> {
    namespace: &'a str,
    /// The key of the namespace, if it belongs to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<KeyReference<'a>>,
    entries: usize,
    bytes: usize,
    saved: String,
    expires: String,
}

#[derive(Serialize)]
struct EntryList<'a> {
    entries: Vec<MemoryEntry<'a>>,
}

#[derive(Serialize)]
struct MemoryEntry<'a> {
    key: &'a str,
    bytes: usize,
    saved: String,
    expires: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'a str>,
    tags: &'a [String],
}

/// The namespace whose entries are listed.
pub(super) struct EntryQuery(MemoryNamespace);

impl QueryParams for EntryQuery {
    const NAMES: &'static [&'static str] = &["namespace"];

    fn parse(mut values: QueryValues) -> Result<Self, ProblemDetails> {
        let expected = "two segments such as session/abc123";
        let namespace = values.parsed("namespace", expected, MemoryNamespace::from_text)?;
        let missing = || ProblemDetails::bad_request(format!("missing `namespace`: expected {expected}"));
        namespace.map(Self).ok_or_else(missing)
    }
}

/// `GET /memory`: the namespaces, by name.
pub(super) async fn list(State(rest): Rest, _: NoQuery) -> RestResult {
    let overview = memory(&rest).overview().await?;
    let namespaces = overview.namespaces.iter().map(|summary| entry(&rest, summary)).collect();
    let enabled = rest.reporter.manifest.borrow().has_memory;
    json_value(StatusCode::OK, &NamespaceList { enabled, truncated: overview.is_truncated, namespaces })
}

/// `GET /memory/entries`: the entries of a namespace.
pub(super) async fn entries(
    State(rest): Rest,
    Query(EntryQuery(namespace)): Query<EntryQuery>,
) -> RestResult {
    let records = memory(&rest).list(&namespace).await?;
    json_value(StatusCode::OK, &EntryList { entries: records.iter().map(MemoryEntry::of).collect() })
}

/// Returns the memory of the store. Its limits are about writes.
fn memory(rest: &RestState) -> WorkingMemory {
    WorkingMemory::new(rest.store.clone(), MemorySettings::default())
}

fn entry<'a>(rest: &RestState, summary: &'a NamespaceSummary) -> NamespaceEntry<'a> {
    let NamespaceSummary { namespace, entries, bytes, saved, expires } = summary;
    NamespaceEntry {
        namespace: namespace.as_str(),
        key: namespace.key_id().map(|id| KeyReference::of(rest, id)),
        entries: *entries,
        bytes: *bytes,
        saved: iso_8601(*saved),
        expires: iso_8601(*expires),
    }
}

impl<'a> MemoryEntry<'a> {
    fn of(record: &'a MemoryRecord) -> Self {
        Self {
            key: &record.key,
            bytes: record.bytes,
            saved: iso_8601(UNIX_EPOCH + Duration::from_millis(record.saved)),
            expires: iso_8601(record.expires_at()),
            category: record.category.as_deref(),
            tags: &record.tags,
        }
    }
}

impl From<MemoryError> for ProblemDetails {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Store(error) => error.into(),
            // Only writes have other errors.
            other => {
                tracing::error!(error = &other as &dyn std::error::Error, "cannot read working memory");
                Self::fault()
            }
        }
    }
}
