//! Ids of working memory for callers without session and key: sealed by the gateway, so that nothing else can make one,
//! and bound to their purpose, to a key, and to a time.
//!
//! - A *handle* stands for a namespace. Hosts get it in the `_meta` of a result and send it back in the `_meta` of their
//!   requests; as a part of a key it opens nothing, so that no text can bring one to a model.
//! - A *result id* is in the keys of one large result. It opens that result alone, for reading.

use std::fmt;
use std::time::SystemTime;

use serde_json::json;
use toolyard_core::random::random_bytes;
use toolyard_core::seal::StateSealer;
use toolyard_core::secrets::SEALED_ID_PREFIX;
use toolyard_core::store::{KeySpace, KeyValueStore, PutRequest, StoreError, StoreErrorKind, WriteCondition};

use super::access::FullKey;
use super::chunk_keys;
use super::namespace::MemoryNamespace;
use super::working_memory::random_hex;

/// Key space of the key that seals ids.
const SEAL: KeySpace = KeySpace("working-memory-seal");
/// The key in it.
const SEAL_KEY: &str = "key";

/// First segment of all keys with a result id.
const SESSION_SEGMENT: &str = "session/";

/// Seals and opens ids.
pub struct SessionIds(StateSealer);

/// A large result that its id has opened.
pub(super) struct OpenedResult {
    /// The requested key, in the namespace of the result.
    pub(super) key: FullKey,
    /// Common prefix of the result's keys in its namespace.
    pub(super) base: String,
    /// The same prefix with the id instead of the namespace.
    pub(super) sealed_base: String,
}

impl SessionIds {
    /// Returns the ids of all gateways on a store, which has their key. A store in memory makes a new key.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub(super) async fn of_store(store: &dyn KeyValueStore) -> Result<Self, StoreError> {
        let mut stored = store.get(SEAL, SEAL_KEY).await?;
        if stored.is_none() {
            let condition = WriteCondition::Absent;
            let put = PutRequest { condition, ..PutRequest::always(new_key()?.to_vec()) };
            // Another gateway may be first.
            let _version = store.put(SEAL, SEAL_KEY, put).await?;
            stored = store.get(SEAL, SEAL_KEY).await?;
        }
        let key = stored.and_then(|stored| <[u8; 32]>::try_from(&*stored.bytes).ok());
        key.map(Self::with_key).ok_or_else(|| {
            StoreError::new(
                StoreErrorKind::Unreadable,
                "the key of working memory's ids does not have 32 bytes",
            )
        })
    }

    /// Returns ids that are sealed with a key.
    #[must_use]
    pub(super) const fn with_key(key: [u8; 32]) -> Self {
        Self(StateSealer::with_key(key))
    }

    /// Returns a handle of a namespace for callers with this key, or for callers without one.
    #[must_use]
    pub fn handle(
        &self,
        namespace: &MemoryNamespace,
        principal: Option<&str>,
        expires: SystemTime,
    ) -> String {
        let context = context("handle", principal, "");
        let sealed = self.0.seal_until(&context, namespace.as_str().as_bytes(), expires);
        format!("{SEALED_ID_PREFIX}{sealed}")
    }

    /// Returns the namespace of a handle; `None` if the handle is not valid now for this key.
    pub(super) fn open_handle(
        &self,
        handle: &str,
        principal: Option<&str>,
        now: SystemTime,
    ) -> Option<MemoryNamespace> {
        MemoryNamespace::from_text(&self.open(&context("handle", principal, ""), handle, now)?)
    }

    /// Returns the common prefix of a result's keys with an id instead of the namespace.
    pub(super) fn sealed_base(
        &self,
        namespace: &MemoryNamespace,
        base: &str,
        principal: Option<&str>,
        expires: SystemTime,
    ) -> String {
        let name = base.strip_prefix(namespace.as_str()).map_or(base, |name| name.trim_start_matches('/'));
        let owner = namespace.as_str().strip_prefix(SESSION_SEGMENT).unwrap_or_default();
        let sealed = self.0.seal_until(&context("result", principal, name), owner.as_bytes(), expires);
        format!("{SESSION_SEGMENT}{SEALED_ID_PREFIX}{sealed}/{name}")
    }

    /// Opens the result of a key with a result id; `None` if the id is not valid now for this key and this result.
    pub(super) fn open_result(
        &self,
        key: &str,
        principal: Option<&str>,
        now: SystemTime,
    ) -> Option<OpenedResult> {
        let (id, path) = split(key)?;
        let name = chunk_keys::base_of(path).unwrap_or(path);
        let owner = self.open(&context("result", principal, name), id, now)?;
        let namespace = MemoryNamespace::from_text(&format!("{SESSION_SEGMENT}{owner}"))?;
        Some(OpenedResult {
            base: format!("{namespace}/{name}"),
            sealed_base: format!("{SESSION_SEGMENT}{id}/{name}"),
            key: FullKey { path: format!("{namespace}/{path}"), namespace },
        })
    }

    fn open(&self, context: &[u8], id: &str, now: SystemTime) -> Option<String> {
        let opened = self.0.open_at(context, id.strip_prefix(SEALED_ID_PREFIX)?, now).ok()?;
        String::from_utf8(opened).ok()
    }
}

impl fmt::Debug for SessionIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionIds")
    }
}

/// Returns a namespace that nothing else has.
pub(super) fn new_namespace() -> Result<MemoryNamespace, StoreError> {
    Ok(MemoryNamespace::new("session", &random_hex::<8>()?))
}

/// Returns `true` if a text is a sealed id, whether it opens anything or not.
#[must_use]
pub fn is_sealed_id(text: &str) -> bool {
    text.starts_with(SEALED_ID_PREFIX)
}

/// Returns `true` if a key begins with a result id, whether it opens anything or not.
pub(super) fn has_result_id(key: &str) -> bool {
    split(key).is_some()
}

/// Splits a key into its result id and the rest.
fn split(key: &str) -> Option<(&str, &str)> {
    let (kind, rest) = key.trim().split_at_checked(SESSION_SEGMENT.len())?;
    let (id, path) = rest.split_once('/')?;
    (kind.eq_ignore_ascii_case(SESSION_SEGMENT) && is_sealed_id(id)).then_some((id, path))
}

/// Returns the binding of an id. Names of results ignore case, as all keys do.
fn context(purpose: &str, principal: Option<&str>, name: &str) -> Vec<u8> {
    json!(["working-memory", purpose, principal, name.to_lowercase()]).to_string().into_bytes()
}

fn new_key() -> Result<[u8; 32], StoreError> {
    random_bytes().map_err(|error| StoreError::new(StoreErrorKind::Unavailable, error))
}
