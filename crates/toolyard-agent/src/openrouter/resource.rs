//! Resources of the API, by their paths in the vendor's OpenAPI document.

use std::fmt::Write;

/// Maximum length of a hash or an id in bytes. Those of OpenRouter have less than 100.
const MAX_ID_LENGTH: usize = 256;

/// A resource of the API that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenRouterResource {
    /// Credits that the account has bought and used.
    Credits,
    /// Limits and usage of the key of the requests.
    CurrentKey,
    /// All models with their prices.
    Models,
    /// The keys of the account.
    Keys,
    /// The key with this hash.
    Key(ResourceId),
    /// The completion with this id.
    Generation(ResourceId),
}

/// A hash of a key, or an id of a completion: not empty, and no relative path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceId(String);

/// The text is no hash and no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// The text is empty or blank.
    #[error("is empty")]
    Empty,
    /// The text is longer than 256 bytes.
    #[error("has more than {MAX_ID_LENGTH} bytes")]
    TooLong,
    /// The text has blanks or control characters, or is a relative path.
    #[error("contains blanks or control characters, or is a relative path")]
    Characters,
}

impl ResourceId {
    /// Parses a hash or an id; surrounding blanks are ignored.
    ///
    /// # Errors
    /// If the text cannot be one.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let id = text.trim();
        match id {
            "" => Err(InvalidId::Empty),
            _ if id.len() > MAX_ID_LENGTH => Err(InvalidId::TooLong),
            // A client may resolve these segments, which makes another resource of the path.
            "." | ".." => Err(InvalidId::Characters),
            _ if id.contains(|c: char| c.is_control() || c.is_whitespace()) => Err(InvalidId::Characters),
            _ => Ok(Self(id.to_owned())),
        }
    }

    /// The id as one segment of a path, or as the value of a query parameter (RFC 3986, section 2.3).
    fn encoded(&self) -> String {
        let mut encoded = String::new();
        for byte in self.0.bytes() {
            match byte {
                b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
                _ if byte.is_ascii_alphanumeric() => encoded.push(byte.into()),
                // Writing to a string cannot fail.
                _ => drop(write!(encoded, "%{byte:02X}")),
            }
        }
        encoded
    }
}

impl OpenRouterResource {
    /// Returns the path below the base URL, with its query.
    #[must_use]
    pub fn path(&self) -> String {
        match self {
            Self::Credits => "credits".to_owned(),
            Self::CurrentKey => "key".to_owned(),
            Self::Models => "models".to_owned(),
            Self::Keys => "keys".to_owned(),
            Self::Key(hash) => format!("keys/{}", hash.encoded()),
            Self::Generation(id) => format!("generation?id={}", id.encoded()),
        }
    }

    /// Returns the path without what the caller has chosen, for messages.
    #[must_use]
    pub const fn template(&self) -> &'static str {
        match self {
            Self::Credits => "/credits",
            Self::CurrentKey => "/key",
            Self::Models => "/models",
            Self::Keys => "/keys",
            Self::Key(_) => "/keys/{hash}",
            Self::Generation(_) => "/generation",
        }
    }

    /// True if only a management key can read it.
    #[must_use]
    pub const fn needs_management_key(&self) -> bool {
        matches!(self, Self::Credits | Self::Keys | Self::Key(_))
    }
}
