//! What is wrong with a document, where, and what would be right.

use std::{cmp::Ordering, fmt};

/// A position in a file, both parts counted from one. A column counts characters, not bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// A place in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name of the source, usually the path of a file.
    pub source: String,
    /// Absent where the trouble is the file as a whole.
    pub position: Option<Position>,
    /// The way through the document, such as `spec.handlers[2].mcpConfig`; empty at its root.
    pub path: FieldPath,
}

/// The way from the root of a document to one of its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(String);

/// One thing that is wrong.
///
/// A problem quotes what is written in the file, never what the environment put in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it is.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// What would have been right, to follow the word "expected".
    pub expected: Option<String>,
    /// What the author may want to do about it.
    pub hint: Option<String>,
}

/// Everything that is wrong with the documents: at least one problem, ordered by file and position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

// === impl Position ===

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

// === impl Place ===

impl Place {
    /// A source as a whole.
    pub(crate) fn file(source: impl Into<String>) -> Self {
        Self { source: source.into(), position: None, path: FieldPath::default() }
    }

    /// A position in a source, where the way through the document is not known.
    pub(crate) fn at(source: impl Into<String>, position: Position) -> Self {
        Self { position: Some(position), ..Self::file(source) }
    }

    /// As a person reads: by file, then from top to bottom.
    pub(crate) fn reading_order(&self, other: &Self) -> Ordering {
        self.source.cmp(&other.source).then(self.position.cmp(&other.position))
    }
}

impl fmt::Display for Place {
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
    /// The path of a member of the object at this path.
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

    /// The path of an item of the list at this path, counted from zero.
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

impl Problem {
    pub(crate) fn new(place: Place, message: impl Into<String>) -> Self {
        Self { place, message: message.into(), expected: None, hint: None }
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

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
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

impl Problems {
    /// `None` when there is nothing to complain about.
    pub(crate) fn from_found(mut found: Vec<Problem>) -> Option<Self> {
        found.sort_by(|a, b| a.place.reading_order(&b.place));
        (!found.is_empty()).then_some(Self(found))
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The problems, ordered by file and position.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.iter().enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            write!(f, "{line_end}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

// === texts ===

/// A text of the document, in backticks for a message.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", printable(text))
}

/// The words of which one is right.
pub(crate) fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<_> = words.into_iter().collect();
    let several = if words.len() > 1 { "one of " } else { "" };
    format!("{several}{}", words.join(", "))
}

/// Without control characters, which could steer the reader's terminal, and of bounded length.
fn printable(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown = String::new();
    for (index, c) in text.chars().enumerate() {
        match c {
            _ if index == LONGEST => return shown + "…",
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}
