//! The namespace of a caller.

use std::fmt;
use std::fmt::Write;

use sha2::{Digest, Sha256};
use toolyard_core::Caller;
use toolyard_core::access::AccessScope;
use toolyard_sdk::Context;

/// Member of a request's `_meta` in which a host names its session: clients of 2026-07-28 and later have none
/// themselves.
pub const SESSION_META: &str = "toolyard/session";

/// Number of digits of the digest that stands for the session of a connection.
const DIGEST_DIGITS: usize = 16;

/// Maximum length in bytes of a name that is a segment of a namespace without being hashed.
const MAX_SEGMENT_LENGTH: usize = 64;

/// Common prefix of all keys of one owner: the first two segments of their paths, such as `session/abc123`. It is in
/// lower case, because keys ignore case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryNamespace(String);

impl MemoryNamespace {
    /// Splits a full path into its namespace and the rest. Returns `None` if the rest is empty.
    #[must_use]
    pub fn of_path(path: &str) -> Option<(Self, &str)> {
        let first = path.find('/')?;
        let second = first + 1 + path[first + 1..].find('/')?;
        let (namespace, rest) = (&path[..second], &path[second + 1..]);
        (!rest.is_empty()).then(|| (Self(namespace.to_lowercase()), rest))
    }

    /// Parses a namespace; `None` if the text does not have two segments.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        (text.matches('/').count() == 1).then(|| Self(text.to_lowercase()))
    }

    /// Returns the namespace of these two segments, hashing invalid ones.
    #[must_use]
    pub fn new(kind: &str, owner: &str) -> Self {
        Self(format!("{}/{}", segment(kind), segment(owner)))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MemoryNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The identity of a caller, as far as working memory uses it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct MemoryCaller {
    /// Session of the client's connection.
    pub session: Option<String>,
    /// Session that the request names.
    pub named: Option<String>,
    /// Id of the caller's key.
    pub principal: Option<String>,
    /// Namespaces that the key may access in addition to its own.
    pub others: AccessScope,
}

impl MemoryCaller {
    /// Returns the identity of a caller, with the session that its request names.
    #[must_use]
    pub fn new(caller: &Caller, named: Option<String>) -> Self {
        Self {
            session: caller.session.as_deref().map(str::to_owned),
            named,
            principal: caller.principal.as_deref().map(str::to_owned),
            others: caller.grant.as_ref().map(|grant| grant.memory.clone()).unwrap_or_default(),
        }
    }

    /// Returns the identity of the caller of a tool.
    #[must_use]
    pub fn of_context(context: &Context) -> Self {
        let named_session = context.meta(SESSION_META).and_then(|named| named.as_str().map(str::to_owned));
        Self::new(context.caller(), named_session)
    }

    /// Returns `true` if the caller's key may access a namespace that is not its own.
    pub(super) fn reaches(&self, namespace: &MemoryNamespace) -> bool {
        let (kind, owner) = namespace.as_str().split_once('/').unwrap_or_default();
        self.others.allows_name(kind, owner)
    }

    /// Returns the namespace of the caller's entries: that of its session, or else that of the session that it names,
    /// or else that of its key. Returns `None` for a caller without any of these.
    ///
    /// The id of a connection's session stays secret, because it authorizes requests of its client. A session that a
    /// request names belongs to the key: another key that names the same session has another namespace.
    #[must_use]
    pub fn namespace(&self) -> Option<MemoryNamespace> {
        if let Some(session) = &self.session {
            return Some(MemoryNamespace(format!("session/{}", &digest(session)[..DIGEST_DIGITS])));
        }
        let Some(named) = self.named.as_deref().filter(|named| !named.trim().is_empty()) else {
            return self.key_namespace();
        };
        let named = if is_digest(named) { hashed_segment(named) } else { segment(named) };
        Some(MemoryNamespace(match &self.principal {
            Some(principal) => format!("session/{named}@{}", segment(principal)),
            None => format!("session/{named}"),
        }))
    }

    /// Returns the namespace of the caller's key, which all sessions of the key share.
    #[must_use]
    pub fn key_namespace(&self) -> Option<MemoryNamespace> {
        self.principal.as_ref().map(|principal| MemoryNamespace(format!("key/{}", segment(principal))))
    }
}

/// Shows which members are present, without the ids of sessions, which are secret.
impl fmt::Debug for MemoryCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryCaller")
            .field("session", &self.session.is_some())
            .field("named", &self.named.is_some())
            .field("principal", &self.principal)
            .finish()
    }
}

/// Returns a name as one segment of a path. Different names have different segments, whatever their case.
fn segment(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.".contains(&byte);
    match (1..=MAX_SEGMENT_LENGTH).contains(&name.len()) && name.bytes().all(is_plain) {
        true => name.to_owned(),
        false => hashed_segment(name),
    }
}

/// Returns a segment that no other name has, and that is not a valid name itself.
fn hashed_segment(name: &str) -> String {
    format!("~{}", &digest(name)[..32])
}

/// Returns `true` if a name may be the digest of a connection's session. Models see that digest, so it must not grant
/// access.
fn is_digest(name: &str) -> bool {
    name.len() == DIGEST_DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn digest(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_of_a_caller() {
        #[track_caller]
        fn check(session: &str, named: &str, principal: &str, expected: &str) {
            let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let caller = MemoryCaller {
                session: some(session),
                named: some(named),
                principal: some(principal),
                ..MemoryCaller::default()
            };
            let namespace = caller.namespace().map(|namespace| namespace.to_string()).unwrap_or_default();
            assert_eq!(namespace, expected, "{session:?} {named:?} {principal:?}");
        }
        check("", "", "", "");
        check("", " ", "", "");
        check("", "abc123", "", "session/abc123");
        check("", "", "k7", "key/k7");
        // The session comes first, then the named session.
        check("3f2a", "abc123", "k7", "session/10c78973b5c61b1e");
        check("3f2a", "", "", "session/10c78973b5c61b1e");
        check("", "abc123", "k7", "session/abc123@k7");
        // The digest of a connection's session is no way into its namespace.
        check("", "10c78973b5c61b1e", "", "session/~e1c3b24ea92ad049541bdf436fd47d8c");
        // Nor is a name that looks like a path, or like another name in another case.
        check("", "abc/x", "", "session/~b7717ebfbf5ef6c99c9e4b435bd255f9");
        check("", "ABC123", "", "session/~e0bebd22819993425814866b62701e29");
        check("", "abc123@k7", "", "session/~fe4cdfac7ed01e4b34d524ed2c43129d");
        check("", "", "Alice", "key/~3bc51062973c458d5a6f2d8d64a02324");
        check("", "~8fce", "", "session/~312662f18b035718d4f2a709122b5d9c");
    }

    #[test]
    fn namespace_of_a_path() {
        let check = |path: &str, expected: Option<(&str, &str)>| {
            let parsed = MemoryNamespace::of_path(path);
            let parsed = parsed.as_ref().map(|(namespace, rest)| (namespace.as_str(), *rest));
            assert_eq!(parsed, expected, "{path:?}");
        };
        check("session/abc/notes", Some(("session/abc", "notes")));
        check("Session/ABC/Notes/x", Some(("session/abc", "Notes/x")));
        check("a//b", Some(("a/", "b")));
        // Dots are not resolved: this is a namespace of its own, which `memory:session/*` allows.
        check("session/../key/k7/x", Some(("session/..", "key/k7/x")));
        for path in ["", "notes", "session/abc", "session/abc/", "/", "//"] {
            check(path, None);
        }
    }

    #[test]
    fn debug_output_hides_session_ids() {
        let caller = MemoryCaller {
            session: Some("3f2a".into()),
            named: Some("abc".into()),
            ..MemoryCaller::default()
        };
        assert_eq!(format!("{caller:?}"), "MemoryCaller { session: true, named: true, principal: None }");
    }
}
