//! Templates of URIs (RFC 6570), matched against URIs: the values of variables that would expand to a URI.

use std::fmt;
use std::sync::Arc;

/// A template that URIs are matched against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    text: Arc<str>,
    parts: Vec<TemplatePart>,
}

/// The reason why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid URI template: {problem}")]
pub struct InvalidTemplate {
    text: String,
    problem: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    Expression(TemplateExpression),
}

/// An expression such as `{+a,b}`: the operator decides about the text before, between and inside of the values.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TemplateExpression {
    /// Text before the first value.
    first: &'static str,
    /// Text between two values.
    separator: &'static str,
    /// `true` if a value is written as `name=value`.
    named: bool,
    /// `true` if values may contain reserved characters.
    reserved: bool,
    variables: Vec<TemplateVariable>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TemplateVariable {
    name: String,
    /// A list: the value may contain the separator.
    explode: bool,
}

/// Maximum number of ways to split a URI that are tried: each variable multiplies them. A server may have thousands of
/// templates, all of which are matched against a URI of none of them.
const MAX_TRIES: u32 = 2000;

/// Bytes that are examined in one try.
const BYTES_PER_TRY: usize = 64;

/// Maximum length of a URI to be matched.
const MAX_URI_BYTES: usize = 16 * 1024;

/// Maximum number of variables of a template. Templates are matched recursively.
const MAX_VARIABLES: usize = 64;

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// If a brace is unbalanced, an expression has no variable, or there are too many variables.
    pub fn parse(text: &str) -> Result<Self, InvalidTemplate> {
        let bad = |problem| InvalidTemplate { text: text.to_owned(), problem };
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (literal, behind) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
            if literal.contains('}') {
                return Err(bad("a brace is closed that was not opened"));
            }
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(literal.to_owned()));
            }
            let Some(behind) = behind.strip_prefix('{') else { break };
            let (inside, behind) = behind.split_once('}').ok_or_else(|| bad("a brace is not closed"))?;
            parts.push(TemplatePart::Expression(TemplateExpression::parse(inside).map_err(bad)?));
            rest = behind;
        }
        if parts.iter().map(|part| part.variables().len()).sum::<usize>() > MAX_VARIABLES {
            return Err(bad("it has more than 64 variables"));
        }
        Ok(Self { text: text.into(), parts })
    }

    /// Returns the text of the template.
    #[must_use]
    pub const fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns the names of the variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().flat_map(TemplatePart::variables).map(|variable| &*variable.name)
    }

    /// Returns the percent-decoded values of the variables if this template can expand to the URI. Omitted variables,
    /// which only `{?a}` and `{&a}` allow, are left out.
    #[must_use]
    pub fn matches(&self, uri: &str) -> Option<Vec<(&str, String)>> {
        if uri.len() > MAX_URI_BYTES {
            return None;
        }
        let mut matching = TemplateMatcher { values: Vec::new(), tries: MAX_TRIES };
        let values = matching.parts(&self.parts, uri).then_some(matching.values);
        values.map(|values| values.into_iter().map(|(name, value)| (name, decode(value))).collect())
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TemplatePart {
    fn variables(&self) -> &[TemplateVariable] {
        match self {
            Self::Literal(_) => &[],
            Self::Expression(expression) => &expression.variables,
        }
    }
}

impl TemplateExpression {
    fn parse(text: &str) -> Result<Self, &'static str> {
        // RFC 6570, appendix A.
        let (operator, names) = match text.chars().next() {
            Some(operator @ ('+' | '#' | '.' | '/' | ';' | '?' | '&')) => (operator, &text[1..]),
            _ => (' ', text),
        };
        let (first, separator, named, reserved) = match operator {
            '+' => ("", ",", false, true),
            '#' => ("#", ",", false, true),
            '.' => (".", ".", false, false),
            '/' => ("/", "/", false, false),
            ';' => (";", ";", true, false),
            '?' => ("?", "&", true, false),
            '&' => ("&", "&", true, false),
            _ => ("", ",", false, false),
        };
        let variables = names.split(',').map(TemplateVariable::parse).collect::<Option<_>>();
        let variables = variables.ok_or("a variable is not made of letters, digits, `_`, `.` and `%`")?;
        Ok(Self { first, separator, named, reserved, variables })
    }

    /// Returns `true` if a value may contain the byte.
    fn takes(&self, explode: bool, byte: u8) -> bool {
        let unreserved = byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte) || !byte.is_ascii();
        let reserved = b":/?#[]@!$&'()*+,;=".contains(&byte);
        unreserved || (self.reserved && reserved) || (explode && self.separator.as_bytes() == [byte])
    }
}

impl TemplateVariable {
    fn parse(text: &str) -> Option<Self> {
        let (name, explode) = text.strip_suffix('*').map_or((text, false), |name| (name, true));
        // A prefix (`{name:3}`) limits the written part of a value, which cannot be reversed.
        let name = name.split(':').next()?;
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.%".contains(&byte);
        (!name.is_empty() && name.bytes().all(legal)).then(|| Self { name: name.to_owned(), explode })
    }
}

/// A match in progress.
struct TemplateMatcher<'a, 'u> {
    values: Vec<(&'a str, &'u str)>,
    /// Tries that are left.
    tries: u32,
}

impl<'a, 'u> TemplateMatcher<'a, 'u> {
    /// Spends tries; `false` if there are not enough.
    fn spend(&mut self, tries: usize) -> bool {
        let left = u32::try_from(tries).ok().and_then(|tries| self.tries.checked_sub(tries));
        self.tries = left.unwrap_or(0);
        left.is_some()
    }

    /// Matches all parts against `uri`, up to its end.
    fn parts(&mut self, parts: &'a [TemplatePart], uri: &'u str) -> bool {
        let Some((part, rest)) = parts.split_first() else { return uri.is_empty() };
        match part {
            TemplatePart::Literal(literal) => {
                uri.strip_prefix(literal.as_str()).is_some_and(|uri| self.parts(rest, uri))
            }
            TemplatePart::Expression(expression) => {
                self.variables(expression, &expression.variables, expression.first, uri, rest)
            }
        }
    }

    /// Matches the variables of one expression, then the parts behind it. A value is as long as possible.
    fn variables(
        &mut self,
        expression: &'a TemplateExpression,
        variables: &'a [TemplateVariable],
        before: &str,
        uri: &'u str,
        parts: &'a [TemplatePart],
    ) -> bool {
        let Some((variable, rest)) = variables.split_first() else { return self.parts(parts, uri) };
        let name = if expression.named { format!("{before}{}=", variable.name) } else { before.to_owned() };
        if let Some(from) = uri.strip_prefix(&*name) {
            let longest = from.bytes().take_while(|byte| expression.takes(variable.explode, *byte)).count();
            if !self.spend(longest / BYTES_PER_TRY) {
                return false;
            }
            let shortest = usize::from(!expression.named);
            for length in (shortest..=longest).rev().filter(|length| from.is_char_boundary(*length)) {
                if !self.spend(1) {
                    return false;
                }
                let value_count = self.values.len();
                self.values.push((&variable.name, &from[..length]));
                if self.variables(expression, rest, expression.separator, &from[length..], parts) {
                    return true;
                }
                self.values.truncate(value_count);
            }
        }
        // Members of a query may be omitted.
        expression.named && self.variables(expression, rest, before, uri, parts)
    }
}

/// Decodes percent-encoding, if the result is text.
pub(crate) fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let code = (byte == b'%').then(|| behind.get(..2)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(byte));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, uri: &str, expected: Option<&[(&str, &str)]>) {
        let template = UriTemplate::parse(template).unwrap();
        let values = template.matches(uri);
        let values = values
            .as_ref()
            .map(|values| values.iter().map(|(name, value)| (*name, value.as_str())).collect());
        let expected: Option<Vec<_>> = expected.map(<[_]>::to_vec);
        assert_eq!(values, expected, "{template} {uri}");
    }

    #[test]
    fn the_values_in_a_uri() {
        check("test://template/{id}/data", "test://template/123/data", Some(&[("id", "123")]));
        check("test://template/{id}/data", "test://template/1/2/data", None);
        check("test://template/{id}/data", "test://template//data", None);
        check("test://template/{id}/data", "test://template/123/data/", None);
        check("file:///{+path}", "file:///a/b.txt", Some(&[("path", "a/b.txt")]));
        check("x://{a}.{b}", "x://1.2.3", Some(&[("a", "1.2"), ("b", "3")]));
        check("x://{a,b}", "x://1,2", Some(&[("a", "1"), ("b", "2")]));
        check("x:/{/a,b}", "x://1/2", Some(&[("a", "1"), ("b", "2")]));
        check("x:/{/a*}", "x://1/2", Some(&[("a", "1/2")]));
        check("x://s{?q,n}", "x://s?q=a%20b&n=1", Some(&[("q", "a b"), ("n", "1")]));
        check("x://s{?q,n}", "x://s?n=1", Some(&[("n", "1")]));
        check("x://s{?q,n}", "x://s", Some(&[]));
        check("x://s{?q,n}", "x://s?q=", Some(&[("q", "")]));
        check("x://{name}", "x://M%C3%BCller", Some(&[("name", "M\u{fc}ller")]));
        check("x://{name}", "x://%zz%", Some(&[("name", "%zz%")]));
        check("x://plain", "x://plain", Some(&[]));
    }

    #[test]
    fn invalid_templates_are_refused() {
        for text in ["x://{a", "x://a}", "x://{}", "x://{a b}", "x://{+}"] {
            assert!(UriTemplate::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_comparison_ends() {
        let template = UriTemplate::parse("x:{a}{b}{c}{d}{e}{f}!").unwrap();
        assert_eq!(template.matches(&format!("x:{}", "a".repeat(1000))), None);
        assert_eq!(template.matches(&format!("x:{}!", "a".repeat(1 << 20))), None);
        let longest = format!("x:{}/{}", "a".repeat(8000), "b".repeat(8000));
        let values = UriTemplate::parse("x:{a}/{b}").unwrap().matches(&longest).map(|values| values.len());
        assert_eq!(values, Some(2));
    }

    #[test]
    fn a_template_that_fills_the_stack_is_refused() {
        for many in [format!("x:{{?{}a}}", "a,".repeat(100_000)), "{a}".repeat(100_000)] {
            assert!(UriTemplate::parse(&many).is_err());
        }
    }
}
