//! URLs with `{arguments}` in them.

use std::fmt;

use super::{Endpoint, Invalid};

/// The URL of a server, with the names of arguments in braces where a call's arguments go.
///
/// `Debug` shows where it points to and no more, as that of [`Endpoint`] does.
#[derive(Clone, PartialEq, Eq)]
pub struct UrlTemplate {
    text: String,
    /// What it is with `x` for each argument.
    sample: Endpoint,
}

impl UrlTemplate {
    /// Parses a template.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        const INVALID: Invalid =
            Invalid::new("a URL template", "a URL such as https://api.example.com/users/{id}");
        let sample = filled(text).ok_or(INVALID.hint("the name of an argument stands in braces: `{id}`"))?;
        let sample = Endpoint::parse(&sample).map_err(|invalid| Invalid { hint: invalid.hint, ..INVALID })?;
        Ok(Self { text: text.to_owned(), sample })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Where it points to, for people, without the query.
    #[must_use]
    pub fn shown(&self) -> &str {
        self.text.split(['?', '#']).next().unwrap_or_default()
    }

    /// Whether arguments decide which host it is.
    #[must_use]
    pub fn host_varies(&self) -> bool {
        let authority = self.text.split_once("://").map_or("", |(_, rest)| rest);
        let end = authority.find(['/', '?', '#']).unwrap_or(authority.len());
        authority[..end].contains('{')
    }

    /// Whether requests go over TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.sample.is_tls()
    }
}

impl fmt::Debug for UrlTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UrlTemplate({:?})", self.sample)
    }
}

/// The text with an `x` for each argument; `None` where braces are not in pairs, or there is no name in them.
fn filled(text: &str) -> Option<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}')?;
        if name.is_empty() || name.contains('{') || before.contains('}') {
            return None;
        }
        filled.extend([before, "x"]);
        rest = behind;
    }
    filled.push_str(rest);
    (!rest.contains('}')).then_some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_urls_once_they_are_filled() {
        for text in ["https://a/{b}", "https://a/b?c={d}&e={f g}", "http://{a}.b:80/", "https://a"] {
            assert_eq!(UrlTemplate::parse(text).unwrap().as_str(), text);
        }
        for text in ["", "/{a}", "https://a/{", "https://a/}", "https://a/{}", "https://a/{b{c}}", "{a}://b"]
        {
            assert!(UrlTemplate::parse(text).is_err(), "{text}");
        }
        for text in ["http://a:{b}/", "http://{a}@b/", "ftp://{a}/"] {
            assert!(UrlTemplate::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn whose_host_it_is() {
        for (text, varies) in [
            ("https://a/{b}", false),
            ("https://a?b={c}", false),
            ("https://{a}.b/", true),
            ("http://a{b}:80", true),
        ] {
            assert_eq!(UrlTemplate::parse(text).unwrap().host_varies(), varies, "{text}");
        }
    }

    #[test]
    fn a_template_does_not_print_what_may_be_secret() {
        let template = UrlTemplate::parse("https://a.example/SECRET/{b}?key=SECRET").unwrap();
        assert_eq!(format!("{template:?}"), "UrlTemplate(Endpoint(https://a.example/…))");
    }
}
