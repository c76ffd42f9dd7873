//! The rights of a caller: what exists for it, and how much it may spend.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::error::ToolError;
use crate::names::HandlerNamespaces;
use crate::registry::RegistryEntry;
use crate::uri_path::has_dot_segments;

/// The rights of an authenticated caller. A caller without a grant may use everything.
#[derive(Debug, Clone, Default)]
pub struct AccessGrant {
    /// Entries that exist for the caller. All others are neither listed nor found.
    pub scope: AccessScope,
    /// Quota and rate of the caller, if they are limited.
    pub allowance: Option<Arc<dyn CallAllowance>>,
    /// Namespaces of working memory that it reaches beside its own, such as `session/*`.
    pub memory: AccessScope,
    /// Language model of its calls, if they do not name one.
    pub model: Option<Arc<str>>,
    /// Number of characters above which its results are large. `None`: the threshold of the model.
    pub chunk_threshold: Option<usize>,
}

/// The set of tools, prompts, resources and templates that one of its patterns matches, without those of some tools.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct AccessScope {
    patterns: Arc<[ScopePattern]>,
    /// Own names of the tools that are left out, with their handlers.
    excluded: Arc<[(Arc<str>, &'static str)]>,
}

impl AccessScope {
    /// Returns the scope that contains everything.
    #[must_use]
    pub fn all() -> Self {
        [ScopePattern { handler: None, name: "*".to_owned() }].into_iter().collect()
    }

    /// Returns the scope without these tools of a handler, by their own names.
    #[must_use]
    pub fn without(&self, handler: &Arc<str>, tools: &[&'static str]) -> Self {
        self.excluding(tools.iter().map(|tool| (handler.clone(), *tool)))
    }

    /// Returns a scope that also excludes the tools that another scope excludes.
    #[must_use]
    pub fn with_exclusions_of(&self, other: &Self) -> Self {
        self.excluding(other.excluded.iter().cloned())
    }

    /// Returns `true` if tools are excluded.
    #[must_use]
    pub fn has_exclusions(&self) -> bool {
        !self.excluded.is_empty()
    }

    fn excluding(&self, excluded: impl IntoIterator<Item = (Arc<str>, &'static str)>) -> Self {
        let excluded = self.excluded.iter().cloned().chain(excluded).collect();
        Self { patterns: self.patterns.clone(), excluded }
    }

    /// Returns `true` if this entry exists for the caller.
    #[must_use]
    pub fn allows(&self, entry: &RegistryEntry) -> bool {
        let handler = &entry.handler.name;
        !self.excludes(handler, &entry.own) && self.matches(handler, &entry.name)
    }

    /// Returns `true` if the name that a handler publishes exists for the caller.
    #[must_use]
    pub fn allows_name(&self, handler: &str, name: &str) -> bool {
        !self.excludes(handler, name) && self.matches(handler, name)
    }

    fn matches(&self, handler: &str, name: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(handler, name))
    }

    fn excludes(&self, handler: &str, own: &str) -> bool {
        self.excluded.iter().any(|(excluded, tool)| **excluded == *handler && *tool == own)
    }

    /// Binds the scope to the namespaces of these handlers: a pattern that begins with a handler's name, such as
    /// `github_*`, matches entries of that handler only, and no imitations by another one.
    pub(crate) fn bound(&self, namespaces: &HandlerNamespaces) -> Self {
        let patterns = self.patterns.iter().map(|pattern| pattern.bound(namespaces)).collect();
        Self { patterns, excluded: self.excluded.clone() }
    }

    /// Returns `true` if a URI that the scope matches also stays in it: it has no dot segments, or the whole handler is
    /// in scope.
    #[must_use]
    pub fn contains_uri(&self, handler: &str, uri: &str) -> bool {
        let is_whole = |pattern: &ScopePattern| pattern.name == "*" && pattern.matches(handler, "");
        !has_dot_segments(uri) || self.patterns.iter().any(is_whole)
    }

    /// Returns `true` if the scope contains everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        let is_any = |pattern: &ScopePattern| pattern.handler.is_none() && pattern.name == "*";
        self.excluded.is_empty() && self.patterns.iter().any(is_any)
    }
}

impl AccessGrant {
    /// Admits a request that is not a call but counts against the rate: opening a session, or asking about the gateway.
    ///
    /// # Errors
    /// [`RateLimited`](crate::ErrorCode::RateLimited) if the rate is exceeded.
    pub fn admit(&self) -> Result<(), ToolError> {
        self.allowance.as_ref().map_or(Ok(()), |allowance| allowance.admit())
    }
}

impl FromIterator<ScopePattern> for AccessScope {
    fn from_iter<T: IntoIterator<Item = ScopePattern>>(patterns: T) -> Self {
        Self { patterns: patterns.into_iter().collect(), excluded: Arc::default() }
    }
}

/// A pattern of names, such as `search_*`, optionally with a handler: `github/*`. A star matches any number of
/// characters. Names are those that callers use: names of tools and prompts, URIs of resources.
///
/// ```
/// use toolyard_core::access::ScopePattern;
///
/// let pattern: ScopePattern = "github/create_*".parse().unwrap();
/// assert!(pattern.matches("github", "create_issue"));
/// assert!(!pattern.matches("gitlab", "create_issue"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScopePattern {
    handler: Option<String>,
    name: String,
}

impl ScopePattern {
    /// Returns `true` if it matches the name that a handler publishes.
    #[must_use]
    pub fn matches(&self, handler: &str, name: &str) -> bool {
        self.handler.as_deref().is_none_or(|pattern| fits(pattern, handler)) && fits(&self.name, name)
    }

    fn bound(&self, namespaces: &HandlerNamespaces) -> Self {
        let literal = self.name.split('*').next().unwrap_or_default();
        let owner = || namespaces.owner_of(literal).map(|owner| owner.to_string());
        Self { handler: self.handler.clone().or_else(owner), name: self.name.clone() }
    }
}

/// The text is not a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a pattern is `NAME` or `HANDLER/NAME`, where `*` stands for any characters")]
pub struct InvalidPattern;

impl FromStr for ScopePattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        // Names of handlers have neither slash nor colon; URIs have both.
        let (handler, name) = match text.split_once('/') {
            Some((handler, name)) if !handler.contains(':') => (Some(handler.to_owned()), name),
            _ => (None, text),
        };
        let is_legal =
            |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c.is_control());
        match is_legal(name) && handler.as_deref().is_none_or(is_legal) {
            true => Ok(Self { handler, name: name.to_owned() }),
            false => Err(InvalidPattern),
        }
    }
}

impl fmt::Display for ScopePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(handler) = &self.handler {
            write!(f, "{handler}/")?;
        }
        f.write_str(&self.name)
    }
}

/// Returns `true` if a text matches a pattern with stars. Each star takes as little as possible, and more only where
/// the rest does not match otherwise, so that the time is bounded by the product of both lengths.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut position) = (0, 0);
    // Position behind the last star, and the end of its match so far.
    let mut last_star = None;
    while position < text.len() {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            last_star = Some((at, position));
        } else if pattern.get(at) == Some(&text[position]) {
            at += 1;
            position += 1;
        } else if let Some((behind, end)) = last_star {
            (at, position) = (behind, end + 1);
            last_star = Some((behind, position));
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// The price of a call, in millionths of the unit of prices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallPrice(pub u64);

const MILLIONTHS: u64 = 1_000_000;

/// The text is not a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a price is a number that is not negative, with at most 6 decimals")]
pub struct InvalidPrice;

impl FromStr for CallPrice {
    type Err = InvalidPrice;

    fn from_str(text: &str) -> Result<Self, InvalidPrice> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(decimals) || decimals.len() > 6 {
            return Err(InvalidPrice);
        }
        let whole: u64 = whole.parse().map_err(|_| InvalidPrice)?;
        let decimals: u64 = format!("{decimals:0<6}").parse().map_err(|_| InvalidPrice)?;
        let sum = whole.checked_mul(MILLIONTHS).and_then(|whole| whole.checked_add(decimals));
        // Stores count in signed 64-bit numbers.
        sum.filter(|sum| *sum <= i64::MAX.unsigned_abs()).map(Self).ok_or(InvalidPrice)
    }
}

impl fmt::Display for CallPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = (self.0 / MILLIONTHS, self.0 % MILLIONTHS);
        match decimals {
            0 => write!(f, "{whole}"),
            _ => f.write_str(format!("{whole}.{decimals:06}").trim_end_matches('0')),
        }
    }
}

/// The quota and the rate of a caller.
pub trait CallAllowance: Send + Sync + fmt::Debug {
    /// Spends the price of one call.
    ///
    /// # Errors
    /// [`RateLimited`](crate::ErrorCode::RateLimited) if the rate is exceeded,
    /// [`QuotaExhausted`](crate::ErrorCode::QuotaExhausted) if the quota is used up, and
    /// [`Unavailable`](crate::ErrorCode::Unavailable) if the quota cannot be determined.
    fn take(&self, price: CallPrice) -> BoxFuture<'_, Result<(), ToolError>>;

    /// Counts a request that is not a call against the rate: opening a session, or asking about the gateway.
    ///
    /// # Errors
    /// [`RateLimited`](crate::ErrorCode::RateLimited) if the rate is exceeded.
    fn admit(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// Checks that some of the quota is left, without spending it. Each check counts against the rate.
    ///
    /// # Errors
    /// The errors of [`take`](Self::take).
    fn check(&self) -> BoxFuture<'_, Result<(), ToolError>>;

    /// Returns the price of a call that was not run.
    fn give_back(&self, price: CallPrice);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_matches_handlers_and_names() {
        let check = |pattern: &str, handler: &str, name: &str, expected: bool| {
            let pattern: ScopePattern = pattern.parse().expect("a pattern");
            assert_eq!(pattern.matches(handler, name), expected, "{pattern} on {handler}/{name}");
        };
        check("*", "any", "thing", true);
        check("*", "any", "file:///etc/hosts", true);
        check("add", "math", "add", true);
        check("add", "math", "adds", false);
        check("search_*", "web", "search_", true);
        check("search_*", "web", "research_x", false);
        check("*_read", "files", "file_read", true);
        check("*_read", "files", "file_read_read", true);
        check("a*b*c", "x", "a_b_b_c", true);
        check("a*b*c", "x", "a_c_b", false);
        check("github/*", "github", "create_issue", true);
        check("github/*", "github2", "create_issue", false);
        check("git*/get_*", "gitlab", "get_issue", true);
        check("file:///etc/*", "files", "file:///etc/hosts", true);
        check("files/file:///etc/*", "files", "file:///etc/hosts", true);
        check("files/file:///etc/*", "other", "file:///etc/hosts", false);
        check("**", "x", "", true);
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for text in ["", "/", "a/", "/a", "a b", "a /b", "a/b c"] {
            assert_eq!(text.parse::<ScopePattern>(), Err(InvalidPattern), "{text:?}");
        }
    }

    #[test]
    fn many_stars_match_quickly() {
        let pattern: ScopePattern = format!("{}b", "*a".repeat(50)).parse().expect("a pattern");
        assert!(!pattern.matches("h", &"a".repeat(5_000)));
    }

    #[test]
    fn prices() {
        let check = |text: &str, expected: Result<(u64, &str), InvalidPrice>| {
            let price = text.parse::<CallPrice>();
            assert_eq!(
                price.map(|price| (price.0, price.to_string())),
                expected.map(|(n, text)| (n, text.to_owned())),
                "{text:?}"
            );
        };
        check("0", Ok((0, "0")));
        check("1", Ok((1_000_000, "1")));
        check("2.5", Ok((2_500_000, "2.5")));
        check("0.000001", Ok((1, "0.000001")));
        check("10.010", Ok((10_010_000, "10.01")));
        check("9223372036854.775807", Ok((i64::MAX.unsigned_abs(), "9223372036854.775807")));
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "1.0000001",
            "1,5",
            " 1",
            "9223372036854.775808",
            "99999999999999999999",
        ] {
            check(text, Err(InvalidPrice));
        }
    }
}
