//! The revisions of the protocol, oldest first.

use std::fmt;

/// How a revision is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// A session is opened with `initialize`.
    Legacy,
    /// Every request stands for itself.
    Modern,
}

/// A revision that the gateway speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// The first one: HTTP+SSE and stdio.
    V2024_11_05,
    /// Streamable HTTP; the only one with batches.
    V2025_03_26,
    /// Structured content; the version header.
    V2025_06_18,
    /// The last one with sessions.
    V2025_11_25,
    /// The first stateless one.
    V2026_07_28,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// What is offered to a peer that opens a session.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// What is offered to a peer that does not.
    pub const LATEST_MODERN: Self = Self::V2026_07_28;

    /// Reads a revision's date.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// The date that names it.
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

    /// How it is spoken.
    #[must_use]
    pub fn era(self) -> Era {
        if self >= Self::V2026_07_28 { Era::Modern } else { Era::Legacy }
    }

    /// The revision to speak with a peer that opens a session and asks for `requested`: that one if we
    /// know it, else our latest (2025-11-25, basic/lifecycle, version negotiation).
    #[must_use]
    pub fn negotiate(requested: &str) -> Self {
        Self::parse(requested).filter(|revision| revision.era() == Era::Legacy).unwrap_or(Self::LATEST_LEGACY)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
