//! Numbers of versions, and which of them a caller means.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The number of a published version: `1.2.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// It grows when callers have to change.
    pub major: u32,
    /// It grows with what callers may use and need not.
    pub minor: u32,
    /// It grows with what callers do not see.
    pub patch: u32,
}

/// Which part of the number the next version has one more of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bump {
    /// `1.2.3` becomes `1.2.4`.
    Patch,
    /// `1.2.3` becomes `1.3.0`.
    Minor,
    /// `1.2.3` becomes `2.0.0`.
    Major,
}

/// Which version a caller means: one number, the latest that begins like this, or the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Wanted {
    /// `latest`: the highest number that is published.
    #[default]
    Latest,
    /// `draft`: what is not published yet.
    Draft,
    /// `1`: the highest that begins like this.
    Major(u32),
    /// `1.2`: the same.
    Minor(u32, u32),
    /// `1.2.0`.
    Exact(Version),
}

/// The text means no version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a version is `1.2.0`, `1.2` or `1`, with or without a `v`, or `latest`, or `draft`")]
pub struct BadVersion;

impl Version {
    /// The number of the first version that is published.
    pub const FIRST: Self = Self { major: 1, minor: 0, patch: 0 };

    /// The number that comes behind this one; `None` where numbers are at their end.
    #[must_use]
    pub fn next(self, bump: Bump) -> Option<Self> {
        let Self { major, minor, patch } = self;
        Some(match bump {
            Bump::Patch => Self { patch: patch.checked_add(1)?, ..self },
            Bump::Minor => Self { minor: minor.checked_add(1)?, patch: 0, major },
            Bump::Major => Self { major: major.checked_add(1)?, minor: 0, patch: 0 },
        })
    }
}

impl Wanted {
    /// The one of these numbers that is meant. A draft has none.
    pub fn pick(self, published: impl IntoIterator<Item = Version>) -> Option<Version> {
        published.into_iter().filter(|version| self.fits(*version)).max()
    }

    fn fits(self, version: Version) -> bool {
        match self {
            Self::Latest => true,
            Self::Draft => false,
            Self::Major(major) => version.major == major,
            Self::Minor(major, minor) => (version.major, version.minor) == (major, minor),
            Self::Exact(exact) => version == exact,
        }
    }
}

impl FromStr for Wanted {
    type Err = BadVersion;

    fn from_str(text: &str) -> Result<Self, BadVersion> {
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
            (Some(major), Some(minor), Some(patch), None) => Ok(Self::Exact(Version { major, minor, patch })),
            _ => Err(BadVersion),
        }
    }
}

/// A number as versions have it: of digits alone, and without a zero in front.
fn number(text: &str) -> Result<u32, BadVersion> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_number).ok_or(BadVersion)
}

impl FromStr for Version {
    type Err = BadVersion;

    /// Of a whole number only: what was meant by less would change with time.
    fn from_str(text: &str) -> Result<Self, BadVersion> {
        match text.parse()? {
            Wanted::Exact(version) => Ok(version),
            _ => Err(BadVersion),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl fmt::Display for Wanted {
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

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_callers_mean() {
        let published: Vec<Version> =
            ["1.0.0", "1.2.0", "1.10.1", "1.2.9", "2.0.0"].map(|text| text.parse().unwrap()).to_vec();
        let check = |text: &str, expected: Option<&str>| {
            let wanted: Wanted = text.parse().unwrap();
            let picked = wanted.pick(published.iter().copied()).map(|version| version.to_string());
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
        assert_eq!("Draft".parse(), Ok(Wanted::Draft));
        assert_eq!(Wanted::Latest.pick([]), None);
    }

    #[test]
    fn what_means_nothing() {
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
            assert_eq!(text.parse::<Wanted>(), Err(BadVersion), "{text:?}");
        }
        for text in ["1.2", "1", "latest", "draft"] {
            assert_eq!(text.parse::<Version>(), Err(BadVersion), "{text:?}");
        }
    }

    #[test]
    fn what_comes_next() {
        let check = |from: &str, bump, expected: Option<&str>| {
            let next = from.parse::<Version>().unwrap().next(bump).map(|version| version.to_string());
            assert_eq!(next.as_deref(), expected, "{from} {bump:?}");
        };
        check("1.2.3", Bump::Patch, Some("1.2.4"));
        check("1.2.3", Bump::Minor, Some("1.3.0"));
        check("1.2.3", Bump::Major, Some("2.0.0"));
        check("1.2.4294967295", Bump::Patch, None);
        check("1.4294967295.3", Bump::Minor, None);
        check("4294967295.2.3", Bump::Major, None);
    }
}
