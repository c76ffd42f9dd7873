//! Sessions of browsers: tokens that stand for a key for some hours, so that a page need not keep the key.
//!
//! The holder of a key gets a one-time code, which is short-lived and may be part of a link, and exchanges it for the token
//! of a session. Tokens are in the memory of one gateway, which knows their hashes only. A session ends with its key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use tokio::time::Instant;
use toolyard_core::random::{NoRandomness, hex, random_bytes};

/// Prefix of every token. It is not that of a key.
const TOKEN_PREFIX: &str = "tys_";

/// Prefix of every one-time code.
const CODE_PREFIX: &str = "tyc_";

/// Bytes of a token and of a code.
const SECRET_BYTES: usize = 32;

/// Lifetime of a one-time code.
pub const CODE_LIFETIME: Duration = Duration::from_secs(60);

/// Maximum number of codes that wait for their exchange; beyond it the oldest one is invalid.
const MAX_CODES: usize = 100;

type SecretDigest = [u8; 32];

/// The sessions of a gateway.
#[derive(Debug)]
pub struct KeySessions {
    max_sessions: usize,
    lifetime: Duration,
    table: Mutex<SessionTable>,
}

#[derive(Debug, Default)]
struct SessionTable {
    codes: HashMap<SecretDigest, KeyUntil>,
    sessions: HashMap<SecretDigest, KeyUntil>,
}

/// The key behind a code or a session, and its end.
#[derive(Debug, Clone)]
struct KeyUntil {
    key: Arc<str>,
    end: Instant,
}

/// A new session.
pub struct NewSession {
    /// The token. It is not stored.
    pub token: String,
    /// Id of the key.
    pub key: Arc<str>,
    /// End of the session.
    pub expires: SystemTime,
}

impl Default for KeySessions {
    fn default() -> Self {
        Self::new(1_000, Duration::from_secs(12 * 60 * 60))
    }
}

impl KeySessions {
    /// Creates a table of at most `max_sessions` sessions, each of which lasts for `lifetime`.
    #[must_use]
    pub fn new(max_sessions: usize, lifetime: Duration) -> Self {
        Self { max_sessions, lifetime, table: Mutex::default() }
    }

    /// Creates a one-time code for a key.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub fn create_code(&self, key: Arc<str>) -> Result<String, NoRandomness> {
        let code = secret(CODE_PREFIX)?;
        let entry = KeyUntil { key, end: Instant::now() + CODE_LIFETIME };
        insert(&mut self.table().codes, digest(&code), entry, MAX_CODES);
        Ok(code)
    }

    /// Exchanges a one-time code for a session. `None`: the code is unknown, was used, or has expired.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub fn exchange(&self, code: &str) -> Result<Option<NewSession>, NoRandomness> {
        let Some(KeyUntil { key, end }) = self.table().codes.remove(&digest(code)) else { return Ok(None) };
        if end <= Instant::now() {
            return Ok(None);
        }
        let token = secret(TOKEN_PREFIX)?;
        let entry = KeyUntil { key: key.clone(), end: Instant::now() + self.lifetime };
        insert(&mut self.table().sessions, digest(&token), entry, self.max_sessions);
        Ok(Some(NewSession { token, key, expires: SystemTime::now() + self.lifetime }))
    }

    /// Ends the session of a token. Returns true if there was one.
    pub fn end(&self, token: &str) -> bool {
        self.table().sessions.remove(&digest(token)).is_some()
    }

    /// True if a text has the form of a token.
    pub(super) fn is_token(text: &str) -> bool {
        text.starts_with(TOKEN_PREFIX)
    }

    /// Returns the id of the key behind a token, and the end of the session.
    pub(super) fn key_of(&self, token: &str) -> Option<(Arc<str>, SystemTime)> {
        let KeyUntil { key, end } = self.table().sessions.get(&digest(token))?.clone();
        let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        Some((key, SystemTime::now() + left))
    }

    fn table(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn secret(prefix: &str) -> Result<String, NoRandomness> {
    Ok(format!("{prefix}{}", hex(&random_bytes::<SECRET_BYTES>()?)))
}

/// Tokens are looked up by their digest, so that timing reveals nothing about them.
fn digest(secret: &str) -> SecretDigest {
    Sha256::digest(secret).into()
}

/// Adds an entry. If there are too many, those that have ended are removed, or else the one that ends first.
fn insert(entries: &mut HashMap<SecretDigest, KeyUntil>, digest: SecretDigest, entry: KeyUntil, max: usize) {
    if entries.len() >= max {
        let now = Instant::now();
        entries.retain(|_, entry| entry.end > now);
    }
    if entries.len() >= max
        && let Some(first) = entries.iter().min_by_key(|(_, entry)| entry.end).map(|(digest, _)| *digest)
    {
        entries.remove(&first);
    }
    entries.insert(digest, entry);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(sessions: &KeySessions, key: &str) -> String {
        let code = sessions.create_code(key.into()).expect("a code");
        sessions.exchange(&code).expect("random bytes").expect("a session").token
    }

    fn key_of(sessions: &KeySessions, token: &str) -> Option<String> {
        sessions.key_of(token).map(|(key, _)| key.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn code_is_exchanged_once_within_a_minute() {
        let sessions = KeySessions::default();
        let is_exchanged = |code: &str| sessions.exchange(code).expect("random bytes").is_some();
        let code = sessions.create_code("a".into()).expect("a code");
        assert!(is_exchanged(&code));
        assert!(!is_exchanged(&code));
        let late = sessions.create_code("a".into()).expect("a code");
        tokio::time::advance(CODE_LIFETIME).await;
        assert!(!is_exchanged(&late));
        assert!(!is_exchanged("tyc_00"));
    }

    #[tokio::test(start_paused = true)]
    async fn session_ends_after_its_lifetime_or_at_its_end() {
        let sessions = KeySessions::new(10, Duration::from_secs(60));
        let (one, other) = (session(&sessions, "a"), session(&sessions, "b"));
        assert_eq!(key_of(&sessions, &one).as_deref(), Some("a"));
        assert!(sessions.end(&one) && !sessions.end(&one));
        assert_eq!(key_of(&sessions, &one), None);
        assert_eq!(key_of(&sessions, &other).as_deref(), Some("b"));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(key_of(&sessions, &other), None);
    }

    #[tokio::test(start_paused = true)]
    async fn oldest_session_beyond_the_limit_ends() {
        let sessions = KeySessions::new(2, Duration::from_secs(60));
        let mut tokens = Vec::new();
        for key in ["a", "b", "c"] {
            tokens.push(session(&sessions, key));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let keys: Vec<_> = tokens.iter().map(|token| key_of(&sessions, token)).collect();
        assert_eq!(keys, [None, Some("b".to_owned()), Some("c".to_owned())]);
    }

    #[test]
    fn code_is_no_token() {
        let sessions = KeySessions::default();
        let code = sessions.create_code("a".into()).expect("a code");
        assert_eq!(key_of(&sessions, &code), None);
        assert!(!KeySessions::is_token(&code));
    }
}
