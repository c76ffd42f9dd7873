//! Messages of the A2A protocol, version 1.0 in its JSON-RPC binding, as far as they are used here. Those of version 0.3
//! are read as well.

pub mod card;
pub mod message;
pub mod push;
pub mod rpc;
pub mod task;

use serde::{Deserialize, Deserializer};

/// Version of the protocol, which decides about the names of methods and the form of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolVersion {
    /// 1.0 and later versions with this major number.
    V1,
    /// 0.3, which many agents still speak.
    V03,
}

impl ProtocolVersion {
    /// Parses a version such as `1.0` or `0.3.0`; `None` if it is another one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "1" => Some(Self::V1),
            text if text.starts_with("1.") => Some(Self::V1),
            "0.3" => Some(Self::V03),
            text if text.starts_with("0.3.") => Some(Self::V03),
            _ => None,
        }
    }

    /// Returns the value of the header `A2A-Version`.
    #[must_use]
    pub const fn header(self) -> &'static str {
        match self {
            Self::V1 => "1.0",
            Self::V03 => "0.3",
        }
    }
}

/// Reads `null` as the default: some agents write out the fields that they do not set.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
