//! The URLs that may be visited.
//!
//! A URL is parsed by the rules of RFC 3986. Texts that only browsers accept are repaired first, as far as all of them
//! agree: blanks and characters beyond ASCII are percent-encoded, but never those of a host. Whatever a system's resolver
//! could read as an address in another notation (`2130706433`, `0x7f.1`) stays a name here, and is checked after it is
//! resolved.

use std::fmt;
use std::fmt::Write;

use fluent_uri::{Uri as Rfc3986Uri, UriRef};
use http::Uri;

/// Maximum length of a URL in bytes. Common servers accept no longer ones.
const MAX_LENGTH: usize = 8 * 1024;

/// The first port that does not belong to a service of the system, apart from those of HTTP.
const FIRST_FREE_PORT: u16 = 1024;

/// An absolute URL of HTTP without user name, password and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebUrl {
    text: Rfc3986Uri<String>,
    uri: Uri,
}

/// The reason why a URL is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebUrlError {
    /// The text is not a URL.
    #[error("it is not an absolute URL: expected one such as https://example.com/page")]
    Invalid,
    /// The URL is too long.
    #[error("it is longer than 8 KiB")]
    TooLong,
    /// The scheme is another one.
    #[error("its scheme is `{0}`: only http and https can be visited")]
    Scheme(String),
    /// The URL has a user name or a password.
    #[error("it has a user name or a password: leave out what stands before `@`")]
    Credentials,
    /// The host is not in the form that DNS has.
    #[error(
        "its host is not a plain name or address: write international names in Punycode (`xn--…`), and nothing \
         percent-encoded"
    )]
    Host,
    /// The port belongs to another service.
    #[error("its port is {0}: only 80, 443 and ports from 1024 can be visited")]
    Port(u16),
}

impl WebUrl {
    /// Parses a URL. A text without a scheme is one of HTTPS.
    ///
    /// # Errors
    /// Returns the reason if the URL cannot be visited.
    pub fn parse(text: &str) -> Result<Self, WebUrlError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(WebUrlError::Invalid);
        }
        let has_scheme = text.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme));
        let repaired = match has_scheme || text.starts_with("//") {
            true => repair(text)?,
            // `mailto:a@b` has a scheme, `example.com:8080/x` has none.
            false if has_other_scheme(text) => repair(text)?,
            false => repair(&format!("https://{text}"))?,
        };
        let parsed = Rfc3986Uri::parse(repaired).map_err(|_| WebUrlError::Invalid)?;
        Self::checked(&parsed)
    }

    /// Resolves a reference on the page of this URL, such as the target of a link or of a redirect.
    ///
    /// # Errors
    /// Returns the reason if the target cannot be visited.
    pub fn resolve(&self, reference: &str) -> Result<Self, WebUrlError> {
        let reference = UriRef::parse(repair(reference.trim())?).map_err(|_| WebUrlError::Invalid)?;
        let resolved = reference.resolve_against(&self.text).map_err(|_| WebUrlError::Invalid)?;
        Self::checked(&resolved)
    }

    fn checked(parsed: &Rfc3986Uri<String>) -> Result<Self, WebUrlError> {
        let scheme = parsed.scheme().as_str().to_ascii_lowercase();
        if scheme != "http" && scheme != "https" {
            return Err(WebUrlError::Scheme(scheme));
        }
        let authority = parsed.authority().ok_or(WebUrlError::Invalid)?;
        if authority.has_userinfo() {
            return Err(WebUrlError::Credentials);
        }
        let host = authority.host();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        let is_address = host.starts_with('[') && host.ends_with(']');
        if host.trim_matches('.').is_empty() || !(is_address || host.bytes().all(is_plain)) {
            return Err(WebUrlError::Host);
        }
        let port = authority.port_to_u16().map_err(|_| WebUrlError::Invalid)?;
        if let Some(port) = port.filter(|port| !matches!(port, 80 | 443 | FIRST_FREE_PORT..)) {
            return Err(WebUrlError::Port(port));
        }
        let text = parsed.strip_fragment().normalize();
        let uri: Uri = text.as_str().parse().map_err(|_| WebUrlError::Invalid)?;
        Ok(Self { text, uri })
    }

    /// Returns the URL as a request has it.
    #[must_use]
    pub const fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.text.as_str()
    }

    /// Returns the host in lower case, without brackets and without a final dot.
    #[must_use]
    pub fn host(&self) -> String {
        let host = self.uri.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
        host.strip_suffix('.').map_or_else(|| host.clone(), str::to_owned)
    }

    /// Returns the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        let usual = if self.uri.scheme_str() == Some("https") { 443 } else { 80 };
        self.uri.port_u16().unwrap_or(usual)
    }

    /// Returns the scheme, the host and the port, by which servers are told apart.
    #[must_use]
    pub fn origin(&self) -> String {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        format!("{scheme}://{}:{}", self.host(), self.port())
    }
}

impl fmt::Display for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns `true` for a text with a scheme but without an authority, such as `mailto:a@b`.
fn has_other_scheme(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_port = rest.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    is_scheme(scheme) && !is_port
}

/// Returns `true` for a text with the characters of a scheme (RFC 3986, section 3.1).
fn is_scheme(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Percent-encodes what browsers encode. A host with such characters is refused when it is checked.
fn repair(text: &str) -> Result<String, WebUrlError> {
    if text.len() > MAX_LENGTH {
        return Err(WebUrlError::TooLong);
    }
    if text.contains(char::is_control) {
        return Err(WebUrlError::Invalid);
    }
    let mut repaired = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut buffer = [0; 4];
    while let Some(character) = rest.next() {
        let is_encoded = character == '%' && {
            let mut next = rest.clone();
            next.next().is_some_and(|c| c.is_ascii_hexdigit())
                && next.next().is_some_and(|c| c.is_ascii_hexdigit())
        };
        let needs_encoding = !character.is_ascii()
            || matches!(character, ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
            || (character == '%' && !is_encoded);
        if needs_encoding {
            for byte in character.encode_utf8(&mut buffer).bytes() {
                let _ = write!(repaired, "%{byte:02X}");
            }
        } else {
            repaired.push(character);
        }
    }
    Ok(encode_brackets(repaired))
}

/// Percent-encodes brackets after the authority, where RFC 3986 has none and many sites do.
fn encode_brackets(text: String) -> String {
    let start = text.find("://").map_or(0, |at| at + 3);
    let path = match start {
        0 => 0,
        start => text[start..].find(['/', '?', '#']).map_or(text.len(), |at| start + at),
    };
    if !text[path..].contains(['[', ']']) {
        return text;
    }
    format!("{}{}", &text[..path], text[path..].replace('[', "%5B").replace(']', "%5D"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_urls() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(WebUrl::parse(text).as_ref().map(WebUrl::as_str), Ok(expected), "{text:?}");
        }
        check("https://example.com", "https://example.com");
        check(" HTTP://Example.COM/a/../b?q=1#part ", "http://example.com/b?q=1");
        check("example.com/page", "https://example.com/page");
        check("example.com:8080/page", "https://example.com:8080/page");
        check(
            "example.com/login?next=https://a.example/",
            "https://example.com/login?next=https://a.example/",
        );
        check("example.com/copy/https://a.example/", "https://example.com/copy/https://a.example/");
        check("https://example.com/a b/é?q=\"x\"", "https://example.com/a%20b/%C3%A9?q=%22x%22");
        check("https://example.com/100%", "https://example.com/100%25");
        check("https://example.com/a?x[]=1", "https://example.com/a?x%5B%5D=1");
        check("https://en.wikipedia.org/wiki/C++_(language)", "https://en.wikipedia.org/wiki/C++_(language)");
        check("http://[2606:4700::1111]:8080/", "http://[2606:4700::1111]:8080/");
        check("https://my_host.example.com/", "https://my_host.example.com/");
    }

    #[test]
    fn refused_urls() {
        #[track_caller]
        fn check(text: &str, expected: WebUrlError) {
            assert_eq!(WebUrl::parse(text), Err(expected), "{text:?}");
        }
        check("", WebUrlError::Invalid);
        check(".", WebUrlError::Host);
        check("https://", WebUrlError::Host);
        check("https:///x", WebUrlError::Host);
        check("//example.com", WebUrlError::Invalid);
        check("ftp://example.com/x", WebUrlError::Scheme("ftp".into()));
        check("file:///etc/passwd", WebUrlError::Scheme("file".into()));
        check("javascript:alert(1)", WebUrlError::Scheme("javascript".into()));
        check("gopher://127.0.0.1:6379/_x", WebUrlError::Scheme("gopher".into()));
        check("https://user:secret@example.com/", WebUrlError::Credentials);
        check("https://example.com@127.0.0.1/", WebUrlError::Credentials);
        check("https://münchen.example/", WebUrlError::Host);
        check("http://①②⑦.⓪.⓪.①/", WebUrlError::Host);
        check("http://%31%32%37.0.0.1/", WebUrlError::Host);
        check("http://127.0.0.1\\@example.com/", WebUrlError::Credentials);
        check("http://example.com\\.evil.test/", WebUrlError::Host);
        check("http://a b/", WebUrlError::Host);
        check("http://example.com:22/", WebUrlError::Port(22));
        check("http://example.com:99999/", WebUrlError::Invalid);
        check("http://a\nb/", WebUrlError::Invalid);
        check(&format!("http://a/{}", "x".repeat(9000)), WebUrlError::TooLong);
    }

    #[test]
    fn references_are_resolved() {
        let page = WebUrl::parse("https://example.com/docs/page?x=1").expect("a URL");
        let check = |reference: &str, expected: Option<&str>| {
            let resolved = page.resolve(reference);
            assert_eq!(resolved.as_ref().map(WebUrl::as_str).ok(), expected, "{reference:?}");
        };
        check("other", Some("https://example.com/docs/other"));
        check("/top#part", Some("https://example.com/top"));
        check("//cdn.example.com/x", Some("https://cdn.example.com/x"));
        check("?y=2", Some("https://example.com/docs/page?y=2"));
        check("../../../x y", Some("https://example.com/x%20y"));
        check("http://other.example/", Some("http://other.example/"));
        check("javascript:void(0)", None);
        check("mailto:a@example.com", None);
    }

    #[test]
    fn parts_of_a_url() {
        let check = |text: &str, host: &str, origin: &str| {
            let url = WebUrl::parse(text).expect("a URL");
            assert_eq!((url.host().as_str(), url.origin().as_str()), (host, origin), "{text}");
        };
        check("https://Example.com./x", "example.com", "https://example.com:443");
        check("http://[::1]:8080/", "::1", "http://::1:8080");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_without_panic(text in "\\PC{0,60}", reference in "\\PC{0,60}") {
            if let Ok(url) = WebUrl::parse(&text) {
                proptest::prop_assert!(!url.host().is_empty());
                let _ = url.resolve(&reference);
            }
        }
    }
}
