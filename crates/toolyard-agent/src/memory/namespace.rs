//! The namespace of a caller.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use sha2::{Digest, Sha256};
use toolyard_core::access::AccessScope;
use toolyard_core::random::hex;
use toolyard_core::{Call, Caller, CallerPeer, SESSION_META};
use toolyard_manifest::SharedMemory;
use toolyard_sdk::Context;

use super::session_ids::is_sealed_id;

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

    /// Returns the id of the key that the namespace belongs to. An id that is no valid segment is hashed.
    #[must_use]
    pub fn key_id(&self) -> Option<&str> {
        match self.0.split_once('/')? {
            ("key", key) => Some(key),
            ("session", owner) => owner.rsplit_once('@').map(|(_, key)| key),
            _ => None,
        }
    }

    /// Returns `true` for the namespace of a session without a key. Such namespaces share a part of the memory. Those of
    /// sessions of a key end with the key.
    pub(super) fn is_keyless(&self) -> bool {
        self.0.strip_prefix("session/").is_some_and(|owner| !owner.contains('@'))
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
    /// Session that the request names: a handle, or with a key any name.
    pub named: Option<String>,
    /// Id of the caller's key.
    pub principal: Option<String>,
    /// Other end of the client's connection.
    pub peer: CallerPeer,
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
            peer: caller.peer,
            others: caller.grant.as_ref().map(|grant| grant.memory.clone()).unwrap_or_default(),
        }
    }

    /// Returns the identity of the caller of a tool.
    #[must_use]
    pub fn of_context(context: &Context) -> Self {
        let named_session = context.meta(SESSION_META).and_then(|named| named.as_str().map(str::to_owned));
        Self::new(context.caller(), named_session)
    }

    /// Returns the identity of the caller of a call.
    #[must_use]
    pub fn of_call(call: &Call) -> Self {
        Self::new(&call.caller, call.meta.get_str(SESSION_META).map(Cow::into_owned))
    }

    /// Returns `true` if the caller's key may access a namespace that is not its own.
    pub(super) fn reaches(&self, namespace: &MemoryNamespace) -> bool {
        let (kind, owner) = namespace.as_str().split_once('/').unwrap_or_default();
        self.others.allows_name(kind, owner)
    }

    /// Returns the namespace of the caller's entries. With a key it is that of the session, or else of the session that
    /// the request names, or else of the key; without one it is that of the user, or else of local callers if they
    /// share one, or else of the session. `None`: only a handle can give the caller a namespace, or it has one already.
    ///
    /// The id of a connection's session stays secret, because it authorizes requests of its client. Sessions of a key
    /// belong to the key: another key that names the same session has another namespace.
    #[must_use]
    pub fn namespace(&self, shared: SharedMemory) -> Option<MemoryNamespace> {
        let session = self.session.as_deref().map(|session| digest(session)[..DIGEST_DIGITS].to_owned());
        match (&self.principal, session) {
            (Some(principal), Some(session)) => {
                Some(MemoryNamespace(format!("session/{session}@{}", segment(principal))))
            }
            (Some(principal), None) => match self.session_name() {
                Some(named) => {
                    Some(MemoryNamespace(format!("session/{}@{}", segment(named), segment(principal))))
                }
                None => self.key_namespace(),
            },
            (None, session) => match self.peer {
                CallerPeer::User(user) => Some(MemoryNamespace(format!("user/{user}"))),
                CallerPeer::Address(address) if shared == SharedMemory::Loopback && address.is_loopback() => {
                    Some(MemoryNamespace("shared/loopback".to_owned()))
                }
                _ => session.map(|session| MemoryNamespace(format!("session/{session}"))),
            },
        }
    }

    /// Returns the namespace of the caller's key, which all sessions of the key share.
    #[must_use]
    pub fn key_namespace(&self) -> Option<MemoryNamespace> {
        self.principal.as_ref().map(|principal| MemoryNamespace(format!("key/{}", segment(principal))))
    }

    /// Returns the handle that the request has, whether it is valid or not.
    pub(super) fn handle(&self) -> Option<&str> {
        self.named.as_deref().filter(|named| is_sealed_id(named))
    }

    /// Returns the name of a session that the caller has chosen, which takes a key.
    pub(super) fn session_name(&self) -> Option<&str> {
        self.principal.as_ref()?;
        self.named.as_deref().filter(|named| !named.trim().is_empty() && !is_sealed_id(named))
    }

    /// Returns the address that the entries of a caller without a key count for.
    pub(super) fn address(&self) -> String {
        match self.peer {
            CallerPeer::Address(address) if address.is_loopback() => "loopback".to_owned(),
            // One customer of a provider has a whole /64 (RFC 6177).
            CallerPeer::Address(IpAddr::V6(address)) => {
                Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).to_string()
            }
            CallerPeer::Address(address) => address.to_string(),
            CallerPeer::User(_) | CallerPeer::Unknown => String::new(),
        }
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

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_of_a_caller() {
        #[track_caller]
        fn check_from(peer: CallerPeer, shared: SharedMemory, parts: [&str; 3], expected: &str) {
            let [session, named, principal] = parts.map(|text| (!text.is_empty()).then(|| text.to_owned()));
            let caller = MemoryCaller { session, named, principal, peer, ..MemoryCaller::default() };
            let namespace = caller.namespace(shared);
            let text = namespace.as_ref().map(ToString::to_string).unwrap_or_default();
            assert_eq!(text, expected, "{peer:?} {parts:?}");
            let is_session = expected.starts_with("session/");
            assert_eq!(
                namespace.is_some_and(|namespace| namespace.is_keyless()),
                is_session && parts[2].is_empty()
            );
        }
        let check = |session: &str, named: &str, principal: &str, expected: &str| {
            check_from(CallerPeer::Unknown, SharedMemory::None, [session, named, principal], expected);
        };
        check("", "", "", "");
        // Without a key a name opens nothing.
        check("", "abc123", "", "");
        check("3f2a", "abc123", "", "session/10c78973b5c61b1e");
        check("", "", "k7", "key/k7");
        check("", " ", "k7", "key/k7");
        // The session comes first, then the named session.
        check("3f2a", "abc123", "k7", "session/10c78973b5c61b1e@k7");
        check("3f2a", "", "", "session/10c78973b5c61b1e");
        check("", "abc123", "k7", "session/abc123@k7");
        // A name that looks like a path, or like another name in another case, or like a key, is another segment.
        check("", "abc/x", "k7", "session/~b7717ebfbf5ef6c99c9e4b435bd255f9@k7");
        check("", "ABC123", "k7", "session/~e0bebd22819993425814866b62701e29@k7");
        check("", "abc123@k8", "k7", "session/~b4094ec180454cd9aa89036257d59ed7@k7");
        check("", "", "Alice", "key/~3bc51062973c458d5a6f2d8d64a02324");
        check("", "", "a@b", "key/~7508d8b5018ea640b85269861a101203");
        // A handle is no name.
        check("", "tyid_abc", "k7", "key/k7");

        let local = CallerPeer::Address(IpAddr::from([127, 0, 0, 2]));
        let remote = CallerPeer::Address(IpAddr::from([192, 0, 2, 7]));
        let user = CallerPeer::User(1000);
        for session in ["", "3f2a"] {
            check_from(user, SharedMemory::Loopback, [session, "abc", ""], "user/1000");
            check_from(local, SharedMemory::Loopback, [session, "abc", ""], "shared/loopback");
            check_from(
                local,
                SharedMemory::Loopback,
                [session, "abc", "k7"],
                if session.is_empty() { "session/abc@k7" } else { "session/10c78973b5c61b1e@k7" },
            );
        }
        check_from(local, SharedMemory::None, ["", "abc", ""], "");
        check_from(remote, SharedMemory::Loopback, ["", "abc", ""], "");
        check_from(remote, SharedMemory::Loopback, ["3f2a", "", ""], "session/10c78973b5c61b1e");
    }

    #[test]
    fn entries_count_for_an_address() {
        let check = |address: &str, expected: &str| {
            let peer = CallerPeer::Address(address.parse().expect("an address"));
            assert_eq!(MemoryCaller { peer, ..MemoryCaller::default() }.address(), expected, "{address}");
        };
        check("127.9.9.9", "loopback");
        check("::1", "loopback");
        check("192.0.2.7", "192.0.2.7");
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
        check("2001:db8:1:2::9", "2001:db8:1:2::");
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
