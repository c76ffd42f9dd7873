//! Keeps the secrets of a handler out of what is said about it.
//!
//! What a server says in its errors and in its log is not ours, and may repeat what it was given: a header, a variable of
//! its environment. Whoever hands such a text to the log, to the status or to a trace asks the [`Secrets`] of the handler
//! first. What a caller gets of a server, as the result of a call or as the server's own error, is the caller's, and is not
//! looked at.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// What stands in the place of what nobody is to see.
pub const REDACTED: &str = "[REDACTED]";

/// What is shorter is no secret, in bytes: a `1` or a `true` stands in many a text without being repeated there.
const SHORTEST: usize = 6;

/// So many of the secrets are remembered that were read while the gateway runs: a file that is replaced has another one.
const MOST_LEARNT: usize = 8;

/// How much of a text is said, in characters. A server may send a page of HTML as its reason.
const LONGEST: usize = 500;

/// The secrets of one handler. Clones are the same: what one learns all know.
#[derive(Clone, Default)]
pub struct Secrets(Arc<RwLock<Known>>);

#[derive(Default)]
struct Known {
    /// The longest first, so that one that is a part of another leaves nothing of it.
    given: Vec<String>,
    learnt: VecDeque<String>,
}

impl Secrets {
    /// Those of a handler, as its manifest has them.
    #[must_use]
    pub fn new(given: impl IntoIterator<Item = String>) -> Self {
        let secrets = Self::default();
        secrets.set(given);
        secrets
    }

    /// Has these in the place of those of before, as when the manifest is edited. What was learnt stays.
    pub fn set(&self, given: impl IntoIterator<Item = String>) {
        let mut given: Vec<_> =
            given.into_iter().filter(|secret| is_secret(secret)).flat_map(writings).collect();
        given.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        given.dedup();
        self.0.write().unwrap_or_else(PoisonError::into_inner).given = given;
    }

    /// Adds one that was read from a file just now.
    pub fn learn(&self, secret: &str) {
        let is_known = |known: &Known| known.learnt.iter().any(|learnt| learnt == secret);
        if !is_secret(secret) || is_known(&self.0.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.learnt.len() == MOST_LEARNT {
            known.learnt.pop_front();
        }
        known.learnt.push_back(secret.to_owned());
    }

    /// The text without them.
    #[must_use]
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let learnt = known.learnt.iter().flat_map(|secret| writings(secret.clone())).collect::<Vec<_>>();
        let mut hidden = Cow::Borrowed(text);
        for secret in known.given.iter().chain(&learnt) {
            if hidden.contains(secret.as_str()) {
                hidden = Cow::Owned(hidden.replace(secret.as_str(), REDACTED));
            }
        }
        hidden
    }

    /// The beginning of the text without them: as much of it as people read.
    #[must_use]
    pub fn brief<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let hidden = self.hide(text);
        match hidden.char_indices().nth(LONGEST) {
            Some((end, _)) => Cow::Owned(format!("{}…", &hidden[..end])),
            None => hidden,
        }
    }
}

/// There is nothing to show.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

fn is_secret(text: &str) -> bool {
    text.len() >= SHORTEST
}

/// The ways in which a secret is written: as it is, in a JSON string, in a URL, and in base64, as credentials of the scheme
/// `Basic` are.
fn writings(secret: String) -> Vec<String> {
    let json = serde_json::Value::from(&*secret).to_string();
    let mut writings = vec![json[1..json.len() - 1].to_owned(), percent_encoded(&secret)];
    writings.push(STANDARD_NO_PAD.encode(&secret));
    writings.retain(|writing| *writing != secret);
    writings.push(secret);
    writings.sort_by_key(|writing| std::cmp::Reverse(writing.len()));
    writings
}

/// As in a URL (RFC 3986, section 2.3).
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
        let secrets = Secrets::new(secrets.iter().map(|secret| (*secret).to_owned()));
        assert_eq!(secrets.hide(text), expect);
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
    fn what_is_short_is_none() {
        check(&["true", "", "12345"], "true 12345", "true 12345");
    }

    #[test]
    fn what_was_read_last_is_known() {
        let secrets = Secrets::default();
        let other = secrets.clone();
        for number in 0..=MOST_LEARNT {
            other.learn(&format!("secret-{number}"));
            other.learn(&format!("secret-{number}"));
        }
        assert_eq!(secrets.hide("secret-0 secret-1 secret-8"), "secret-0 [REDACTED] [REDACTED]");
    }

    #[test]
    fn a_long_text_is_cut_behind_what_is_hidden() {
        let secrets = Secrets::new(["é".repeat(LONGEST + 1)]);
        let text = "é".repeat(LONGEST + 1) + &"x".repeat(LONGEST);
        assert_eq!(secrets.brief(&text), format!("{REDACTED}{}…", "x".repeat(LONGEST - REDACTED.len())));
        assert_eq!(secrets.brief("short"), "short");
    }

    #[test]
    fn they_do_not_show_themselves() {
        assert_eq!(format!("{:?}", Secrets::new(["hunter2".to_owned()])), "Secrets");
    }
}
