//! Names stay with their owners also when the gateway is started anew: they are kept in the store.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use toolyard_core::names::{Given, Named, Names, Prefix};
use toolyard_core::store::{Space, Store, StoreError, Trouble};
use toolyard_manifest as manifest;

/// Where names are kept: all of them in one value.
const NAMES: Space = Space("names");
const ALL: &str = "all";

/// How long the first list waits for the store.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long to wait before it is tried again to keep them.
const AGAIN: Duration = Duration::from_secs(5);

/// A name as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// `t` or `p`.
    kind: char,
    handler: Arc<str>,
    own: Arc<str>,
    name: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Arc<str>>,
    /// `c` (on a clash), `a` (always) or `n` (never).
    prefix: char,
}

/// The names that these handlers had before. Without the store, none: they are given anew.
pub(crate) async fn recall(store: &dyn Store, handlers: &[manifest::Handler]) -> Names {
    let kept = timeout(PATIENCE, read(store)).await;
    match kept.unwrap_or_else(|_| Err(StoreError::new(Trouble::Unavailable, "it takes too long"))) {
        Ok(kept) => {
            let is_there = |name: &str| handlers.iter().any(|handler| handler.name.as_str() == name);
            Names::restored(kept.into_iter().filter_map(given), is_there)
        }
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the names of tools are given anew: those that they had cannot be read");
            Names::default()
        }
    }
}

async fn read(store: &dyn Store) -> Result<Vec<Kept>, StoreError> {
    let Some(text) = store.get_blob(NAMES, ALL).await? else { return Ok(Vec::new()) };
    serde_json::from_slice(&text).map_err(|error| StoreError::new(Trouble::Unreadable, error))
}

/// The names as they are kept.
pub(super) fn written(names: &Names) -> Vec<u8> {
    let kept: Vec<_> = names.given().map(kept).collect();
    // Nothing in it can fail to be written.
    serde_json::to_vec(&kept).unwrap_or_default()
}

/// Keeps each version of the names, or the last one of several that come together, until there can be no more.
pub(crate) async fn keep(store: Arc<dyn Store>, mut names: watch::Receiver<Vec<u8>>) {
    let mut is_well = true;
    while names.changed().await.is_ok() {
        loop {
            let text = names.borrow_and_update().clone();
            match store.put_blob(NAMES, ALL, text.into()).await {
                Ok(()) => {
                    is_well = true;
                    break;
                }
                Err(error) if is_well => {
                    is_well = false;
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the names of tools are not kept"
                    );
                }
                Err(_) => {}
            }
            sleep(AGAIN).await;
        }
    }
}

fn kept(given: Given) -> Kept {
    let Given { named, handler, own, name, asked, prefix } = given;
    let kind = match named {
        Named::Tool => 't',
        Named::Prompt => 'p',
    };
    let prefix = match prefix {
        Prefix::OnClash => 'c',
        Prefix::Always => 'a',
        Prefix::Never => 'n',
    };
    Kept { kind, handler, own, name, asked, prefix }
}

/// `None` for what a later version may have written.
fn given(kept: Kept) -> Option<Given> {
    let Kept { kind, handler, own, name, asked, prefix } = kept;
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
    Some(Given { named, handler, own, name, asked, prefix })
}
