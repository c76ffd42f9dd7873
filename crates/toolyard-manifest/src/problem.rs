//! Problems of documents: location, message and remedy.

use std::{cmp::Ordering, fmt};

use serde_json::{Value, json};

/// A position in a file. Both parts start at one; a column counts characters, not bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePosition {
    /// Line number.
    pub line: usize,
    /// Column number.
    pub column: usize,
}

/// A location in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// Name of the source, usually the path of a file.
    pub source: String,
    /// Position in the source. `None` if the problem is the file as a whole.
    pub position: Option<SourcePosition>,
    /// Path through the document, such as `spec.handlers[2].mcpConfig`; empty at its root.
    pub path: FieldPath,
}

/// The path from the root of a document to one of its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldPath(String);

/// A problem of a document.
///
/// It quotes the text of the file, never the values of references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestProblem {
    /// Location of the problem.
    pub location: SourceLocation,
    /// Description of the problem.
    pub message: String,
    /// The expected value, as a continuation of the word "expected".
    pub expected: Option<String>,
    /// A suggestion for the author.
    pub hint: Option<String>,
}

/// All problems of the documents, at least one, ordered by file and position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestProblems(Vec<ManifestProblem>);

// === impl Position ===

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

// === impl Place ===

impl SourceLocation {
    /// The location of a source as a whole.
    pub(crate) fn file(source: impl Into<String>) -> Self {
        Self { source: source.into(), position: None, path: FieldPath::default() }
    }

    /// A position in a source, without a path through the document.
    pub(crate) fn at(source: impl Into<String>, position: SourcePosition) -> Self {
        Self { position: Some(position), ..Self::file(source) }
    }

    /// Compares by file, then by position.
    pub(crate) fn reading_order(&self, other: &Self) -> Ordering {
        self.source.cmp(&other.source).then(self.position.cmp(&other.position))
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if let Some(position) = self.position {
            write!(f, ":{position}")?;
        }
        if self.path.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.path) }
    }
}

// === impl FieldPath ===

impl FieldPath {
    /// Returns the path of a member of the object at this path.
    pub(crate) fn field(&self, name: &str) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        Self(match (self.0.as_str(), name) {
            (parent, name) if name.is_empty() || !name.chars().all(plain) => {
                format!("{parent}[\"{}\"]", printable(name))
            }
            ("", name) => name.to_owned(),
            (parent, name) => format!("{parent}.{name}"),
        })
    }

    /// Returns true for this path.
    pub(crate) fn is(&self, path: &str) -> bool {
        self.0 == path
    }

    /// Returns true for a path with these last members.
    pub(crate) fn ends_with(&self, members: &str) -> bool {
        self.0.strip_suffix(members).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    }

    /// Returns what is behind these first members.
    pub(crate) fn behind(&self, members: &str) -> Option<&str> {
        self.0.strip_prefix(members)?.strip_prefix('.')
    }

    /// Returns the path of an item of the list at this path, counted from zero.
    pub(crate) fn item(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Problem ===

impl ManifestProblem {
    /// Returns the problem as JSON, without the members that are unknown.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { location, message, expected, hint } = self;
        let path = location.path.to_string();
        let mut problem = json!({"file": location.source});
        let parts = [
            ("line", location.position.map(|position| json!(position.line))),
            ("column", location.position.map(|position| json!(position.column))),
            ("path", (!path.is_empty()).then(|| json!(path))),
            ("message", Some(json!(message))),
            ("expected", expected.as_ref().map(|expected| json!(expected))),
            ("hint", hint.as_ref().map(|hint| json!(hint))),
        ];
        for (name, value) in parts {
            if let Some(value) = value {
                problem[name] = value;
            }
        }
        problem
    }

    pub(crate) fn new(place: SourceLocation, message: impl Into<String>) -> Self {
        Self { location: place, message: message.into(), expected: None, hint: None }
    }

    pub(crate) fn expected(self, expected: impl Into<String>) -> Self {
        Self { expected: Some(expected.into()), ..self }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn maybe_hint(self, hint: Option<impl Into<String>>) -> Self {
        Self { hint: hint.map(Into::into), ..self }
    }
}

impl fmt::Display for ManifestProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.message)?;
        if let Some(expected) = &self.expected {
            write!(f, "\n  expected {expected}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

// === impl Problems ===

impl ManifestProblems {
    /// Sorts problems; returns `None` if there are none.
    pub(crate) fn from_unsorted(mut problems: Vec<ManifestProblem>) -> Option<Self> {
        problems.sort_by(|a, b| a.location.reading_order(&b.location));
        (!problems.is_empty()).then_some(Self(problems))
    }

    /// Number of problems.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The problems, ordered by file and position.
    pub fn iter(&self) -> std::slice::Iter<'_, ManifestProblem> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a ManifestProblems {
    type Item = &'a ManifestProblem;
    type IntoIter = std::slice::Iter<'a, ManifestProblem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for ManifestProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.iter().enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            write!(f, "{line_end}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ManifestProblems {}

// === texts ===

/// Quotes a text of the document in backticks.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", printable(text))
}

/// Lists the valid words.
pub(crate) fn choice_list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<_> = words.into_iter().collect();
    let several = if words.len() > 1 { "one of " } else { "" };
    format!("{several}{}", words.join(", "))
}

/// Escapes control characters, which could affect the reader's terminal, and limits the length.
fn printable(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    let mut output = String::new();
    for (index, c) in text.chars().enumerate() {
        match c {
            _ if index == MAX_CHARS => return output + "…",
            c if c.is_control() => output.extend(c.escape_default()),
            c => output.push(c),
        }
    }
    output
}
