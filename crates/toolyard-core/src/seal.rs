//! Text that travels through a client: encrypted and authenticated, so that the client can neither read nor change it.
//!
//! MCP 2026-07-28 (basic/patterns/mrtr, server requirements 4 and 5) requires that the state of a call that asks for
//! input is bound to the caller and the call, and expires.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{CallTarget, Caller, CompletionReference, Json};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, Salt};
use serde_json::{Value, json};

/// First byte of a sealed text: the version of the format.
const VERSION: u8 = 1;

/// Each text is sealed with a key of its own, derived from the sealer's key and this many random bytes. So two
/// processes with the same key can seal any number of texts without repeating a pair of key and nonce.
const SALT_LEN: usize = 16;

/// The HKDF info of derived keys.
const KEY_INFO: &[u8] = b"toolyard seal";

/// Seals texts, and opens texts that were sealed with the same key (AES-256-GCM).
#[derive(Clone)]
pub struct StateSealer {
    /// `None` if the system provides no random bytes; then no text opens.
    key: Option<[u8; 32]>,
}

/// The reason why a sealed text cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    /// Sealed with another key or for another context, or modified.
    #[error("the sealed text is invalid")]
    Tampered,
    /// Expired.
    #[error("the sealed text has expired")]
    Expired,
}

impl StateSealer {
    /// Creates a sealer with a random key. Its texts do not survive a restart.
    #[must_use]
    pub fn random() -> Self {
        Self { key: random_bytes().ok() }
    }

    /// Creates a sealer with a key that several processes may share. The key needs the entropy of 32 random bytes.
    #[must_use]
    pub const fn with_key(key: [u8; 32]) -> Self {
        Self { key: Some(key) }
    }

    /// Seals `payload` for `ttl`. The text consists of letters, digits, `-` and `_`, and differs each time. It opens
    /// only for the same `context`, which is not part of the text: use it for the caller and the call.
    ///
    /// Returns an empty text, which never opens, if the system provides no random bytes.
    #[must_use]
    pub fn seal(&self, context: &[u8], payload: &[u8], ttl: Duration) -> String {
        let expires =
            millis(SystemTime::now()).saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        self.try_seal(context, payload, expires).unwrap_or_default()
    }

    /// Seals `payload` until a time, as [`Self::seal`] does.
    #[must_use]
    pub fn seal_until(&self, context: &[u8], payload: &[u8], expires: SystemTime) -> String {
        self.try_seal(context, payload, millis(expires)).unwrap_or_default()
    }

    fn try_seal(&self, context: &[u8], payload: &[u8], expires: u64) -> Result<String, Unspecified> {
        let salt: [u8; SALT_LEN] = random_bytes()?;
        let mut sealed = expires.to_be_bytes().to_vec();
        sealed.extend_from_slice(payload);
        self.derive_key(&salt)?.seal_in_place_append_tag(nonce(), Aad::from(context), &mut sealed)?;
        Ok(BASE64.encode([&[VERSION], &salt[..], &sealed].concat()))
    }

    /// Opens a text that was sealed for `context`.
    ///
    /// # Errors
    /// When the text was not sealed with this key for this context, or has expired.
    pub fn open(&self, context: &[u8], text: &str) -> Result<Vec<u8>, UnsealError> {
        self.open_at(context, text, SystemTime::now())
    }

    /// Opens a text that was sealed for `context`, at a time.
    ///
    /// # Errors
    /// When the text was not sealed with this key for this context, or has expired by then.
    pub fn open_at(&self, context: &[u8], text: &str, now: SystemTime) -> Result<Vec<u8>, UnsealError> {
        let (expires, payload) = self.try_open(context, text).ok_or(UnsealError::Tampered)?;
        if millis(now) >= expires {
            return Err(UnsealError::Expired);
        }
        Ok(payload)
    }

    fn try_open(&self, context: &[u8], text: &str) -> Option<(u64, Vec<u8>)> {
        let bytes = BASE64.decode(text).ok()?;
        let (salt, sealed) = bytes.strip_prefix(&[VERSION])?.split_first_chunk::<SALT_LEN>()?;
        let mut sealed = sealed.to_vec();
        let plaintext =
            self.derive_key(salt).ok()?.open_in_place(nonce(), Aad::from(context), &mut sealed).ok()?;
        let (expires, payload) = plaintext.split_first_chunk()?;
        Some((u64::from_be_bytes(*expires), payload.to_vec()))
    }

    fn derive_key(&self, salt: &[u8; SALT_LEN]) -> Result<LessSafeKey, Unspecified> {
        let secret = Salt::new(HKDF_SHA256, salt).extract(&self.key.ok_or(Unspecified)?);
        let key = secret.expand(&[KEY_INFO], &AES_256_GCM).map(UnboundKey::from)?;
        Ok(LessSafeKey::new(key))
    }
}

/// The binding of a call's state: the caller, the target and the arguments. The formatting of the arguments makes no
/// difference, so that an intermediary may rewrite them.
#[must_use]
pub fn binding(target: &CallTarget, arguments: Option<&Json>, caller: &Caller) -> Vec<u8> {
    let mut arguments = arguments.map_or_else(|| json!({}), Json::to_value);
    arguments.sort_all_objects();
    let caller = [caller.session.as_deref(), caller.principal.as_deref()];
    let binding: Value = json!(["state", target_kind(target), &**target.name(), caller, arguments]);
    binding.to_string().into_bytes()
}

const fn target_kind(target: &CallTarget) -> &'static str {
    match target {
        CallTarget::Tool(_) => "tool",
        CallTarget::Prompt(_) => "prompt",
        CallTarget::Resource(_) => "resource",
        CallTarget::Completion(CompletionReference::Prompt(_)) => "prompt argument",
        CallTarget::Completion(CompletionReference::Template(_)) => "template variable",
        CallTarget::Task(_) => "task",
        CallTarget::Function(_) => "function",
    }
}

impl fmt::Debug for StateSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer")
    }
}

/// The constant nonce: no derived key is used twice.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

fn random_bytes<const N: usize>() -> Result<[u8; N], Unspecified> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Unspecified)?;
    Ok(bytes)
}

/// Milliseconds since the Unix epoch.
fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.map_or(u64::MAX, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn sealed_text_opens_for_the_same_context() {
        let one = StateSealer::with_key([7; 32]);
        let other = StateSealer::with_key([7; 32]);
        for payload in [&b""[..], b"state", &[0; 10_000]] {
            for context in [&b""[..], b"tool greet", &[255; 300]] {
                let text = one.seal(context, payload, HOUR);
                assert_eq!(other.open(context, &text).as_deref(), Ok(payload));
            }
        }
        let random = StateSealer::random();
        assert_eq!(random.open(b"c", &random.seal(b"c", b"p", Duration::MAX)).as_deref(), Ok(&b"p"[..]));
    }

    #[test]
    fn sealed_texts_are_printable_and_unique() {
        let sealer = StateSealer::random();
        let texts = [(); 2].map(|()| sealer.seal(b"c", b"secret state", HOUR));
        assert_ne!(texts[0], texts[1]);
        for text in texts {
            assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{text}");
            let bytes = BASE64.decode(text).unwrap();
            assert!(!bytes.windows(6).any(|window| window == b"secret"));
        }
    }

    #[test]
    fn modified_text_does_not_open() {
        let sealer = StateSealer::with_key([7; 32]);
        let text = sealer.seal(b"context", b"state", HOUR);
        let bytes = BASE64.decode(&text).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let plaintext = sealer.open(b"context", &BASE64.encode(changed));
            assert_eq!(plaintext, Err(UnsealError::Tampered), "byte {at}");
            assert_eq!(sealer.open(b"context", &BASE64.encode(&bytes[..at])), Err(UnsealError::Tampered));
        }
        for text in ["", "!", "AQ", &format!("{text}AA"), &format!("{text}=")] {
            assert_eq!(sealer.open(b"context", text), Err(UnsealError::Tampered), "{text}");
        }
    }

    #[test]
    fn another_context_key_or_time_does_not_open() {
        let sealer = StateSealer::with_key([7; 32]);
        let text = sealer.seal(b"context", b"state", HOUR);
        assert_eq!(sealer.open(b"contexT", &text), Err(UnsealError::Tampered));
        assert_eq!(StateSealer::with_key([8; 32]).open(b"context", &text), Err(UnsealError::Tampered));
        assert_eq!(StateSealer::random().open(b"context", &text), Err(UnsealError::Tampered));
        let text = sealer.seal(b"context", b"state", Duration::ZERO);
        assert_eq!(sealer.open(b"context", &text), Err(UnsealError::Expired));
        assert_eq!(
            sealer.open(b"other", &text),
            Err(UnsealError::Tampered),
            "who may not read it learns nothing"
        );
    }

    #[test]
    fn without_a_key_nothing_opens() {
        let sealer = StateSealer { key: None };
        assert_eq!(sealer.seal(b"c", b"p", HOUR), "");
        assert_eq!(sealer.open(b"c", ""), Err(UnsealError::Tampered));
        assert_eq!(format!("{:?}", StateSealer::with_key([7; 32])), "Sealer");
    }
}
