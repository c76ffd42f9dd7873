//! Text that travels through a client and comes back as it went: nobody reads it on the way, and nobody
//! changes it unnoticed.
//!
//! MCP 2026-07-28 (basic/patterns/mrtr, server requirements 4 and 5) wants the state of a call that asks its
//! client bound to who asked for what, and good for a short time only.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, Salt};
use serde_json::{Value, json};
use toolyard_core::{Caller, Json, Reference, Target};

/// The first byte of what is sealed, so that another way of sealing can be told from this one.
const VERSION: u8 = 1;

/// Each text is sealed with a key of its own, made of the sealer's and of as many random bytes: two processes
/// that share a key may seal any number of texts without ever using a key and a nonce together twice.
const SALT_LEN: usize = 16;

/// What keys are made for.
const PURPOSE: &[u8] = b"toolyard seal";

/// Seals texts, and opens what it or another one with the same key has sealed. AES-256-GCM.
#[derive(Clone)]
pub struct Sealer {
    /// `None` where the system had no random bytes to make one of: then nothing opens.
    key: Option<[u8; 32]>,
}

/// Why a text does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsealed {
    /// It was not sealed with this key, or for this context, or it was changed since.
    #[error("it was not sealed here, not for this, or it was changed")]
    Tampered,
    /// Its time is up.
    #[error("it has expired")]
    Expired,
}

impl Sealer {
    /// A sealer with a key that nobody else has: what it seals is worthless after a restart.
    #[must_use]
    pub fn random() -> Self {
        Self { key: random_bytes().ok() }
    }

    /// A sealer with this key, which several processes may share. It has to be as hard to guess as 32 random
    /// bytes are.
    #[must_use]
    pub const fn with_key(key: [u8; 32]) -> Self {
        Self { key: Some(key) }
    }

    /// Seals `payload` for this long. The text is made of letters, digits, `-` and `_`, and is different each
    /// time. It opens for the same `context` only, which does not travel with it: say there who called what.
    ///
    /// Where that cannot be done, because the system has no random bytes, the text is empty and opens nowhere.
    #[must_use]
    pub fn seal(&self, context: &[u8], payload: &[u8], ttl: Duration) -> String {
        self.try_seal(context, payload, ttl).unwrap_or_default()
    }

    fn try_seal(&self, context: &[u8], payload: &[u8], ttl: Duration) -> Result<String, Unspecified> {
        let salt: [u8; SALT_LEN] = random_bytes()?;
        let mut sealed = now().saturating_add(millis(ttl)).to_be_bytes().to_vec();
        sealed.extend_from_slice(payload);
        self.key_of(&salt)?.seal_in_place_append_tag(nonce(), Aad::from(context), &mut sealed)?;
        Ok(BASE64.encode([&[VERSION], &salt[..], &sealed].concat()))
    }

    /// What was sealed for this context.
    ///
    /// # Errors
    /// When the text was not sealed so, or its time is up.
    pub fn open(&self, context: &[u8], text: &str) -> Result<Vec<u8>, Unsealed> {
        let (expires, payload) = self.try_open(context, text).ok_or(Unsealed::Tampered)?;
        if now() >= expires {
            return Err(Unsealed::Expired);
        }
        Ok(payload)
    }

    fn try_open(&self, context: &[u8], text: &str) -> Option<(u64, Vec<u8>)> {
        let bytes = BASE64.decode(text).ok()?;
        let (salt, sealed) = bytes.strip_prefix(&[VERSION])?.split_first_chunk::<SALT_LEN>()?;
        let mut sealed = sealed.to_vec();
        let opened = self.key_of(salt).ok()?.open_in_place(nonce(), Aad::from(context), &mut sealed).ok()?;
        let (expires, payload) = opened.split_first_chunk()?;
        Some((u64::from_be_bytes(*expires), payload.to_vec()))
    }

    fn key_of(&self, salt: &[u8; SALT_LEN]) -> Result<LessSafeKey, Unspecified> {
        let secret = Salt::new(HKDF_SHA256, salt).extract(&self.key.ok_or(Unspecified)?);
        let key = secret.expand(&[PURPOSE], &AES_256_GCM).map(UnboundKey::from)?;
        Ok(LessSafeKey::new(key))
    }
}

/// What a state is bound to that belongs to a call: who calls what, and with what. How the arguments are written makes
/// no difference, so that who relays the call may write them anew.
#[must_use]
pub fn binding(target: &Target, arguments: Option<&Json>, caller: &Caller) -> Vec<u8> {
    let mut arguments = arguments.map_or_else(|| json!({}), Json::to_value);
    arguments.sort_all_objects();
    let caller = [caller.session.as_deref(), caller.principal.as_deref()];
    let binding: Value = json!(["state", kind(target), &**target.name(), caller, arguments]);
    binding.to_string().into_bytes()
}

const fn kind(target: &Target) -> &'static str {
    match target {
        Target::Tool(_) => "tool",
        Target::Prompt(_) => "prompt",
        Target::Resource(_) => "resource",
        Target::Completion(Reference::Prompt(_)) => "prompt argument",
        Target::Completion(Reference::Template(_)) => "template variable",
        Target::Task(_) => "task",
        Target::Function(_) => "function",
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer")
    }
}

/// Always the same one: no key seals twice.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

fn random_bytes<const N: usize>() -> Result<[u8; N], Unspecified> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Unspecified)?;
    Ok(bytes)
}

/// Milliseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(u64::MAX, millis)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn what_was_sealed_opens_for_the_same_context() {
        let one = Sealer::with_key([7; 32]);
        let other = Sealer::with_key([7; 32]);
        for payload in [&b""[..], b"state", &[0; 10_000]] {
            for context in [&b""[..], b"tool greet", &[255; 300]] {
                let text = one.seal(context, payload, HOUR);
                assert_eq!(other.open(context, &text).as_deref(), Ok(payload));
            }
        }
        let random = Sealer::random();
        assert_eq!(random.open(b"c", &random.seal(b"c", b"p", Duration::MAX)).as_deref(), Ok(&b"p"[..]));
    }

    #[test]
    fn a_text_is_made_of_letters_and_never_the_same() {
        let sealer = Sealer::random();
        let texts = [(); 2].map(|()| sealer.seal(b"c", b"secret state", HOUR));
        assert_ne!(texts[0], texts[1]);
        for text in texts {
            assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{text}");
            let bytes = BASE64.decode(text).unwrap();
            assert!(!bytes.windows(6).any(|window| window == b"secret"));
        }
    }

    #[test]
    fn what_was_changed_does_not_open() {
        let sealer = Sealer::with_key([7; 32]);
        let text = sealer.seal(b"context", b"state", HOUR);
        let bytes = BASE64.decode(&text).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let opened = sealer.open(b"context", &BASE64.encode(changed));
            assert_eq!(opened, Err(Unsealed::Tampered), "byte {at}");
            assert_eq!(sealer.open(b"context", &BASE64.encode(&bytes[..at])), Err(Unsealed::Tampered));
        }
        for text in ["", "!", "AQ", &format!("{text}AA"), &format!("{text}=")] {
            assert_eq!(sealer.open(b"context", text), Err(Unsealed::Tampered), "{text}");
        }
    }

    #[test]
    fn another_context_key_or_time_does_not_open() {
        let sealer = Sealer::with_key([7; 32]);
        let text = sealer.seal(b"context", b"state", HOUR);
        assert_eq!(sealer.open(b"contexT", &text), Err(Unsealed::Tampered));
        assert_eq!(Sealer::with_key([8; 32]).open(b"context", &text), Err(Unsealed::Tampered));
        assert_eq!(Sealer::random().open(b"context", &text), Err(Unsealed::Tampered));
        let text = sealer.seal(b"context", b"state", Duration::ZERO);
        assert_eq!(sealer.open(b"context", &text), Err(Unsealed::Expired));
        assert_eq!(
            sealer.open(b"other", &text),
            Err(Unsealed::Tampered),
            "who may not read it learns nothing"
        );
    }

    #[test]
    fn without_a_key_nothing_opens() {
        let sealer = Sealer { key: None };
        assert_eq!(sealer.seal(b"c", b"p", HOUR), "");
        assert_eq!(sealer.open(b"c", ""), Err(Unsealed::Tampered));
        assert_eq!(format!("{:?}", Sealer::with_key([7; 32])), "Sealer");
    }
}
