//! Creates, lists and revokes keys in the store, from any process.

use std::time::SystemTime;

use toolyard_core::store::{
    KeySpace, PutRequest, Store, StoreError, StoreErrorKind, StoredValue, WriteCondition,
};

use super::key::{ApiKey, InvalidKey, KeySecret, NewApiKey, millis};

/// Space of the keys, by id.
pub const KEYS: KeySpace = KeySpace("keys");

/// Number of keys read at a time.
const PAGE_SIZE: usize = 500;

/// The reason why a key was not created or found.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The key is invalid.
    #[error(transparent)]
    Bad(#[from] InvalidKey),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Creates a key. Its secret is returned once and stored nowhere.
///
/// # Errors
/// If the key is invalid or the store fails.
pub async fn create(store: &dyn Store, new_key: NewApiKey) -> Result<(ApiKey, KeySecret), KeyError> {
    let (key, secret) = new_key.create(SystemTime::now())?;
    let put = PutRequest { condition: WriteCondition::Absent, ..PutRequest::always(encode(&key)) };
    match store.put(KEYS, &key.id, put).await? {
        Some(_) => Ok((key, secret)),
        // A collision of 48 random bits is not expected.
        None => Err(StoreError::new(StoreErrorKind::Unavailable, "a key with this id exists").into()),
    }
}

/// Returns all keys, including revoked and expired ones, oldest first.
///
/// # Errors
/// If the store fails.
pub async fn list(store: &dyn Store) -> Result<Vec<ApiKey>, StoreError> {
    let mut keys = Vec::new();
    let mut last: Option<String> = None;
    loop {
        let page = store.list(KEYS, "", last.as_deref(), PAGE_SIZE).await?;
        let is_last = page.len() < PAGE_SIZE;
        last = page.last().map(|(id, _)| id.clone());
        for (id, value) in page {
            match decode(&value) {
                Ok(key) => keys.push(key),
                // A later version may limit its keys in ways that this one does not know.
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(key = id, error, "refusing a key that cannot be read");
                }
            }
        }
        if is_last {
            keys.sort_by(|one: &ApiKey, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
            return Ok(keys);
        }
    }
}

/// Returns one key.
///
/// # Errors
/// If the store fails.
pub async fn get(store: &dyn Store, id: &str) -> Result<Option<ApiKey>, StoreError> {
    store.get(KEYS, id).await?.as_ref().map(decode).transpose()
}

/// Revokes a key. Returns it, or `None` if there is no such key.
///
/// # Errors
/// If the store fails.
pub async fn revoke(store: &dyn Store, id: &str) -> Result<Option<ApiKey>, StoreError> {
    loop {
        let Some(value) = store.get(KEYS, id).await? else { return Ok(None) };
        let mut key = decode(&value)?;
        if key.revoked.is_some() {
            return Ok(Some(key));
        }
        key.revoked = Some(millis(SystemTime::now()));
        let condition = WriteCondition::Version(value.version);
        // Another process may have changed the key meanwhile.
        if store.put(KEYS, id, PutRequest { condition, ..PutRequest::always(encode(&key)) }).await?.is_some()
        {
            return Ok(Some(key));
        }
    }
}

fn encode(key: &ApiKey) -> Vec<u8> {
    // Serializing a key cannot fail.
    serde_json::to_vec(key).unwrap_or_default()
}

fn decode(value: &StoredValue) -> Result<ApiKey, StoreError> {
    serde_json::from_slice(&value.bytes).map_err(|error| StoreError::new(StoreErrorKind::Unreadable, error))
}
