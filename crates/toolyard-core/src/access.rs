//! What a caller may use, and how much of it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::error::ToolError;
use crate::registry::Entry;

/// What a caller may use that has shown who it is. A caller without one may use everything.
#[derive(Debug, Default)]
pub struct Grant {
    /// What exists for the caller. Nothing else is listed, found, or spoken of.
    pub scope: Scope,
    /// What the caller has left to spend, where that is bounded.
    pub allowance: Option<Arc<dyn Allowance>>,
    /// The namespaces of working memory that it reaches beside its own, such as `session/*`.
    pub memory: Scope,
    /// The language model that its calls are made for, where they do not say.
    pub model: Option<Arc<str>>,
    /// From how many characters on results are large for it. `None`: what is said of the model.
    pub chunk_threshold: Option<usize>,
}

/// Which tools, prompts, resources and templates exist for a caller: those that one of the patterns names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Scope(Arc<[Pattern]>);

impl Scope {
    /// Whether this entry exists for the caller.
    #[must_use]
    pub fn allows(&self, entry: &Entry) -> bool {
        self.allows_name(&entry.handler.name, &entry.name)
    }

    /// Whether what a handler publishes under this name exists for the caller.
    #[must_use]
    pub fn allows_name(&self, handler: &str, name: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(handler, name))
    }

    /// Whether everything does.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.0.iter().any(|pattern| pattern.handler.is_none() && pattern.name == "*")
    }
}

impl FromIterator<Pattern> for Scope {
    fn from_iter<T: IntoIterator<Item = Pattern>>(patterns: T) -> Self {
        Self(patterns.into_iter().collect())
    }
}

/// Names of one kind: `search_*`, or with the handler that has them, `github/*`. A star stands for any characters, also
/// for none. The name is what callers call something by: a tool's or a prompt's name, a resource's URI.
///
/// ```
/// use toolyard_core::access::Pattern;
///
/// let pattern: Pattern = "github/create_*".parse().unwrap();
/// assert!(pattern.matches("github", "create_issue"));
/// assert!(!pattern.matches("gitlab", "create_issue"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern {
    handler: Option<String>,
    name: String,
}

impl Pattern {
    /// Whether it names what a handler publishes under a name.
    #[must_use]
    pub fn matches(&self, handler: &str, name: &str) -> bool {
        self.handler.as_deref().is_none_or(|pattern| fits(pattern, handler)) && fits(&self.name, name)
    }
}

/// The text is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a pattern is `NAME` or `HANDLER/NAME`, where `*` stands for any characters")]
pub struct BadPattern;

impl FromStr for Pattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, BadPattern> {
        // No handler has a slash or a colon in its name, but URIs have both.
        let (handler, name) = match text.split_once('/') {
            Some((handler, name)) if !handler.contains(':') => (Some(handler.to_owned()), name),
            _ => (None, text),
        };
        let is_legal =
            |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c.is_control());
        match is_legal(name) && handler.as_deref().is_none_or(is_legal) {
            true => Ok(Self { handler, name: name.to_owned() }),
            false => Err(BadPattern),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(handler) = &self.handler {
            write!(f, "{handler}/")?;
        }
        f.write_str(&self.name)
    }
}

/// Whether a text is of the form of a pattern with stars. Each star takes as little as it can, and more only where the rest does
/// not fit otherwise, so that the time is bounded by the product of both lengths.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut position) = (0, 0);
    // Behind the last star, and where what it stands for ends so far.
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

/// What calls of something cost, in millionths of whatever prices are given in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(pub u64);

const MILLIONTHS: u64 = 1_000_000;

/// The text is no price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a price is a number that is not negative, with at most 6 decimals")]
pub struct BadPrice;

impl FromStr for Price {
    type Err = BadPrice;

    fn from_str(text: &str) -> Result<Self, BadPrice> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(decimals) || decimals.len() > 6 {
            return Err(BadPrice);
        }
        let whole: u64 = whole.parse().map_err(|_| BadPrice)?;
        let decimals: u64 = format!("{decimals:0<6}").parse().map_err(|_| BadPrice)?;
        let sum = whole.checked_mul(MILLIONTHS).and_then(|whole| whole.checked_add(decimals));
        // Stores count in signed numbers of 64 bits.
        sum.filter(|sum| *sum <= i64::MAX.unsigned_abs()).map(Self).ok_or(BadPrice)
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = (self.0 / MILLIONTHS, self.0 % MILLIONTHS);
        match decimals {
            0 => write!(f, "{whole}"),
            _ => f.write_str(format!("{whole}.{decimals:06}").trim_end_matches('0')),
        }
    }
}

/// What somebody has left to spend.
pub trait Allowance: Send + Sync + fmt::Debug {
    /// Takes what one call costs.
    ///
    /// # Errors
    /// [`RateLimited`](crate::Code::RateLimited) when there were too many calls just now,
    /// [`QuotaExhausted`](crate::Code::QuotaExhausted) when nothing is left, and
    /// [`Unavailable`](crate::Code::Unavailable) when nobody knows.
    fn take(&self, price: Price) -> BoxFuture<'_, Result<(), ToolError>>;

    /// Gives back what a call has taken that was not run.
    fn give_back(&self, price: Price);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_what_it_describes() {
        let check = |pattern: &str, handler: &str, name: &str, expected: bool| {
            let pattern: Pattern = pattern.parse().expect("a pattern");
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
    fn what_is_no_pattern_is_refused() {
        for text in ["", "/", "a/", "/a", "a b", "a /b", "a/b c"] {
            assert_eq!(text.parse::<Pattern>(), Err(BadPattern), "{text:?}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern: Pattern = format!("{}b", "*a".repeat(50)).parse().expect("a pattern");
        assert!(!pattern.matches("h", &"a".repeat(5_000)));
    }

    #[test]
    fn prices() {
        let check = |text: &str, expected: Result<(u64, &str), BadPrice>| {
            let price = text.parse::<Price>();
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
            check(text, Err(BadPrice));
        }
    }
}
