//! Keys are made, listed and revoked in the store, by whichever process.

use std::time::SystemTime;

use toolyard_core::store::{Condition, Put, Space, Store, StoreError, Trouble, Value};

use super::key::{BadKey, Key, NewKey, Secret, millis};

/// Where keys are kept, by their ids.
pub const KEYS: Space = Space("keys");

/// How many are read at a time.
const PAGE: usize = 500;

/// Why a key was not made, or not found.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It would be of no use.
    #[error(transparent)]
    Bad(#[from] BadKey),
    /// The store is in trouble.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes a key. Its secret is given once, and kept nowhere.
///
/// # Errors
/// When it would be of no use, or the store is in trouble.
pub async fn create(store: &dyn Store, wanted: NewKey) -> Result<(Key, Secret), KeyError> {
    let (key, secret) = wanted.make(SystemTime::now())?;
    let put = Put { condition: Condition::Absent, ..Put::always(written(&key)) };
    match store.put(KEYS, &key.id, put).await? {
        Some(_) => Ok((key, secret)),
        // Of 48 random bits: it does not happen twice.
        None => Err(StoreError::new(Trouble::Unavailable, "a key of this id exists").into()),
    }
}

/// All keys, those that open nothing any more among them, oldest first.
///
/// # Errors
/// When the store is in trouble.
pub async fn list(store: &dyn Store) -> Result<Vec<Key>, StoreError> {
    let mut keys = Vec::new();
    let mut last: Option<String> = None;
    loop {
        let page = store.list(KEYS, "", last.as_deref(), PAGE).await?;
        let is_last = page.len() < PAGE;
        last = page.last().map(|(id, _)| id.clone());
        for (id, value) in page {
            match read(&value) {
                Ok(key) => keys.push(key),
                // What a later version has written may bound its key in a way that this one does not know.
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(key = id, error, "a key cannot be read, and opens nothing here");
                }
            }
        }
        if is_last {
            keys.sort_by(|one: &Key, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
            return Ok(keys);
        }
    }
}

/// One key.
///
/// # Errors
/// When the store is in trouble.
pub async fn get(store: &dyn Store, id: &str) -> Result<Option<Key>, StoreError> {
    store.get(KEYS, id).await?.as_ref().map(read).transpose()
}

/// Makes a key open nothing any more; gives it, or `None` where there is no such key.
///
/// # Errors
/// When the store is in trouble.
pub async fn revoke(store: &dyn Store, id: &str) -> Result<Option<Key>, StoreError> {
    loop {
        let Some(value) = store.get(KEYS, id).await? else { return Ok(None) };
        let mut key = read(&value)?;
        if key.revoked.is_some() {
            return Ok(Some(key));
        }
        key.revoked = Some(millis(SystemTime::now()));
        let condition = Condition::Version(value.version);
        // Somebody else may have changed it meanwhile.
        if store.put(KEYS, id, Put { condition, ..Put::always(written(&key)) }).await?.is_some() {
            return Ok(Some(key));
        }
    }
}

fn written(key: &Key) -> Vec<u8> {
    // Nothing in it can fail to be written.
    serde_json::to_vec(key).unwrap_or_default()
}

fn read(value: &Value) -> Result<Key, StoreError> {
    serde_json::from_slice(&value.bytes).map_err(|error| StoreError::new(Trouble::Unreadable, error))
}
