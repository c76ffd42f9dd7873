//! Paths of outputs, which stay in the shared folder.

use std::fmt;

/// Maximum length of a path in bytes.
const MAX_LENGTH: usize = 255;

/// A relative path without `.`, `..` and empty components. Paths are compared exactly.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharedPath(String);

/// The reason why a text is not a path in the shared folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SharedPathError {
    /// It is empty, or too long.
    #[error("a path has 1 to {MAX_LENGTH} bytes")]
    Length,
    /// It begins with `/`.
    #[error("the path is absolute: paths are relative to the shared folder")]
    Absolute,
    /// It leaves the folder, or has a component without a name.
    #[error("the path has a component `.`, `..` or an empty one: it would leave the shared folder")]
    Escape,
    /// It has a character that is not allowed.
    #[error("the path has a backslash or a control character")]
    Character,
    /// A component begins with `.`.
    #[error("the path has a hidden component: names begin with another character than `.`")]
    Hidden,
}

impl SharedPath {
    /// Parses a path.
    ///
    /// # Errors
    /// If the path may leave the folder.
    pub fn parse(text: &str) -> Result<Self, SharedPathError> {
        if text.is_empty() || text.len() > MAX_LENGTH {
            return Err(SharedPathError::Length);
        }
        if text.starts_with('/') {
            return Err(SharedPathError::Absolute);
        }
        if text.contains(|c: char| c == '\\' || c.is_control()) {
            return Err(SharedPathError::Character);
        }
        if text.split('/').any(|component| matches!(component, "" | "." | "..")) {
            return Err(SharedPathError::Escape);
        }
        // Files that are being written have such names.
        if text.split('/').any(|component| component.starts_with('.')) {
            return Err(SharedPathError::Hidden);
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the path as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the folders of the path, and the name of the file.
    pub(crate) fn split(&self) -> (impl Iterator<Item = &str>, &str) {
        let (folders, name) = self.0.rsplit_once('/').unwrap_or(("", &self.0));
        (folders.split('/').filter(|folder| !folder.is_empty()), name)
    }
}

impl fmt::Display for SharedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_that_may_leave_the_folder_is_refused() {
        for (text, expected) in [
            ("", SharedPathError::Length),
            ("/etc/passwd", SharedPathError::Absolute),
            ("//a", SharedPathError::Absolute),
            ("..", SharedPathError::Escape),
            ("../a", SharedPathError::Escape),
            ("a/../../b", SharedPathError::Escape),
            ("a/..", SharedPathError::Escape),
            ("./a", SharedPathError::Escape),
            ("a//b", SharedPathError::Escape),
            ("a/", SharedPathError::Escape),
            ("a\\..\\b", SharedPathError::Character),
            ("a\0b", SharedPathError::Character),
            ("a\nb", SharedPathError::Character),
            (".a", SharedPathError::Hidden),
            ("a/.b", SharedPathError::Hidden),
        ] {
            assert_eq!(SharedPath::parse(text), Err(expected), "{text:?}");
        }
        assert_eq!(SharedPath::parse(&"x".repeat(256)), Err(SharedPathError::Length));
        for text in ["a", "out.json", "reports/2026/a b.md", "a..b", "é"] {
            assert_eq!(SharedPath::parse(text).map(|path| path.0), Ok(text.to_owned()));
        }
    }

    #[test]
    fn path_is_split_into_folders_and_name() {
        let path = SharedPath::parse("a/b/c.txt").expect("a path");
        let (folders, name) = path.split();
        assert_eq!((folders.collect::<Vec<_>>(), name), (vec!["a", "b"], "c.txt"));
        let path = SharedPath::parse("c.txt").expect("a path");
        assert_eq!((path.split().0.count(), path.split().1), (0, "c.txt"));
    }
}
