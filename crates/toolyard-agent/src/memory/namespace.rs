//! Whose memory it is.

use std::fmt;
use std::fmt::Write;

use sha2::{Digest, Sha256};
use toolyard_core::Caller;
use toolyard_core::access::Scope;
use toolyard_sdk::Context;

/// The member of a request's `_meta` in which a host names its session: clients since 2026-07-28 keep none themselves.
pub const SESSION_META: &str = "toolyard/session";

/// How much is shown of the digest that stands for the session of a connection.
const SHOWN_DIGITS: usize = 16;

/// How long a name may be that stands in a namespace as it is, in bytes.
const LONGEST_SEGMENT: usize = 64;

/// The beginning that all keys of one owner share: the first two segments of their paths, such as `session/abc123`. It
/// is written in lower case: keys are found whatever their case is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace(String);

impl Namespace {
    /// The namespace of a whole path, and what is left of that. `None` where nothing is left.
    #[must_use]
    pub fn of_path(path: &str) -> Option<(Self, &str)> {
        let first = path.find('/')?;
        let second = first + 1 + path[first + 1..].find('/')?;
        let (namespace, rest) = (&path[..second], &path[second + 1..]);
        (!rest.is_empty()).then(|| (Self(namespace.to_lowercase()), rest))
    }

    /// The namespace that has this text; `None` where that is not one of two segments.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        (text.matches('/').count() == 1).then(|| Self(text.to_lowercase()))
    }

    /// The namespace of these two segments, each made fit for one.
    #[must_use]
    pub fn new(kind: &str, owner: &str) -> Self {
        Self(format!("{}/{}", segment(kind), segment(owner)))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is known of a caller.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Who {
    /// The session of its client's connection.
    pub session: Option<String>,
    /// The session that its request names.
    pub named: Option<String>,
    /// Whom it acts for: the id of its key.
    pub principal: Option<String>,
    /// The namespaces that its key allows beside its own.
    pub others: Scope,
}

impl Who {
    /// Who calls, and the session that the request names.
    #[must_use]
    pub fn new(caller: &Caller, named: Option<String>) -> Self {
        Self {
            session: caller.session.as_deref().map(str::to_owned),
            named,
            principal: caller.principal.as_deref().map(str::to_owned),
            others: caller.grant.as_ref().map(|grant| grant.memory.clone()).unwrap_or_default(),
        }
    }

    /// Who made the call that a handler runs.
    #[must_use]
    pub fn of_context(context: &Context) -> Self {
        let named = context.meta(SESSION_META).and_then(|named| named.as_str().map(str::to_owned));
        Self::new(context.caller(), named)
    }

    /// Whether its key allows a namespace that is not its own.
    pub(super) fn reaches(&self, namespace: &Namespace) -> bool {
        let (kind, owner) = namespace.as_str().split_once('/').unwrap_or_default();
        self.others.allows_name(kind, owner)
    }

    /// The namespace of what this caller keeps: its session's where there is one, else that of the session that it names,
    /// else its key's. `None`: nobody knows whose memory it would be.
    ///
    /// The id of a connection's session is not shown: who knows it can speak for its client. A session that a request
    /// names is the key's own: another key that names the same has another one.
    #[must_use]
    pub fn namespace(&self) -> Option<Namespace> {
        if let Some(session) = &self.session {
            return Some(Namespace(format!("session/{}", &digest(session)[..SHOWN_DIGITS])));
        }
        let Some(named) = self.named.as_deref().filter(|named| !named.trim().is_empty()) else {
            return self.key_namespace();
        };
        let named = if is_digest(named) { hidden(named) } else { segment(named) };
        Some(Namespace(match &self.principal {
            Some(principal) => format!("session/{named}@{}", segment(principal)),
            None => format!("session/{named}"),
        }))
    }

    /// The namespace of the caller's key, which all its sessions share.
    #[must_use]
    pub fn key_namespace(&self) -> Option<Namespace> {
        self.principal.as_ref().map(|principal| Namespace(format!("key/{}", segment(principal))))
    }
}

/// Shows what is known, and not what it is: ids of sessions are secrets.
impl fmt::Debug for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Who")
            .field("session", &self.session.is_some())
            .field("named", &self.named.is_some())
            .field("principal", &self.principal)
            .finish()
    }
}

/// A name as one segment of a path. No two names have the same, whatever their case.
fn segment(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.".contains(&byte);
    match (1..=LONGEST_SEGMENT).contains(&name.len()) && name.bytes().all(is_plain) {
        true => name.to_owned(),
        false => hidden(name),
    }
}

/// A name as a segment that no other name has, and that no name is as it is.
fn hidden(name: &str) -> String {
    format!("~{}", &digest(name)[..32])
}

/// Whether this could be what stands for a connection's session: every model of that is shown it, and it opens nothing.
fn is_digest(name: &str) -> bool {
    name.len() == SHOWN_DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit())
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
    fn the_namespace_of_a_caller() {
        #[track_caller]
        fn check(session: &str, named: &str, principal: &str, expected: &str) {
            let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let who = Who {
                session: some(session),
                named: some(named),
                principal: some(principal),
                ..Who::default()
            };
            let namespace = who.namespace().map(|namespace| namespace.to_string()).unwrap_or_default();
            assert_eq!(namespace, expected, "{session:?} {named:?} {principal:?}");
        }
        check("", "", "", "");
        check("", " ", "", "");
        check("", "abc123", "", "session/abc123");
        check("", "", "k7", "key/k7");
        // The session comes first, then the one that is named.
        check("3f2a", "abc123", "k7", "session/10c78973b5c61b1e");
        check("3f2a", "", "", "session/10c78973b5c61b1e");
        check("", "abc123", "k7", "session/abc123@k7");
        // Nobody gets into that of a connection by the name that is shown for it.
        check("", "10c78973b5c61b1e", "", "session/~e1c3b24ea92ad049541bdf436fd47d8c");
        // Nobody gets into another one's by a name that looks like a path, or like another one in another case.
        check("", "abc/x", "", "session/~b7717ebfbf5ef6c99c9e4b435bd255f9");
        check("", "ABC123", "", "session/~e0bebd22819993425814866b62701e29");
        check("", "abc123@k7", "", "session/~fe4cdfac7ed01e4b34d524ed2c43129d");
        check("", "", "Alice", "key/~3bc51062973c458d5a6f2d8d64a02324");
        check("", "~8fce", "", "session/~312662f18b035718d4f2a709122b5d9c");
    }

    #[test]
    fn the_namespace_of_a_path() {
        let check = |path: &str, expected: Option<(&str, &str)>| {
            let found = Namespace::of_path(path);
            let found = found.as_ref().map(|(namespace, rest)| (namespace.as_str(), *rest));
            assert_eq!(found, expected, "{path:?}");
        };
        check("session/abc/notes", Some(("session/abc", "notes")));
        check("Session/ABC/Notes/x", Some(("session/abc", "Notes/x")));
        check("a//b", Some(("a/", "b")));
        for path in ["", "notes", "session/abc", "session/abc/", "/", "//"] {
            check(path, None);
        }
    }

    #[test]
    fn ids_of_sessions_are_not_shown() {
        let who = Who { session: Some("3f2a".into()), named: Some("abc".into()), ..Who::default() };
        assert_eq!(format!("{who:?}"), "Who { session: true, named: true, principal: None }");
    }
}
