//! Version numbers and selectors.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Number of a published version: `1.2.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionVersion {
    /// Incremented for incompatible changes.
    pub major: u32,
    /// Incremented for compatible additions.
    pub minor: u32,
    /// Incremented for changes that callers do not see.
    pub patch: u32,
}

/// Part of the number to increment for the next version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VersionBump {
    /// `1.2.3` becomes `1.2.4`.
    Patch,
    /// `1.2.3` becomes `1.3.0`.
    Minor,
    /// `1.2.3` becomes `2.0.0`.
    Major,
}

/// Selector of a version: a full number, the latest with a prefix, or the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum VersionSelector {
    /// `latest`: the highest published number.
    #[default]
    Latest,
    /// `draft`: the unpublished version.
    Draft,
    /// `1`: the highest number with this major part.
    Major(u32),
    /// `1.2`: the highest number with these parts.
    Minor(u32, u32),
    /// `1.2.0`: exactly this number.
    Exact(FunctionVersion),
}

/// The text is not a version selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a version is `1.2.0`, `1.2` or `1`, with or without a `v`, or `latest`, or `draft`")]
pub struct InvalidVersion;

impl FunctionVersion {
    /// Number of the first published version.
    pub const FIRST: Self = Self { major: 1, minor: 0, patch: 0 };

    /// Returns the next number; `None` on overflow.
    #[must_use]
    pub fn next(self, bump: VersionBump) -> Option<Self> {
        let Self { major, minor, patch } = self;
        Some(match bump {
            VersionBump::Patch => Self { patch: patch.checked_add(1)?, ..self },
            VersionBump::Minor => Self { minor: minor.checked_add(1)?, patch: 0, major },
            VersionBump::Major => Self { major: major.checked_add(1)?, minor: 0, patch: 0 },
        })
    }
}

impl VersionSelector {
    /// Returns the selected one of these numbers. A draft has no number.
    pub fn select(self, published: impl IntoIterator<Item = FunctionVersion>) -> Option<FunctionVersion> {
        published.into_iter().filter(|version| self.matches(*version)).max()
    }

    fn matches(self, version: FunctionVersion) -> bool {
        match self {
            Self::Latest => true,
            Self::Draft => false,
            Self::Major(major) => version.major == major,
            Self::Minor(major, minor) => (version.major, version.minor) == (major, minor),
            Self::Exact(exact) => version == exact,
        }
    }
}

impl FromStr for VersionSelector {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        if text.eq_ignore_ascii_case("latest") {
            return Ok(Self::Latest);
        }
        if text.eq_ignore_ascii_case("draft") {
            return Ok(Self::Draft);
        }
        let mut numbers = text.strip_prefix(['v', 'V']).unwrap_or(text).split('.').map(number);
        let mut next = || numbers.next().transpose();
        match (next()?, next()?, next()?, next()?) {
            (Some(major), None, ..) => Ok(Self::Major(major)),
            (Some(major), Some(minor), None, _) => Ok(Self::Minor(major, minor)),
            (Some(major), Some(minor), Some(patch), None) => {
                Ok(Self::Exact(FunctionVersion { major, minor, patch }))
            }
            _ => Err(InvalidVersion),
        }
    }
}

/// Parses a part of a number: digits only, without leading zeroes.
fn number(text: &str) -> Result<u32, InvalidVersion> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_number).ok_or(InvalidVersion)
}

impl FromStr for FunctionVersion {
    type Err = InvalidVersion;

    /// Parses a full number only: a shorter one would change its meaning over time.
    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        match text.parse()? {
            VersionSelector::Exact(version) => Ok(version),
            _ => Err(InvalidVersion),
        }
    }
}

impl fmt::Display for FunctionVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl fmt::Display for VersionSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest"),
            Self::Draft => f.write_str("draft"),
            Self::Major(major) => write!(f, "{major}"),
            Self::Minor(major, minor) => write!(f, "{major}.{minor}"),
            Self::Exact(version) => version.fmt(f),
        }
    }
}

impl Serialize for FunctionVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FunctionVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_match_versions() {
        let published: Vec<FunctionVersion> =
            ["1.0.0", "1.2.0", "1.10.1", "1.2.9", "2.0.0"].map(|text| text.parse().unwrap()).to_vec();
        let check = |text: &str, expected: Option<&str>| {
            let selector: VersionSelector = text.parse().unwrap();
            let picked = selector.select(published.iter().copied()).map(|version| version.to_string());
            assert_eq!(picked.as_deref(), expected, "{text}");
        };
        check("1.2.0", Some("1.2.0"));
        check("v1.2.0", Some("1.2.0"));
        check("V1.2.0", Some("1.2.0"));
        check("1.2", Some("1.2.9"));
        check("v1.2", Some("1.2.9"));
        check("1", Some("1.10.1"));
        check("v2", Some("2.0.0"));
        check("latest", Some("2.0.0"));
        check("LATEST", Some("2.0.0"));
        check("1.2.1", None);
        check("1.3", None);
        check("3", None);
        check("0", None);
        check("Draft", None);
        assert_eq!("Draft".parse(), Ok(VersionSelector::Draft));
        assert_eq!(VersionSelector::Latest.select([]), None);
    }

    #[test]
    fn invalid_selectors_are_refused() {
        for text in [
            "",
            "v",
            ".",
            "1.",
            ".1",
            "1..2",
            "1.2.3.4",
            "01",
            "1.02",
            "-1",
            "+1",
            "1.2.x",
            "1.2.0-beta",
            "newest",
            "4294967296",
            " 1",
            "1 ",
            "vv1",
            "drafts",
            "１",
        ] {
            assert_eq!(text.parse::<VersionSelector>(), Err(InvalidVersion), "{text:?}");
        }
        for text in ["1.2", "1", "latest", "draft"] {
            assert_eq!(text.parse::<FunctionVersion>(), Err(InvalidVersion), "{text:?}");
        }
    }

    #[test]
    fn next_version_increments_the_part() {
        let check = |from: &str, bump, expected: Option<&str>| {
            let next = from.parse::<FunctionVersion>().unwrap().next(bump).map(|version| version.to_string());
            assert_eq!(next.as_deref(), expected, "{from} {bump:?}");
        };
        check("1.2.3", VersionBump::Patch, Some("1.2.4"));
        check("1.2.3", VersionBump::Minor, Some("1.3.0"));
        check("1.2.3", VersionBump::Major, Some("2.0.0"));
        check("1.2.4294967295", VersionBump::Patch, None);
        check("1.4294967295.3", VersionBump::Minor, None);
        check("4294967295.2.3", VersionBump::Major, None);
    }
}
