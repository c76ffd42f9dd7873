//! Which keys a caller reaches, and what it means by them.

use std::fmt;

use super::limits::MemoryError;
use super::namespace::{Namespace, Who};

/// How long the path of a key may be, in characters.
const LONGEST_KEY: usize = 512;

/// A whole path, and the namespace that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullKey {
    /// The first two segments.
    pub namespace: Namespace,
    /// All segments, in the case in which they were written.
    pub path: String,
}

/// What one caller reaches.
#[derive(Clone)]
pub struct Reach {
    who: Who,
    own: Namespace,
}

impl Reach {
    /// What a caller reaches; `None` where it has no memory.
    #[must_use]
    pub fn of(who: Who) -> Option<Self> {
        who.namespace().map(|own| Self { who, own })
    }

    /// Where the caller's own entries are.
    #[must_use]
    pub const fn own(&self) -> &Namespace {
        &self.own
    }

    /// Whether the caller reaches a namespace: its own, its key's, and those that its key is allowed.
    #[must_use]
    pub fn includes(&self, namespace: &Namespace) -> bool {
        *namespace == self.own
            || self.who.key_namespace().as_ref() == Some(namespace)
            || self.who.reaches(namespace)
    }

    /// Where a value is saved: always in the caller's own namespace. A key that begins with that already is not put into
    /// it a second time: models save under the keys that they have read.
    ///
    /// # Errors
    /// [`MemoryError::BadKey`].
    pub fn place(&self, key: &str) -> Result<FullKey, MemoryError> {
        let key = checked(key)?;
        match Namespace::of_path(key) {
            Some((namespace, _)) if namespace == self.own => full(namespace, key.to_owned()),
            _ => full(self.own.clone(), format!("{}/{key}", self.own)),
        }
    }

    /// Where a value may be, in the order to look: a key with slashes is a whole path, if the caller reaches that; and each
    /// key may be one in the caller's own namespace. What is out of reach is looked for nowhere else.
    ///
    /// # Errors
    /// [`MemoryError::BadKey`].
    pub fn candidates(&self, key: &str) -> Result<Vec<FullKey>, MemoryError> {
        let key = checked(key)?;
        let mut candidates = Vec::with_capacity(2);
        if let Some((namespace, _)) =
            Namespace::of_path(key).filter(|(namespace, _)| self.includes(namespace))
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

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reach").field("own", &self.own).finish_non_exhaustive()
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

fn full(namespace: Namespace, path: String) -> Result<FullKey, MemoryError> {
    match path.chars().count() <= LONGEST_KEY {
        true => Ok(FullKey { namespace, path }),
        false => Err(MemoryError::BadKey("key: is longer than 512 characters, its namespace included")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach() -> Reach {
        let (named, principal) = (Some("abc".into()), Some("k7".into()));
        let others = ["patrol/*".parse().expect("a pattern")].into_iter().collect();
        Reach::of(Who { session: None, named, principal, others }).expect("a namespace")
    }

    #[test]
    fn a_value_is_saved_in_the_callers_namespace_and_never_twice_in_it() {
        #[track_caller]
        fn check(key: &str, expected: &str) {
            let place = reach().place(key).expect("a place");
            assert_eq!((place.path.as_str(), place.namespace.as_str()), (expected, "session/abc@k7"));
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
    fn a_whole_path_reaches_what_its_caller_may_reach() {
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
    fn what_is_no_key_is_refused() {
        for key in ["", "  ", "a\nb", "a\0b", &"x".repeat(600)] {
            assert!(reach().place(key).is_err() && reach().candidates(key).is_err(), "{key:?}");
        }
    }
}
