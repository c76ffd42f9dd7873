//! What a skill may be called.

use std::fmt;

use super::limits::SkillError;

/// How long a name may be, in characters.
const LONGEST: usize = 128;

/// A name: segments of letters, digits, `-` and `_`, with `/` between them. Names that differ in their case only are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillName(String);

impl SkillName {
    /// Reads a name that is given as the argument `argument`.
    ///
    /// # Errors
    /// [`SkillError::BadName`].
    pub fn parse(argument: &'static str, text: &str) -> Result<Self, SkillError> {
        let text = text.trim();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_segment = |segment: &str| !segment.is_empty() && segment.chars().all(is_plain);
        match text.len() <= LONGEST && text.split('/').all(is_segment) {
            true => Ok(Self(text.to_owned())),
            false => Err(SkillError::BadName(argument)),
        }
    }

    /// The text, in the case in which it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a skill of this name is meant.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.0.eq_ignore_ascii_case(name)
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
