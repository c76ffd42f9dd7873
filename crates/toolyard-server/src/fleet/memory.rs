//! Names stay with their owners also when the gateway is started anew: they are kept in the store, one record for each
//! handler, so that gateways with different handlers can share a store.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use toolyard_core::names::{Given, Named, Names, Prefix};
use toolyard_core::store::{Put, Space, Store, StoreError, Trouble};
use toolyard_manifest as manifest;

#[cfg(test)]
mod tests;

/// Where names are kept.
const NAMES: Space = Space("names");

/// How long the first list waits for the store.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long to wait before it is tried again to keep them.
const AGAIN: Duration = Duration::from_secs(5);

/// How many records are asked for at a time.
const TOGETHER: usize = 64;

/// The names of all handlers that there are, as they are kept, by the keys of their records. `None`: the handler has no
/// names yet.
pub(crate) type Records = BTreeMap<String, Option<Bytes>>;

/// A name as it is kept.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Kept {
    /// `t` or `p`.
    kind: char,
    own: Arc<str>,
    name: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Arc<str>>,
    /// `c` (on a clash), `a` (always) or `n` (never).
    prefix: char,
}

/// What the store knows of the names of this process's handlers. The records of others are not looked at.
pub(crate) struct Memory {
    store: Arc<dyn Store>,
    /// By key. `None` until they could be read: before that nothing is written.
    settled: Option<HashMap<String, Settled>>,
}

/// How the record of a handler is.
enum Settled {
    /// It says this.
    As(Bytes),
    /// It has the names of an earlier run, and those of this one were given without knowing them. The first ones of this
    /// run do not overwrite it; a change of them does.
    Earlier,
}

impl Memory {
    /// The names that these handlers had before. Without the store, none: they are given anew.
    pub(crate) async fn recall(store: Arc<dyn Store>, handlers: &[manifest::Handler]) -> (Self, Names) {
        let mut memory = Self { store, settled: None };
        let keys: Vec<_> = handlers.iter().map(key).collect();
        let read = timeout(PATIENCE, memory.read(&keys)).await;
        match read.unwrap_or_else(|_| Err(StoreError::new(Trouble::Unavailable, "it takes too long"))) {
            Ok(records) => {
                // In the order of the manifest, which decides where two records have the same name.
                let kept = handlers.iter().flat_map(|handler| restored(handler, records.get(&key(handler))));
                let names = Names::restored(kept, |_| true);
                memory.settled =
                    Some(records.into_iter().map(|(key, record)| (key, Settled::As(record))).collect());
                (memory, names)
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    error,
                    "the names of tools are given anew: those that they had cannot be read"
                );
                (memory, Names::default())
            }
        }
    }

    /// Keeps each version of the names, or the last one of several that come together, until there can be no more.
    pub(crate) async fn keep(mut self, mut names: watch::Receiver<Records>) {
        // That they cannot be read was said.
        let mut is_well = self.settled.is_some();
        while names.changed().await.is_ok() {
            loop {
                let records = names.borrow_and_update().clone();
                match self.settle(&records).await {
                    Ok(()) => {
                        is_well = true;
                        break;
                    }
                    Err(error) if is_well => {
                        is_well = false;
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(error, "the names of tools are not kept");
                    }
                    Err(_) => {}
                }
                sleep(AGAIN).await;
            }
        }
    }

    /// Writes what has changed since the last time, and removes the records of handlers that there were then.
    async fn settle(&mut self, records: &Records) -> Result<(), StoreError> {
        if self.settled.is_none() {
            let keys: Vec<_> = records.keys().cloned().collect();
            let earlier = self.read(&keys).await?;
            if !earlier.is_empty() {
                tracing::warn!(
                    handlers = earlier.len(),
                    "the names that were given without the store are for this run only: those of earlier runs stay kept"
                );
            }
            self.settled = Some(earlier.into_keys().map(|key| (key, Settled::Earlier)).collect());
        }
        let Self { store, settled } = self;
        let settled = settled.get_or_insert_default();
        for (key, record) in records {
            match (record, settled.get(key)) {
                (None, None | Some(Settled::Earlier)) => {}
                (None, Some(Settled::As(_))) => {
                    store.delete(NAMES, key).await?;
                    settled.remove(key);
                }
                (Some(record), Some(Settled::As(known))) if known == record => {}
                (Some(record), Some(Settled::Earlier)) => {
                    settled.insert(key.clone(), Settled::As(record.clone()));
                }
                (Some(record), _) => {
                    store.put(NAMES, key, Put::always(record.clone())).await?;
                    settled.insert(key.clone(), Settled::As(record.clone()));
                }
            }
        }
        let gone: Vec<_> = settled.keys().filter(|key| !records.contains_key(*key)).cloned().collect();
        for key in gone {
            store.delete(NAMES, &key).await?;
            settled.remove(&key);
        }
        Ok(())
    }

    /// The records that there are of these keys.
    async fn read(&self, keys: &[String]) -> Result<HashMap<String, Bytes>, StoreError> {
        let mut records = HashMap::new();
        for keys in keys.chunks(TOGETHER) {
            let values = try_join_all(keys.iter().map(|key| self.store.get(NAMES, key))).await?;
            let some = keys.iter().zip(values).filter_map(|(key, value)| Some((key.clone(), value?.bytes)));
            records.extend(some);
        }
        Ok(records)
    }
}

/// The names as they are kept.
pub(super) fn written<'a>(names: &Names, handlers: impl Iterator<Item = &'a manifest::Handler>) -> Records {
    let mut given = HashMap::<_, Vec<_>>::new();
    for name in names.given() {
        given.entry(name.handler.clone()).or_default().push(kept(name));
    }
    let record = |mut kept: Vec<Kept>| {
        // What has not changed is written alike.
        kept.sort();
        // Nothing in it can fail to be written.
        Bytes::from(serde_json::to_vec(&kept).unwrap_or_default())
    };
    handlers.map(|handler| (key(handler), given.remove(handler.name.as_str()).map(record))).collect()
}

/// Handlers of different registries may be meant where they have the same name in manifests of different gateways.
fn key(handler: &manifest::Handler) -> String {
    format!("{}/{}", handler.registry, handler.name.as_str())
}

/// What a record says. One that cannot be read is said to be so, and is written anew.
fn restored(handler: &manifest::Handler, record: Option<&Bytes>) -> Vec<Given> {
    let name: Arc<str> = handler.name.as_str().into();
    let read = record.map_or(Ok(Vec::new()), |record| serde_json::from_slice::<Vec<Kept>>(record));
    let kept = read.unwrap_or_else(|error| {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(
            error,
            handler = &*name,
            "the names of its tools are given anew: their record is damaged"
        );
        Vec::new()
    });
    kept.into_iter().filter_map(|kept| given(&name, kept)).collect()
}

fn kept(given: Given) -> Kept {
    let Given { named, own, name, asked, prefix, .. } = given;
    let kind = match named {
        Named::Tool => 't',
        Named::Prompt => 'p',
    };
    let prefix = match prefix {
        Prefix::OnClash => 'c',
        Prefix::Always => 'a',
        Prefix::Never => 'n',
    };
    Kept { kind, own, name, asked, prefix }
}

/// `None` for what a later version may have written.
fn given(handler: &Arc<str>, kept: Kept) -> Option<Given> {
    let Kept { kind, own, name, asked, prefix } = kept;
    let named = match kind {
        't' => Named::Tool,
        'p' => Named::Prompt,
        _ => return None,
    };
    let prefix = match prefix {
        'c' => Prefix::OnClash,
        'a' => Prefix::Always,
        'n' => Prefix::Never,
        _ => return None,
    };
    Some(Given { named, handler: handler.clone(), own, name, asked, prefix })
}
