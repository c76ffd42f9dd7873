//! Templates of URIs (RFC 6570), read backwards: which values would have made this URI?

use std::fmt;
use std::sync::Arc;

/// A template that URIs are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    text: Arc<str>,
    parts: Vec<Part>,
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no URI template: {problem}")]
pub struct BadTemplate {
    text: String,
    problem: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Expression(Expression),
}

/// `{+a,b}`: the operator decides what stands in front, between, and inside of the values.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expression {
    /// What stands in front of the first value.
    first: &'static str,
    /// What stands between two values.
    separator: &'static str,
    /// Whether a value is written as `name=value`.
    named: bool,
    /// Whether reserved characters stand for themselves in a value.
    reserved: bool,
    variables: Vec<Variable>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    name: String,
    /// A list: the separator may stand in the value.
    explode: bool,
}

/// In how many ways a URI is cut before it counts as one that does not fit: each variable multiplies them.
const MAX_TRIES: u32 = 10_000;

impl UriTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// When a brace has no partner, or an expression no variable.
    pub fn parse(text: &str) -> Result<Self, BadTemplate> {
        let bad = |problem| BadTemplate { text: text.to_owned(), problem };
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (literal, behind) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
            if literal.contains('}') {
                return Err(bad("a brace is closed that was not opened"));
            }
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            let Some(behind) = behind.strip_prefix('{') else { break };
            let (inside, behind) = behind.split_once('}').ok_or_else(|| bad("a brace is not closed"))?;
            parts.push(Part::Expression(Expression::parse(inside).map_err(bad)?));
            rest = behind;
        }
        Ok(Self { text: text.into(), parts })
    }

    /// The text of the template.
    #[must_use]
    pub const fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The names of the variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().flat_map(Part::variables).map(|variable| &*variable.name)
    }

    /// The values of the variables in a URI that this template could have made, percent-decoded. A variable
    /// that was left out, which only those in `{?a}` and `{&a}` can be, is not among them.
    #[must_use]
    pub fn matches(&self, uri: &str) -> Option<Vec<(&str, String)>> {
        let mut matching = Matching { values: Vec::new(), tries: MAX_TRIES };
        matching.parts(&self.parts, uri).then_some(matching.values)
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Part {
    fn variables(&self) -> &[Variable] {
        match self {
            Self::Literal(_) => &[],
            Self::Expression(expression) => &expression.variables,
        }
    }
}

impl Expression {
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
        let variables = names.split(',').map(Variable::parse).collect::<Option<_>>();
        let variables = variables.ok_or("a variable is not made of letters, digits, `_`, `.` and `%`")?;
        Ok(Self { first, separator, named, reserved, variables })
    }

    /// What a value may be made of.
    fn takes(&self, explode: bool, byte: u8) -> bool {
        let unreserved = byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte) || !byte.is_ascii();
        let reserved = b":/?#[]@!$&'()*+,;=".contains(&byte);
        unreserved || (self.reserved && reserved) || (explode && self.separator.as_bytes() == [byte])
    }
}

impl Variable {
    fn parse(text: &str) -> Option<Self> {
        let (name, explode) = text.strip_suffix('*').map_or((text, false), |name| (name, true));
        // A prefix (`{name:3}`) says how much of a value is written, which cannot be read backwards.
        let name = name.split(':').next()?;
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.%".contains(&byte);
        (!name.is_empty() && name.bytes().all(legal)).then(|| Self { name: name.to_owned(), explode })
    }
}

/// One comparison.
struct Matching<'a> {
    values: Vec<(&'a str, String)>,
    /// How many ways of cutting the URI may still be tried.
    tries: u32,
}

impl<'a> Matching<'a> {
    /// Takes all parts off the front of `uri`, so that nothing is left.
    fn parts(&mut self, parts: &'a [Part], uri: &str) -> bool {
        let Some((part, rest)) = parts.split_first() else { return uri.is_empty() };
        match part {
            Part::Literal(literal) => {
                uri.strip_prefix(literal.as_str()).is_some_and(|uri| self.parts(rest, uri))
            }
            Part::Expression(expression) => {
                self.variables(expression, &expression.variables, expression.first, uri, rest)
            }
        }
    }

    /// Takes the variables of one expression off the front of `uri`, then the parts behind it. A value is as
    /// long as it can be.
    fn variables(
        &mut self,
        expression: &'a Expression,
        variables: &'a [Variable],
        before: &str,
        uri: &str,
        parts: &'a [Part],
    ) -> bool {
        let Some((variable, rest)) = variables.split_first() else { return self.parts(parts, uri) };
        let name = if expression.named { format!("{before}{}=", variable.name) } else { before.to_owned() };
        if let Some(from) = uri.strip_prefix(&*name) {
            let longest = from.bytes().take_while(|byte| expression.takes(variable.explode, *byte)).count();
            let shortest = usize::from(!expression.named);
            for length in (shortest..=longest).rev().filter(|length| from.is_char_boundary(*length)) {
                let Some(left) = self.tries.checked_sub(1) else { return false };
                self.tries = left;
                let known = self.values.len();
                self.values.push((&variable.name, decode(&from[..length])));
                if self.variables(expression, rest, expression.separator, &from[length..], parts) {
                    return true;
                }
                self.values.truncate(known);
            }
        }
        // Members of a query may be left out.
        expression.named && self.variables(expression, rest, before, uri, parts)
    }
}

/// Undoes percent-encoding, where that gives text.
fn decode(text: &str) -> String {
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
    fn texts_that_are_no_templates() {
        for text in ["x://{a", "x://a}", "x://{}", "x://{a b}", "x://{+}"] {
            assert!(UriTemplate::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_comparison_ends() {
        let template = UriTemplate::parse("x:{a}{b}{c}{d}{e}{f}!").unwrap();
        assert_eq!(template.matches(&format!("x:{}", "a".repeat(1000))), None);
    }
}
