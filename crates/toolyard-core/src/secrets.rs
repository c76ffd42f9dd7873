//! Redacts the secrets of a handler in texts about it.
//!
//! Errors and logs of a server may repeat what it was given: a header, an environment variable. Every text that goes
//! into the log, the status or a trace passes the [`SecretRedactor`] of its handler first. Results of calls and the
//! server's own errors belong to the caller, and are not redacted.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// The replacement of secrets.
pub const REDACTED: &str = "[REDACTED]";

/// Beginning of ids that the gateway seals and hands out, each a right to data that it stands for. Letters, digits, `-`
/// and `_` follow.
pub const SEALED_ID_PREFIX: &str = "tyid_";

/// Returns the text without the sealed ids in it, for logs, traces and the audit trail.
#[must_use]
pub fn hide_sealed_ids(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(SEALED_ID_PREFIX) else { return Cow::Borrowed(text) };
    let (mut hidden, mut rest) = (text[..first].to_owned(), &text[first..]);
    while let Some(id) = rest.strip_prefix(SEALED_ID_PREFIX) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let after = &id[id.find(|c| !is_part(c)).unwrap_or(id.len())..];
        let next = after.find(SEALED_ID_PREFIX).unwrap_or(after.len());
        hidden.push_str(REDACTED);
        hidden.push_str(&after[..next]);
        rest = &after[next..];
    }
    Cow::Owned(hidden)
}

/// Minimum length of secrets in bytes: shorter values such as `true` appear in unrelated texts.
const SHORTEST: usize = 6;

/// Maximum number of secrets that are learnt at run time, such as the values of a rotated file.
const MOST_LEARNT: usize = 8;

/// Maximum length of brief texts, in characters. A server may send a page of HTML as its reason.
const LONGEST: usize = 500;

/// The secrets of one handler. Clones share them.
#[derive(Clone, Default)]
pub struct SecretRedactor(Arc<RwLock<KnownSecrets>>);

#[derive(Default)]
struct KnownSecrets {
    /// Longest first, so that no part of a longer one is left.
    given: Vec<String>,
    learnt: VecDeque<String>,
}

impl SecretRedactor {
    /// Creates a redactor with the secrets of the manifest.
    #[must_use]
    pub fn new(given: impl IntoIterator<Item = String>) -> Self {
        let secrets = Self::default();
        secrets.set(given);
        secrets
    }

    /// Replaces the secrets of the manifest after an edit. Learnt ones stay.
    pub fn set(&self, given: impl IntoIterator<Item = String>) {
        let mut secrets: Vec<_> =
            given.into_iter().filter(|secret| is_secret(secret)).flat_map(writings).collect();
        secrets.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        secrets.dedup();
        self.0.write().unwrap_or_else(PoisonError::into_inner).given = secrets;
    }

    /// Adds a secret that was read at run time.
    pub fn learn(&self, secret: &str) {
        let is_known = |known: &KnownSecrets| known.learnt.iter().any(|learnt| learnt == secret);
        if !is_secret(secret) || is_known(&self.0.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let mut secrets = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if secrets.learnt.len() == MOST_LEARNT {
            secrets.learnt.pop_front();
        }
        secrets.learnt.push_back(secret.to_owned());
    }

    /// Returns the text without secrets.
    #[must_use]
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let secrets = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let learnt = secrets.learnt.iter().flat_map(|secret| writings(secret.clone())).collect::<Vec<_>>();
        let mut hidden = hide_sealed_ids(text);
        for secret in secrets.given.iter().chain(&learnt) {
            if hidden.contains(secret.as_str()) {
                hidden = Cow::Owned(hidden.replace(secret.as_str(), REDACTED));
            }
        }
        hidden
    }

    /// Returns the beginning of the text without secrets, for people.
    #[must_use]
    pub fn brief<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let hidden = self.hide(text);
        match hidden.char_indices().nth(LONGEST) {
            Some((end, _)) => Cow::Owned(format!("{}…", &hidden[..end])),
            None => hidden,
        }
    }
}

/// Shows no secret.
impl fmt::Debug for SecretRedactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

fn is_secret(text: &str) -> bool {
    text.len() >= SHORTEST
}

/// Returns the encodings of a secret: plain, in a JSON string, in a URL, and in base64, as in credentials of the scheme
/// `Basic`.
fn writings(secret: String) -> Vec<String> {
    let json = serde_json::Value::from(&*secret).to_string();
    let mut writings = vec![json[1..json.len() - 1].to_owned(), percent_encoded(&secret)];
    writings.push(STANDARD_NO_PAD.encode(&secret));
    writings.retain(|writing| *writing != secret);
    writings.push(secret);
    writings.sort_by_key(|writing| std::cmp::Reverse(writing.len()));
    writings
}

/// Percent-encodes a text (RFC 3986, section 2.3).
fn percent_encoded(text: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(secrets: &[&str], text: &str, expect: &str) {
        let secrets = SecretRedactor::new(secrets.iter().map(|secret| (*secret).to_owned()));
        assert_eq!(secrets.hide(text), expect);
    }

    #[test]
    fn sealed_ids_are_hidden() {
        let check = |text: &str, expected: &str| {
            assert_eq!(hide_sealed_ids(text), expected, "{text}");
            assert_eq!(SecretRedactor::default().hide(text), expected, "{text}");
        };
        check("", "");
        check("tyid", "tyid");
        check("tyid_", "[REDACTED]");
        check("get session/tyid_Aa0-_z/tool-a-1 now", "get session/[REDACTED]/tool-a-1 now");
        check("tyid_a tyid_b\u{e9}", "[REDACTED] [REDACTED]\u{e9}");
        check(r#"{"key":"tyid_a","x":"tyid_b"}"#, r#"{"key":"[REDACTED]","x":"[REDACTED]"}"#);
    }

    #[test]
    fn secrets_are_hidden_however_they_are_written() {
        check(
            &["hunter2"],
            "the password hunter2 is wrong: hunter2",
            "the password [REDACTED] is wrong: [REDACTED]",
        );
        check(&["me:hunter2"], "Basic bWU6aHVudGVyMg==", "Basic [REDACTED]==");
        check(&["a \"b\" c"], r#"{"key":"a \"b\" c"}"#, r#"{"key":"[REDACTED]"}"#);
        check(&["100% sure"], "/x?key=100%25%20sure&y", "/x?key=[REDACTED]&y");
        check(&["secret", "secret-long"], "secret-long secret", "[REDACTED] [REDACTED]");
    }

    #[test]
    fn short_texts_are_not_secrets() {
        check(&["true", "", "12345"], "true 12345", "true 12345");
    }

    #[test]
    fn latest_secrets_are_redacted() {
        let secrets = SecretRedactor::default();
        let other = secrets.clone();
        for number in 0..=MOST_LEARNT {
            other.learn(&format!("secret-{number}"));
            other.learn(&format!("secret-{number}"));
        }
        assert_eq!(secrets.hide("secret-0 secret-1 secret-8"), "secret-0 [REDACTED] [REDACTED]");
    }

    #[test]
    fn long_text_is_cut_after_redaction() {
        let secrets = SecretRedactor::new(["é".repeat(LONGEST + 1)]);
        let text = "é".repeat(LONGEST + 1) + &"x".repeat(LONGEST);
        assert_eq!(secrets.brief(&text), format!("{REDACTED}{}…", "x".repeat(LONGEST - REDACTED.len())));
        assert_eq!(secrets.brief("short"), "short");
    }

    #[test]
    fn debug_output_omits_secrets() {
        assert_eq!(format!("{:?}", SecretRedactor::new(["hunter2".to_owned()])), "Secrets");
    }
}
