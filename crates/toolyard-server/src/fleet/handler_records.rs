//! Names and definitions of tools that outlive the gateway, so that names stay with their owners. The store has one
//! record per handler, so that gateways with different handlers can share it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use toolyard_core::names::{AssignedName, NameRegistry, NamedKind, PrefixPolicy};
use toolyard_core::store::{KeySpace, PutRequest, Store, StoreError, StoreErrorKind};
use toolyard_manifest as manifest;

use super::definitions::ToolDefinitions;

#[cfg(test)]
mod tests;

/// Space of the names.
const NAMES: KeySpace = KeySpace("names");

/// Space of the definitions.
const DEFINITIONS: KeySpace = KeySpace("definitions");

/// Space of the lists of servers.
const LISTS: KeySpace = KeySpace("server-lists");

/// Space of the definitions that operators have accepted.
pub(super) const ACCEPTANCES: KeySpace = KeySpace("accepted-definitions");

/// Maximum time that the first list waits for the store.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Delay before a failed write is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Number of records read at a time.
const READ_BATCH: usize = 64;

/// Encoded records of all handlers, by key. `None`: the handler has none yet.
pub(crate) type HandlerRecords = BTreeMap<String, Option<Bytes>>;

/// A name as stored.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct StoredName {
    /// `t` for a tool, `p` for a prompt.
    kind: char,
    own: Arc<str>,
    name: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Arc<str>>,
    /// `c` (on a clash), `a` (always) or `n` (never).
    prefix: char,
}

/// Records of this process's handlers in one space of the store. Records of other handlers are ignored.
pub(crate) struct HandlerRecordStore {
    store: Arc<dyn Store>,
    space: KeySpace,
    /// The content of the records, for log lines.
    content: &'static str,
    /// State of each record by key. `None` until they could be read: nothing is written before.
    states: Option<HashMap<String, RecordState>>,
}

/// State of a handler's record.
enum RecordState {
    /// The stored record.
    As(Bytes),
    /// The record of an earlier run, which was unknown when this run assigned its names. The first names of this run do
    /// not overwrite it; a later change does.
    Earlier,
}

impl HandlerRecordStore {
    /// Reads the names of these handlers from earlier runs. Without the store there are none, and names are assigned
    /// anew.
    pub(crate) async fn recall(
        store: Arc<dyn Store>,
        handlers: &[manifest::HandlerConfig],
    ) -> (Self, NameRegistry) {
        let (record_store, records) = Self::open(store, NAMES, "the names of tools", handlers).await;
        // Two records may have the same name. The order of the manifest decides.
        let names = |records: HashMap<String, Bytes>| {
            let stored =
                handlers.iter().flat_map(|handler| decode_names(handler, records.get(&key(handler))));
            NameRegistry::restored(stored, |_| true)
        };
        (record_store, records.map(names).unwrap_or_default())
    }

    /// Reads the accepted definitions of these handlers. Without the store there are none, and nothing is written, so
    /// that the next run compares with the accepted ones.
    pub(crate) async fn recall_definitions(
        store: Arc<dyn Store>,
        handlers: &[manifest::HandlerConfig],
    ) -> (Option<Self>, ToolDefinitions) {
        let (record_store, records) =
            Self::open(store, DEFINITIONS, "the definitions of tools", handlers).await;
        match records {
            Some(records) => (Some(record_store), ToolDefinitions::from_records(handlers, &records)),
            None => (None, ToolDefinitions::default()),
        }
    }

    /// Merges the operators' acceptances from earlier runs and other gateways. Without the store, nothing is merged or
    /// written.
    pub(crate) async fn recall_acceptances(
        store: Arc<dyn Store>,
        handlers: &[manifest::HandlerConfig],
        definitions: &mut ToolDefinitions,
    ) -> Option<Self> {
        let (record_store, records) =
            Self::open(store, ACCEPTANCES, "the accepted definitions of tools", handlers).await;
        let records = records?;
        for handler in handlers {
            if let Some(record) = records.get(&key(handler)) {
                definitions.merge_acceptances(handler, record);
            }
        }
        Some(record_store)
    }

    /// Reads the records of the lists of these handlers.
    pub(super) async fn recall_last_lists(
        store: Arc<dyn Store>,
        handlers: &[manifest::HandlerConfig],
    ) -> (Self, Option<HashMap<String, Bytes>>) {
        Self::open(store, LISTS, "the lists of servers", handlers).await
    }

    /// Opens the records of these handlers. Returns `None` for records that cannot be read.
    async fn open(
        store: Arc<dyn Store>,
        space: KeySpace,
        content: &'static str,
        handlers: &[manifest::HandlerConfig],
    ) -> (Self, Option<HashMap<String, Bytes>>) {
        let mut record_store = Self { store, space, content, states: None };
        let keys: Vec<_> = handlers.iter().map(key).collect();
        let read = timeout(READ_TIMEOUT, read(&*record_store.store, space, &keys)).await;
        match read.unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::Unavailable, "timed out"))) {
            Ok(records) => {
                let states =
                    records.iter().map(|(key, record)| (key.clone(), RecordState::As(record.clone())));
                record_store.states = Some(states.collect());
                (record_store, Some(records))
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "{content} of earlier runs cannot be read: starting without them");
                (record_store, None)
            }
        }
    }

    /// Saves each version of the records, or the last of several that come together, until the sender is dropped.
    pub(crate) async fn run(mut self, mut names: watch::Receiver<HandlerRecords>) {
        // The failed read is already logged.
        let mut is_well = self.states.is_some();
        while names.changed().await.is_ok() {
            loop {
                let records = names.borrow_and_update().clone();
                match self.save(&records).await {
                    Ok(()) => {
                        is_well = true;
                        break;
                    }
                    Err(error) if is_well => {
                        is_well = false;
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(error, "cannot save {}", self.content);
                    }
                    Err(_) => {}
                }
                sleep(RETRY_DELAY).await;
            }
        }
    }

    /// Writes the records that have changed since the last time, and deletes those of removed handlers.
    async fn save(&mut self, records: &HandlerRecords) -> Result<(), StoreError> {
        if self.states.is_none() {
            let keys: Vec<_> = records.keys().cloned().collect();
            let earlier = read(&*self.store, self.space, &keys).await?;
            if !earlier.is_empty() {
                tracing::warn!(
                    handlers = earlier.len(),
                    "{} assigned without the store are for this run only: the records of earlier runs stay",
                    self.content
                );
            }
            self.states = Some(earlier.into_keys().map(|key| (key, RecordState::Earlier)).collect());
        }
        let (store, space) = (self.store.clone(), self.space);
        let states = &mut self.states;
        let states = states.get_or_insert_default();
        for (key, record) in records {
            match (record, states.get(key)) {
                (None, None | Some(RecordState::Earlier)) => {}
                (None, Some(RecordState::As(_))) => {
                    store.delete(space, key).await?;
                    states.remove(key);
                }
                (Some(record), Some(RecordState::As(known))) if known == record => {}
                (Some(record), Some(RecordState::Earlier)) => {
                    states.insert(key.clone(), RecordState::As(record.clone()));
                }
                (Some(record), _) => {
                    store.put(space, key, PutRequest::always(record.clone())).await?;
                    states.insert(key.clone(), RecordState::As(record.clone()));
                }
            }
        }
        let gone: Vec<_> = states.keys().filter(|key| !records.contains_key(*key)).cloned().collect();
        for key in gone {
            store.delete(space, &key).await?;
            states.remove(&key);
        }
        Ok(())
    }
}

/// Reads the existing records of these keys.
pub(super) async fn read(
    store: &dyn Store,
    space: KeySpace,
    keys: &[String],
) -> Result<HashMap<String, Bytes>, StoreError> {
    let mut records = HashMap::new();
    for keys in keys.chunks(READ_BATCH) {
        let values = try_join_all(keys.iter().map(|key| store.get(space, key))).await?;
        let existing = keys.iter().zip(values).filter_map(|(key, value)| Some((key.clone(), value?.bytes)));
        records.extend(existing);
    }
    Ok(records)
}

/// Encodes the names of these handlers.
pub(super) fn name_records<'a>(
    names: &NameRegistry,
    handlers: impl Iterator<Item = &'a manifest::HandlerConfig>,
) -> HandlerRecords {
    let mut by_handler = HashMap::<_, Vec<_>>::new();
    for name in names.assigned_names() {
        by_handler.entry(name.handler.clone()).or_default().push(stored(name));
    }
    let record = |mut stored: Vec<StoredName>| {
        // Sorted, so that unchanged names encode to the same bytes.
        stored.sort();
        // Serializing names cannot fail.
        Bytes::from(serde_json::to_vec(&stored).unwrap_or_default())
    };
    handlers.map(|handler| (key(handler), by_handler.remove(handler.name.as_str()).map(record))).collect()
}

/// Returns the key of a handler's record. It has the registry because manifests of different gateways may use the same
/// handler name.
pub(super) fn key(handler: &manifest::HandlerConfig) -> String {
    format!("{}/{}", handler.registry, handler.name.as_str())
}

/// Decodes a record. A damaged one is logged and replaced.
fn decode_names(handler: &manifest::HandlerConfig, record: Option<&Bytes>) -> Vec<AssignedName> {
    let name: Arc<str> = handler.name.as_str().into();
    let read = record.map_or(Ok(Vec::new()), |record| serde_json::from_slice::<Vec<StoredName>>(record));
    let stored = read.unwrap_or_else(|error| {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(
            error,
            handler = &*name,
            "the record of tool names is damaged: names are assigned anew"
        );
        Vec::new()
    });
    stored.into_iter().filter_map(|stored| parse_stored(&name, stored)).collect()
}

fn stored(given_name: AssignedName) -> StoredName {
    let AssignedName { named, own, name, asked, prefix, .. } = given_name;
    let kind = match named {
        NamedKind::Tool => 't',
        NamedKind::Prompt => 'p',
    };
    let prefix = match prefix {
        PrefixPolicy::OnClash => 'c',
        PrefixPolicy::Always => 'a',
        PrefixPolicy::Never => 'n',
    };
    StoredName { kind, own, name, asked, prefix }
}

/// Converts a stored name. `None`: a later version has written it.
fn parse_stored(handler: &Arc<str>, stored: StoredName) -> Option<AssignedName> {
    let StoredName { kind, own, name, asked, prefix } = stored;
    let named = match kind {
        't' => NamedKind::Tool,
        'p' => NamedKind::Prompt,
        _ => return None,
    };
    let prefix = match prefix {
        'c' => PrefixPolicy::OnClash,
        'a' => PrefixPolicy::Always,
        'n' => PrefixPolicy::Never,
        _ => return None,
    };
    Some(AssignedName { named, handler: handler.clone(), own, name, asked, prefix })
}
