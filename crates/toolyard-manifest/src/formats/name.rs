//! Names, by the rules of Kubernetes.

use std::fmt;

use super::FormatError;

/// The name of a handler: a DNS label, unique among all handlers of a gateway.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandlerName(String);

impl HandlerName {
    /// Parses a name: at most 63 lower-case letters, digits and `-`, which neither starts nor ends with `-`.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        label(text, "a handler name").map(Self)
    }

    /// The name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for HandlerName {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for HandlerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The name of a namespace: a DNS label.
pub(crate) fn namespace(text: &str) -> Result<String, FormatError> {
    label(text, "a namespace")
}

/// The name of a Kubernetes service: a DNS label.
pub(crate) fn service_name(text: &str) -> Result<String, FormatError> {
    label(text, "the name of a service")
}

/// The name of a port of a Kubernetes service (RFC 6335, section 5.1).
pub(crate) fn port_name(text: &str) -> Result<String, FormatError> {
    let invalid =
        FormatError::new("the name of a port", "at most 15 lower-case letters, digits and `-`, such as http");
    if text.len() <= 15 && is_label(text) { Ok(text.to_owned()) } else { Err(invalid) }
}

/// The key of a label: a name, with the domain of its author before a `/` if it has one.
pub(crate) fn label_key(text: &str) -> Result<(), FormatError> {
    let invalid = FormatError::new(
        "the key of a label",
        "at most 63 letters, digits, `-`, `_` and `.`, such as app or example.com/team",
    );
    let (domain, name) = text.split_once('/').map_or((None, text), |(domain, name)| (Some(domain), name));
    let is_domain = |domain: &str| domain.len() <= 253 && domain.split('.').all(is_label);
    let is_valid = !name.is_empty() && is_label_text(name) && domain.is_none_or(is_domain);
    if is_valid { Ok(()) } else { Err(invalid) }
}

/// The value of a label, which may be empty.
pub(crate) fn label_value(text: &str) -> Result<String, FormatError> {
    let invalid = FormatError::new(
        "the value of a label",
        "at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at either end",
    );
    if is_label_text(text) { Ok(text.to_owned()) } else { Err(invalid) }
}

fn is_label_text(text: &str) -> bool {
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let is_end = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63 && bytes.iter().all(is_inner) && is_end(bytes.first()) && is_end(bytes.last())
}

/// The name of a tool, by the rule of the contract.
pub(crate) fn tool_name(text: &str) -> Result<String, FormatError> {
    let invalid = FormatError::new(
        "the name of a tool",
        "at most 64 lower-case letters, digits and `_`, with a letter first, such as get_user",
    );
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let valid =
        text.len() <= 64 && text.bytes().all(inner) && text.starts_with(|c: char| c.is_ascii_lowercase());
    if valid { Ok(text.to_owned()) } else { Err(invalid) }
}

/// The upstream name of a tool or an argument: any non-empty string.
pub(crate) fn non_empty_name(text: &str) -> Result<(), FormatError> {
    let invalid = FormatError::new("the name of a tool or of an argument", "at least one character");
    if text.is_empty() { Err(invalid) } else { Ok(()) }
}

/// A tool name that models can call.
pub(crate) fn published_name(text: &str) -> Result<String, FormatError> {
    let invalid = FormatError::new(
        "a name that models can call",
        "at most 64 letters, digits, `_` and `-`, such as get_user",
    );
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    let valid = (1..=64).contains(&text.len()) && text.bytes().all(inner);
    if valid { Ok(text.to_owned()) } else { Err(invalid) }
}

/// The name of a registry: a DNS subdomain, which is a sequence of labels with dots between them.
pub(crate) fn registry_name(text: &str) -> Result<String, FormatError> {
    let invalid = FormatError::new(
        "the name of a resource",
        "at most 253 lower-case letters, digits, `-` and `.`, such as agent-tools",
    );
    let valid = text.len() <= 253 && text.split('.').all(is_label);
    if valid { Ok(text.to_owned()) } else { Err(invalid) }
}

fn label(text: &str, noun: &'static str) -> Result<String, FormatError> {
    let invalid = FormatError::new(noun, "at most 63 lower-case letters, digits and `-`, such as code-tools");
    let valid = text.len() <= 63 && is_label(text);
    if valid { Ok(text.to_owned()) } else { Err(invalid) }
}

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handler_name_is_a_dns_label() {
        for text in ["a", "9", "code-tools", "a--b", &"a".repeat(63)] {
            assert_eq!(HandlerName::parse(text).unwrap().as_str(), text);
        }
        for text in ["", "-", "a-", "-a", "A", "a_b", "a.b", "é", "a b", &"a".repeat(64)] {
            assert!(HandlerName::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn tool_name_is_a_word_with_underscores() {
        for text in ["a", "get_user_2", &"a".repeat(64)] {
            assert_eq!(tool_name(text).unwrap(), text);
        }
        for text in ["", "_a", "2a", "A", "a-b", "a.b", &"a".repeat(65)] {
            assert!(tool_name(text).is_err(), "{text}");
        }
    }

    #[test]
    fn published_name_has_letters_digits_and_two_signs() {
        for text in ["a", "-", "get_User-2", &"a".repeat(64)] {
            assert_eq!(published_name(text).unwrap(), text);
        }
        for text in ["", "a.b", "a b", "é", &"a".repeat(65)] {
            assert!(published_name(text).is_err(), "{text}");
        }
    }

    #[test]
    fn registry_name_may_have_dots() {
        for text in ["agent-tools", "a.b.c", &"a".repeat(253)] {
            assert_eq!(registry_name(text).unwrap(), text);
        }
        for text in ["", ".", "a.", "a..b", "A.b", &"a".repeat(254)] {
            assert!(registry_name(text).is_err(), "{text}");
        }
    }
}
