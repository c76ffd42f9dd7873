//! The keys that a caller can access.

use std::fmt;

use super::error::MemoryError;
use super::namespace::{MemoryCaller, MemoryNamespace};

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
    own: MemoryNamespace,
}

impl MemoryAccess {
    /// Returns the access of a caller; `None` if it has no working memory.
    #[must_use]
    pub fn of(caller: MemoryCaller) -> Option<Self> {
        caller.namespace().map(|own| Self { caller, own })
    }

    /// Returns the namespace of the caller's own entries.
    #[must_use]
    pub const fn own(&self) -> &MemoryNamespace {
        &self.own
    }

    /// Returns `true` if the caller can access a namespace: its own, that of its key, and those that its key allows.
    #[must_use]
    pub fn includes(&self, namespace: &MemoryNamespace) -> bool {
        *namespace == self.own
            || self.caller.key_namespace().as_ref() == Some(namespace)
            || self.caller.reaches(namespace)
    }

    /// Returns the full key for saving, which is always in the caller's own namespace. A key that already begins with
    /// that namespace does not get it twice, because models save under keys that they have read.
    ///
    /// # Errors
    /// Returns [`MemoryError::BadKey`] if the key is invalid.
    pub fn place(&self, key: &str) -> Result<FullKey, MemoryError> {
        let key = checked(key)?;
        match MemoryNamespace::of_path(key) {
            Some((namespace, _)) if namespace == self.own => full(namespace, key.to_owned()),
            _ => full(self.own.clone(), format!("{}/{key}", self.own)),
        }
    }

    /// Returns the full keys for reading and deleting, in order of precedence. A key with slashes is a full path if the
    /// caller can access its namespace; every key may also be one in the caller's own namespace.
    ///
    /// # Errors
    /// Returns [`MemoryError::BadKey`] if the key is invalid.
    pub fn candidates(&self, key: &str) -> Result<Vec<FullKey>, MemoryError> {
        let key = checked(key)?;
        let mut candidates = Vec::with_capacity(2);
        if let Some((namespace, _)) =
            MemoryNamespace::of_path(key).filter(|(namespace, _)| self.includes(namespace))
        {
            let is_own = namespace == self.own;
            candidates.push(full(namespace, key.to_owned())?);
            if is_own {
                return Ok(candidates);
            }
        }
        candidates.push(full(self.own.clone(), format!("{}/{key}", self.own))?);
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
        "" => Err(MemoryError::BadKey("key: is empty, where a name such as `notes` is expected")),
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
        MemoryAccess::of(MemoryCaller { session: None, named, principal, others }).expect("a namespace")
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
        for key in ["", "  ", "a\nb", "a\0b", &"x".repeat(600)] {
            assert!(reach().place(key).is_err() && reach().candidates(key).is_err(), "{key:?}");
        }
    }
}
