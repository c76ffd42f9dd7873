//! `${NAME}` in a string stands for a variable of the environment; `$${` writes a `${`.

use crate::{problem::quoted, report::Environment};

/// Why a reference could not be replaced. It repeats what is written, never a variable's value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadReference {
    #[error("the environment variable {} is not set", quoted(.0))]
    Unset(String),
    #[error("{} is not the name of an environment variable", quoted(.0))]
    NotAName(String),
    #[error("a `${{` has no `}}`")]
    Unclosed,
}

/// `text` with its references replaced, or everything that is wrong with them.
///
/// What comes from the environment is not looked at again: a value that holds `${` stays as it is.
pub(crate) fn expand(text: &str, environment: &Environment<'_>) -> Result<String, Vec<BadReference>> {
    let mut expanded = String::new();
    let mut bad = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            expanded.extend([before, "${"]);
            rest = after;
            continue;
        }
        expanded.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            bad.push(BadReference::Unclosed);
            rest = "";
            break;
        };
        match variable(name, environment) {
            Ok(value) => expanded.push_str(&value),
            Err(problem) => bad.push(problem),
        }
        rest = after;
    }
    expanded.push_str(rest);
    if bad.is_empty() { Ok(expanded) } else { Err(bad) }
}

fn variable(name: &str, environment: &Environment<'_>) -> Result<String, BadReference> {
    if !is_name(name) {
        return Err(BadReference::NotAName(name.to_owned()));
    }
    environment(name).ok_or_else(|| BadReference::Unset(name.to_owned()))
}

fn is_name(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(inner) && !text.starts_with(|c: char| c.is_ascii_digit()) && !text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &[&str]>) {
        let environment = |name: &str| match name {
            "HOST" => Some("example.com".to_owned()),
            "NESTED" => Some("${HOST}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let found =
            expand(text, &environment).map_err(|bad| bad.iter().map(ToString::to_string).collect::<Vec<_>>());
        let expected =
            expected.map(str::to_owned).map_err(|bad| bad.iter().map(|s| (*s).to_owned()).collect());
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn references_are_replaced_once() {
        check("https://${HOST}/mcp", Ok("https://example.com/mcp"));
        check("${HOST}${EMPTY}${HOST}", Ok("example.comexample.com"));
        check("${NESTED}", Ok("${HOST}"));
        check("$HOST $ } $}", Ok("$HOST $ } $}"));
    }

    #[test]
    fn a_doubled_dollar_escapes() {
        check("$${HOST}", Ok("${HOST}"));
        check("$$${HOST} ${HOST}", Ok("$${HOST} example.com"));
    }

    #[test]
    fn bad_references_are_reported_together() {
        check(
            "${MISSING} ${} ${HOST:-x} ${",
            Err(&[
                "the environment variable `MISSING` is not set",
                "`` is not the name of an environment variable",
                "`HOST:-x` is not the name of an environment variable",
                "a `${` has no `}`",
            ]),
        );
    }
}
