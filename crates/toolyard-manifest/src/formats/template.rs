//! URLs with `{arguments}` in them.

use std::fmt;

use super::{EndpointUrl, FormatError};

/// A URL with the names of arguments in braces, which the arguments of a call replace.
///
/// `Debug` shows only the origin, as that of [`EndpointUrl`] does.
#[derive(Clone, PartialEq, Eq)]
pub struct UrlTemplate {
    text: String,
    /// The URL with `x` for each argument.
    sample: EndpointUrl,
}

impl UrlTemplate {
    /// Parses a template.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        const INVALID: FormatError =
            FormatError::new("a URL template", "a URL such as https://api.example.com/users/{id}");
        let sample =
            fill_with_sample(text).ok_or(INVALID.hint("put the name of an argument in braces: `{id}`"))?;
        let sample =
            EndpointUrl::parse(&sample).map_err(|invalid| FormatError { hint: invalid.hint, ..INVALID })?;
        Ok(Self { text: text.to_owned(), sample })
    }

    /// The template as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The URL without its query, for display.
    #[must_use]
    pub fn display_url(&self) -> &str {
        self.text.split(['?', '#']).next().unwrap_or_default()
    }

    /// True if arguments are part of the host.
    #[must_use]
    pub fn has_variable_host(&self) -> bool {
        let authority = self.text.split_once("://").map_or("", |(_, rest)| rest);
        let end = authority.find(['/', '?', '#']).unwrap_or(authority.len());
        authority[..end].contains('{')
    }

    /// True if requests use TLS.
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

/// Returns the text with an `x` for each argument; `None` if braces are not in pairs or empty.
fn fill_with_sample(text: &str) -> Option<String> {
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
    fn filled_templates_are_urls() {
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
    fn template_with_variable_host() {
        for (text, varies) in [
            ("https://a/{b}", false),
            ("https://a?b={c}", false),
            ("https://{a}.b/", true),
            ("http://a{b}:80", true),
        ] {
            assert_eq!(UrlTemplate::parse(text).unwrap().has_variable_host(), varies, "{text}");
        }
    }

    #[test]
    fn debug_of_a_template_hides_secrets() {
        let template = UrlTemplate::parse("https://a.example/SECRET/{b}?key=SECRET").unwrap();
        assert_eq!(format!("{template:?}"), "UrlTemplate(EndpointUrl(https://a.example/…))");
    }
}
