//! The error output of a server that did not come up, as the caller that adds the server reads it.

use toolyard_core::secrets::REDACTED;
use toolyard_core::{FailureCause, SecretRedactor, cause};
use toolyard_manifest::{HandlerConfig, HandlerKind, McpTransport};

/// Returns the values of the variables that were given to a program, each line of a value by itself as well.
pub(super) fn given_values(declared: &HandlerConfig) -> Vec<String> {
    let HandlerKind::Mcp(mcp) = &declared.kind else { return Vec::new() };
    let McpTransport::Stdio { env, .. } = &mcp.transport else { return Vec::new() };
    let mut values: Vec<String> = Vec::new();
    for (_, value) in env.iter() {
        values.push(value.to_owned());
        values.extend(value.lines().map(|line| line.trim().to_owned()));
    }
    values.retain(|value| !value.trim().is_empty());
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values.dedup();
    values
}

/// Returns the lines for a model, with a heading; nothing if there are none. Hides secrets and the given values.
pub(super) fn shown(lines: &str, secrets: &SecretRedactor, given: &[String]) -> String {
    // In the whole text first, because a value may have several lines.
    let of_values = SecretRedactor::new(given.iter().cloned());
    let hidden = secrets.hide(lines);
    let hidden = without_values(&of_values.hide(&hidden), given);
    let line = |line: &str| {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let line: String = line.chars().map(plain).collect();
        cause::shortened(line.trim_end()).into_owned()
    };
    let lines: Vec<_> = hidden.lines().map(line).filter(|line| !line.trim().is_empty()).collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!(". The last lines of its error output:\n{}", lines.join("\n")),
    }
}

/// Redacts secrets in a cause, and shortens its message. In the output of a program, `given` values are hidden as well.
pub(super) fn redacted_cause(
    cause: FailureCause,
    secrets: &SecretRedactor,
    given: &[String],
) -> FailureCause {
    let mut hidden = cause.hiding(secrets);
    hidden.output.iter_mut().for_each(|line| *line = without_values(line, given));
    hidden
}

/// Replaces the given values, where they stand by themselves.
fn without_values(text: &str, given: &[String]) -> String {
    given.iter().fold(text.to_owned(), |text, value| without_word(&text, value))
}

/// Replaces a value that stands by itself. A short value, such as `7`, may be a part of many words.
fn without_word(text: &str, value: &str) -> String {
    let (mut hidden, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(value) {
        let (before, after) = (&rest[..at], &rest[at + value.len()..]);
        let is_word = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
        let is_part = is_word(before.chars().next_back().or_else(|| hidden.chars().next_back()))
            || is_word(after.chars().next());
        hidden.push_str(before);
        hidden.push_str(if is_part { value } else { REDACTED });
        rest = after;
    }
    hidden + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &str, given: &[&str], expected: &str) {
        let values: Vec<_> = given.iter().map(|value| (*value).to_owned()).collect();
        let secrets = SecretRedactor::new(["hunter2hunter2".to_owned()]);
        assert_eq!(shown(lines, &secrets, &values), expected, "{lines}");
    }

    #[test]
    fn error_output_is_shown_without_secrets() {
        const HEAD: &str = ". The last lines of its error output:\n";
        check("", &[], "");
        check(" \n\n", &[], "");
        check("no\nTOKEN\n", &[], &format!("{HEAD}no\nTOKEN"));
        check("bad token hunter2hunter2", &[], &format!("{HEAD}bad token {REDACTED}"));
        check("key=abc, abcd", &["abc"], &format!("{HEAD}key={REDACTED}, abcd"));
        check("url?key=verysecretvalue1", &["verysecretvalue"], &format!("{HEAD}url?key={REDACTED}1"));
        check("one\ntwo lines", &["one\ntwo"], &format!("{HEAD}{REDACTED} lines"));
        check("\u{1b}[31mred\u{7}", &[], &format!("{HEAD} [31mred"));
        let long = format!("{} no file", "x".repeat(300));
        check(&long, &[], &format!("{HEAD}{}…{} no file", "x".repeat(120), "x".repeat(72)));
    }
}
