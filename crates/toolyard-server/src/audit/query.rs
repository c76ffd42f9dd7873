//! Reads the trail.

use std::time::SystemTime;

use serde::Serialize;
use serde_json::value::RawValue;
use toolyard_core::store::{RecordQuery, Store, StoreError, StoreErrorKind};

use super::AUDIT;

/// Maximum number of records of a page.
pub const MAX_RECORDS: usize = 1000;

/// Filter of records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// `call`, `task_fired`, or an operator's action.
    pub action: Option<String>,
    /// Id of a key.
    pub principal: Option<String>,
    /// Published name of the called tool, prompt or resource, or the object of an action.
    pub name: Option<String>,
    /// Name of a handler.
    pub handler: Option<String>,
    /// Outcome of a call.
    pub outcome: Option<String>,
    /// Earliest time.
    pub since: Option<SystemTime>,
    /// Latest time, exclusive.
    pub until: Option<SystemTime>,
    /// Start of the page: [`AuditPage::next`] of the previous one.
    pub before: Option<u64>,
    /// Maximum number of records. Default: 100.
    pub limit: Option<usize>,
}

/// A page of records, newest first.
#[derive(Debug, Serialize)]
pub struct AuditPage {
    /// The records as written.
    pub records: Vec<Box<RawValue>>,
    /// Start of the next page, if there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Reads a page.
///
/// # Errors
/// If the store fails.
pub async fn read(store: &dyn Store, query: AuditQuery) -> Result<AuditPage, StoreError> {
    let AuditQuery { action, principal, name, handler, outcome, since, until, before, limit } = query;
    let tags = [
        ("action", action),
        ("principal", principal),
        ("name", name),
        ("handler", handler),
        ("outcome", outcome),
    ];
    let tags = tags.into_iter().filter_map(|(tag, value)| Some((tag, value?))).collect();
    let limit = limit.unwrap_or(100).min(MAX_RECORDS);
    let stored = store.read(AUDIT, RecordQuery { tags, since, until, before, limit }).await?;
    let next = stored.last().filter(|_| stored.len() == limit).map(|record| record.number);
    let unreadable = |error| StoreError::new(StoreErrorKind::Unreadable, error);
    let records = stored.into_iter().map(|record| RawValue::from_string(record.body).map_err(unreadable));
    Ok(AuditPage { records: records.collect::<Result<_, _>>()?, next })
}
