//! The trail is read.

use std::time::SystemTime;

use serde::Serialize;
use serde_json::value::RawValue;
use toolyard_core::store::{Query, Store, StoreError, Trouble};

use super::AUDIT;

/// How many records are given at most.
pub const MOST: usize = 1000;

/// Which records somebody wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// `call`, or what operators do.
    pub action: Option<String>,
    /// The id of a key.
    pub principal: Option<String>,
    /// What was called, under its published name.
    pub name: Option<String>,
    /// Whose it was.
    pub handler: Option<String>,
    /// How it ended.
    pub outcome: Option<String>,
    /// Then or later.
    pub since: Option<SystemTime>,
    /// Before then.
    pub until: Option<SystemTime>,
    /// The next page: what [`Page::next`] says.
    pub before: Option<u64>,
    /// How many at most; a hundred where it is not said.
    pub limit: Option<usize>,
}

/// Records, newest first.
#[derive(Debug, Serialize)]
pub struct Page {
    /// The records, as they were written.
    pub records: Vec<Box<RawValue>>,
    /// Where the next page begins, if there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Reads a page.
///
/// # Errors
/// When the store is in trouble.
pub async fn read(store: &dyn Store, wanted: Wanted) -> Result<Page, StoreError> {
    let Wanted { action, principal, name, handler, outcome, since, until, before, limit } = wanted;
    let tags = [
        ("action", action),
        ("principal", principal),
        ("name", name),
        ("handler", handler),
        ("outcome", outcome),
    ];
    let tags = tags.into_iter().filter_map(|(tag, value)| Some((tag, value?))).collect();
    let limit = limit.unwrap_or(100).min(MOST);
    let kept = store.read(AUDIT, Query { tags, since, until, before, limit }).await?;
    let next = kept.last().filter(|_| kept.len() == limit).map(|record| record.number);
    let unreadable = |error| StoreError::new(Trouble::Unreadable, error);
    let records = kept.into_iter().map(|record| RawValue::from_string(record.body).map_err(unreadable));
    Ok(Page { records: records.collect::<Result<_, _>>()?, next })
}
