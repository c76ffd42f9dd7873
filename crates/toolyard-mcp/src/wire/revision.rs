//! The revisions of the protocol, oldest first.

use std::fmt;

/// The two incompatible generations of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolEra {
    /// Sessions, opened with `initialize`.
    Legacy,
    /// Stateless requests.
    Modern,
}

/// A supported revision of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtocolRevision {
    /// The first revision: HTTP+SSE and stdio.
    V2024_11_05,
    /// Adds streamable HTTP. The only revision with batches.
    V2025_03_26,
    /// Adds structured content and the version header.
    V2025_06_18,
    /// The last revision with sessions.
    V2025_11_25,
    /// The first stateless revision.
    V2026_07_28,
}

impl ProtocolRevision {
    /// All revisions, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The revision offered in `initialize`.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// The revision of stateless requests.
    pub const LATEST_MODERN: Self = Self::V2026_07_28;

    /// Parses the date of a revision.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// Returns the date of the revision.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the era of the revision.
    #[must_use]
    pub fn era(self) -> ProtocolEra {
        if self >= Self::V2026_07_28 { ProtocolEra::Modern } else { ProtocolEra::Legacy }
    }

    /// True if the response to a message whose id could not be read has the id `null`, as in JSON-RPC. From 2025-11-25
    /// on it has no id (schema, `JSONRPCErrorResponse`).
    #[must_use]
    pub fn has_null_id(self) -> bool {
        self < Self::V2025_11_25
    }

    /// Negotiates the revision of a session: the requested one if it is supported, else the latest legacy revision
    /// (2025-11-25, basic/lifecycle, version negotiation).
    #[must_use]
    pub fn negotiate(requested: &str) -> Self {
        Self::parse(requested)
            .filter(|revision| revision.era() == ProtocolEra::Legacy)
            .unwrap_or(Self::LATEST_LEGACY)
    }
}

impl fmt::Display for ProtocolRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
