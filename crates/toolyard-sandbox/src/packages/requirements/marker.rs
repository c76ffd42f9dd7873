//! Environment markers: the machines and interpreters that a requirement applies to.

use std::fmt;

use super::scanner::TextScanner;

/// Maximum number of comparisons of one marker.
const MAX_COMPARISONS: usize = 32;

/// Maximum depth of nested parentheses.
const MAX_DEPTH: usize = 8;

/// Maximum length of a quoted text, in bytes.
const MAX_TEXT_BYTES: usize = 200;

const VARIABLES: [&str; 12] = [
    "python_version",
    "python_full_version",
    "os_name",
    "sys_platform",
    "platform_release",
    "platform_system",
    "platform_version",
    "platform_machine",
    "platform_python_implementation",
    "implementation_name",
    "implementation_version",
    "extra",
];

/// Operators, with longer ones before their prefixes.
const COMPARISONS: [&str; 8] = ["===", "==", "~=", "!=", "<=", ">=", "<", ">"];

/// A parsed marker in normalized form. pip evaluates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EnvironmentMarker(String);

impl fmt::Display for EnvironmentMarker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl EnvironmentMarker {
    /// Parses the longest marker at the current position.
    pub(super) fn parse(scanner: &mut TextScanner<'_>) -> Result<Self, &'static str> {
        let mut reader = MarkerParser { scanner, output: String::new(), comparisons: 0 };
        reader.expression(0)?;
        Ok(Self(reader.output))
    }
}

struct MarkerParser<'a, 'b> {
    scanner: &'a mut TextScanner<'b>,
    output: String,
    comparisons: usize,
}

impl MarkerParser<'_, '_> {
    /// Parses terms with `and` and `or`; pip determines their precedence.
    fn expression(&mut self, depth: usize) -> Result<(), &'static str> {
        self.term(depth)?;
        loop {
            self.scanner.skip_blanks();
            let Some(word) = ["and", "or"].into_iter().find(|word| self.take_word(word)) else {
                return Ok(());
            };
            self.output.push_str(&format!(" {word} "));
            self.term(depth)?;
        }
    }

    fn term(&mut self, depth: usize) -> Result<(), &'static str> {
        self.scanner.skip_blanks();
        if !self.scanner.take("(") {
            return self.comparison();
        }
        if depth == MAX_DEPTH {
            return Err("a marker has at most 8 parentheses in each other");
        }
        self.output.push('(');
        self.expression(depth + 1)?;
        self.scanner.skip_blanks();
        if !self.scanner.take(")") {
            return Err("a parenthesis of the marker is not closed");
        }
        self.output.push(')');
        Ok(())
    }

    fn comparison(&mut self) -> Result<(), &'static str> {
        self.comparisons += 1;
        if self.comparisons > MAX_COMPARISONS {
            return Err("a marker has at most 32 comparisons");
        }
        let left = self.operand()?;
        let operator = self.operator()?;
        let right = self.operand()?;
        self.output.push_str(&format!("{left} {operator} {right}"));
        Ok(())
    }

    fn operator(&mut self) -> Result<&'static str, &'static str> {
        self.scanner.skip_blanks();
        if let Some(operator) = COMPARISONS.into_iter().find(|operator| self.scanner.take(operator)) {
            return Ok(operator);
        }
        if self.take_word("in") {
            return Ok("in");
        }
        if self.take_word("not") {
            self.scanner.skip_blanks();
            return if self.take_word("in") { Ok("not in") } else { Err("`in` comes after `not`") };
        }
        Err("a marker compares with `==`, `!=`, `<`, `<=`, `>`, `>=`, `~=`, `===`, `in` or `not in`")
    }

    fn operand(&mut self) -> Result<String, &'static str> {
        self.scanner.skip_blanks();
        match self.scanner.peek() {
            Some(quote @ ('"' | '\'')) => self.text(quote),
            _ => {
                let name = self.scanner.take_while(is_of_word);
                let variable = VARIABLES.contains(&name).then(|| name.to_owned());
                variable.ok_or("a marker compares a variable such as `python_version` with a text in quotes")
            }
        }
    }

    /// Parses a quoted text. pip splits lines at options before it parses markers, and expands `${NAME}`, so neither is
    /// permitted here.
    fn text(&mut self, quote: char) -> Result<String, &'static str> {
        let quote_text = quote.to_string();
        self.scanner.take(&quote_text);
        let text = self.scanner.take_while(|c| c.is_ascii_alphanumeric() || "._+-*!,~ ".contains(c));
        if !self.scanner.take(&quote_text) {
            return Err("a text of the marker has other characters than letters, digits and `._+-*!,~`");
        }
        if text.len() > MAX_TEXT_BYTES || text.contains(" -") {
            return Err("a text of the marker is too long, or has a hyphen after a blank");
        }
        Ok(format!("{quote}{text}{quote}"))
    }

    /// Consumes this word if it comes next.
    fn take_word(&mut self, word: &str) -> bool {
        let follows = self.scanner.rest().strip_prefix(word);
        follows.is_some_and(|rest| !rest.starts_with(is_of_word)) && self.scanner.take(word)
    }
}

const fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
