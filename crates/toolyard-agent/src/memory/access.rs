//! The keys that a caller can access.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use toolyard_core::store::StoreError;
use toolyard_manifest::SharedMemory;

use super::error::MemoryError;
use super::namespace::{MemoryCaller, MemoryNamespace};
use super::session_ids::{self, OpenedResult, SessionIds};
use crate::large::message::ABBREVIATION;

/// Maximum length of a full path in characters.
const MAX_KEY_LENGTH: usize = 512;

/// A full path and its namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullKey {
    /// The first two segments.
    pub namespace: MemoryNamespace,
    /// All segments, in the case in which they were written.
    pub path: String,
}

/// The access of one caller to working memory.
#[derive(Clone)]
pub struct MemoryAccess {
    caller: MemoryCaller,
    /// `None` for a caller without session, key and valid handle.
    own: Option<MemoryNamespace>,
    ids: Arc<SessionIds>,
    now: SystemTime,
}

/// A namespace for a large result.
pub(crate) struct ResultNamespace {
    /// The namespace.
    pub(crate) namespace: MemoryNamespace,
    /// True if the caller cannot name the namespace, so that the keys of the result need an id.
    pub(crate) is_new: bool,
}

impl MemoryAccess {
    /// Returns the access of a caller at a time.
    #[must_use]
    pub fn new(caller: MemoryCaller, ids: Arc<SessionIds>, now: SystemTime, shared: SharedMemory) -> Self {
        let of_handle = |handle| ids.open_handle(handle, caller.principal.as_deref(), now);
        let own = caller.namespace(shared).or_else(|| of_handle(caller.handle()?));
        Self { caller, own, ids, now }
    }

    /// Returns the namespace of the caller's own entries.
    ///
    /// # Errors
    /// Returns an error if the caller has none.
    pub fn own(&self) -> Result<&MemoryNamespace, MemoryError> {
        self.own.as_ref().ok_or_else(|| match self.caller.named {
            Some(_) => MemoryError::InvalidHandle,
            None => MemoryError::NoSession,
        })
    }

    /// Returns the address that the caller's entries count for, if it has no key.
    #[must_use]
    pub fn address(&self) -> String {
        self.caller.address()
    }

    /// Returns the namespace for a large result: the caller's own, or else a new one.
    pub(crate) fn result_namespace(&self) -> Result<ResultNamespace, StoreError> {
        Ok(match &self.own {
            Some(own) => ResultNamespace { namespace: own.clone(), is_new: false },
            None => ResultNamespace { namespace: session_ids::new_namespace()?, is_new: true },
        })
    }

    /// Returns the common prefix of a result's keys, as the caller can use them for `ttl`.
    pub(crate) fn visible_base(&self, result: &ResultNamespace, base: &str, ttl: Duration) -> String {
        match result.is_new {
            true => self.ids.sealed_base(&result.namespace, base, self.principal(), self.now + ttl),
            false => base.to_owned(),
        }
    }

    /// Returns a handle of a namespace that lasts for `ttl`; `None` if the caller needs none, because its connection or
    /// its request names the namespace.
    pub(crate) fn handle_of(&self, namespace: &MemoryNamespace, ttl: Duration) -> Option<String> {
        let by_key = self.caller.key_namespace().is_some_and(|own| own == *namespace);
        let by_handle = self.caller.session.is_none() && (by_key || namespace.is_keyless());
        by_handle.then(|| self.ids.handle(namespace, self.principal(), self.now + ttl))
    }

    /// Returns a handle of the caller's namespace, or else of a new one; `None` if the caller needs none.
    pub(crate) fn handle(&self, ttl: Duration) -> Option<String> {
        self.handle_of(&self.result_namespace().ok()?.namespace, ttl)
    }

    /// Opens the large result of a key with its id.
    pub(super) fn open_result(&self, key: &str) -> Option<OpenedResult> {
        self.ids.open_result(key, self.principal(), self.now)
    }

    fn principal(&self) -> Option<&str> {
        self.caller.principal.as_deref()
    }

    /// Returns `true` if the caller can access a namespace: its own, that of its key, and those that its key allows.
    #[must_use]
    pub fn includes(&self, namespace: &MemoryNamespace) -> bool {
        self.own.as_ref() == Some(namespace)
            || self.caller.key_namespace().as_ref() == Some(namespace)
            || self.caller.reaches(namespace)
    }

    /// Returns the full key for saving, which is always in the caller's own namespace. A key that already begins with
    /// that namespace does not get it twice, because models save under keys that they have read.
    ///
    /// # Errors
    /// Returns an error if the key is invalid or the caller has no namespace.
    pub fn place(&self, key: &str) -> Result<FullKey, MemoryError> {
        let (key, own) = (checked(key)?, self.own()?);
        match MemoryNamespace::of_path(key) {
            Some((namespace, _)) if namespace == *own => full(namespace, key.to_owned()),
            _ => full(own.clone(), format!("{own}/{key}")),
        }
    }

    /// Returns the full keys for reading, in order of precedence: that of a result id, or else those for changes. An id
    /// that opens nothing has none.
    ///
    /// # Errors
    /// Returns an error if the key is invalid or the caller has no namespace.
    pub fn readable(&self, key: &str) -> Result<Vec<FullKey>, MemoryError> {
        match session_ids::has_result_id(key) {
            true => Ok(self.open_result(checked(key)?).map(|opened| opened.key).into_iter().collect()),
            false => self.candidates(key),
        }
    }

    /// Returns the full keys for changes, in order of precedence. A key with slashes is a full path if the caller can
    /// access its namespace; every key may also be one in the caller's own namespace.
    ///
    /// # Errors
    /// Returns an error if the key is invalid or the caller has no namespace.
    pub fn candidates(&self, key: &str) -> Result<Vec<FullKey>, MemoryError> {
        let (key, own) = (checked(key)?, self.own()?);
        let mut candidates = Vec::with_capacity(2);
        if let Some((namespace, _)) =
            MemoryNamespace::of_path(key).filter(|(namespace, _)| self.includes(namespace))
        {
            let is_own = namespace == *own;
            candidates.push(full(namespace, key.to_owned())?);
            if is_own {
                return Ok(candidates);
            }
        }
        candidates.push(full(own.clone(), format!("{own}/{key}"))?);
        Ok(candidates)
    }
}

impl fmt::Debug for MemoryAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryAccess").field("own", &self.own).finish_non_exhaustive()
    }
}

fn checked(key: &str) -> Result<&str, MemoryError> {
    let key = key.trim();
    match key {
        "" => Err(MemoryError::BadKey("key: is empty; expected a name such as `notes`")),
        key if key.strip_prefix(ABBREVIATION).is_some_and(|rest| rest.starts_with('-')) => {
            Err(MemoryError::BadKey(
                "key: is abbreviated: write the beginning of the outline's key, up to `-index`, instead of `…`",
            ))
        }
        key if key.contains(char::is_control) => {
            Err(MemoryError::BadKey("key: has a control character in it"))
        }
        key => Ok(key),
    }
}

fn full(namespace: MemoryNamespace, path: String) -> Result<FullKey, MemoryError> {
    match path.chars().count() <= MAX_KEY_LENGTH {
        true => Ok(FullKey { namespace, path }),
        false => Err(MemoryError::BadKey("key: is longer than 512 characters, its namespace included")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach() -> MemoryAccess {
        let (named, principal) = (Some("abc".into()), Some("k7".into()));
        let others = ["patrol/*".parse().expect("a pattern")].into_iter().collect();
        let caller = MemoryCaller { named, principal, others, ..MemoryCaller::default() };
        let ids = Arc::new(SessionIds::with_key([7; 32]));
        MemoryAccess::new(caller, ids, SystemTime::UNIX_EPOCH, SharedMemory::None)
    }

    #[test]
    fn key_is_placed_in_the_callers_namespace_once() {
        #[track_caller]
        fn check(key: &str, expected: &str) {
            let full_key = reach().place(key).expect("a key");
            assert_eq!((full_key.path.as_str(), full_key.namespace.as_str()), (expected, "session/abc@k7"));
        }
        check("notes", "session/abc@k7/notes");
        check(" Notes/Today ", "session/abc@k7/Notes/Today");
        check("session/abc@k7/notes", "session/abc@k7/notes");
        check("Session/ABC@K7/Notes", "Session/ABC@K7/Notes");
        check("session/abc@k7", "session/abc@k7/session/abc@k7");
        check("session/other/notes", "session/abc@k7/session/other/notes");
        check("patrol/night/found", "session/abc@k7/patrol/night/found");
    }

    #[test]
    fn full_path_needs_access_to_its_namespace() {
        #[track_caller]
        fn check(key: &str, expected: &[&str]) {
            let candidates = reach().candidates(key).expect("candidates");
            let paths: Vec<_> = candidates.iter().map(|candidate| candidate.path.as_str()).collect();
            assert_eq!(paths, expected, "{key:?}");
        }
        check("notes", &["session/abc@k7/notes"]);
        check("notes/today", &["session/abc@k7/notes/today"]);
        check("session/abc@k7/notes", &["session/abc@k7/notes"]);
        check("key/k7/shared", &["key/k7/shared", "session/abc@k7/key/k7/shared"]);
        check("patrol/night/found", &["patrol/night/found", "session/abc@k7/patrol/night/found"]);
        check("session/other/notes", &["session/abc@k7/session/other/notes"]);
        check("key/k8/shared", &["session/abc@k7/key/k8/shared"]);
    }

    #[test]
    fn invalid_key_is_refused() {
        for key in ["", "  ", "…-chunk0", "a\nb", "a\0b", &"x".repeat(600)] {
            assert!(reach().place(key).is_err() && reach().candidates(key).is_err(), "{key:?}");
        }
    }
}
