//! Names of skills.

use std::fmt;

use super::error::SkillError;

/// Maximum length of a name in characters.
const MAX_LENGTH: usize = 128;

/// A name: segments of letters, digits, `-` and `_`, separated by `/`. Names that differ only in case are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillName(String);

impl SkillName {
    /// Parses a name, which is the value of the argument `argument`.
    ///
    /// # Errors
    /// Returns [`SkillError::BadName`] if the name is invalid.
    pub fn parse(argument: &'static str, text: &str) -> Result<Self, SkillError> {
        let text = text.trim();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_segment = |segment: &str| !segment.is_empty() && segment.chars().all(is_plain);
        match text.len() <= MAX_LENGTH && text.split('/').all(is_segment) {
            true => Ok(Self(text.to_owned())),
            false => Err(SkillError::BadName(argument)),
        }
    }

    /// Returns the text in its original case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `true` if this is the name of a skill, ignoring case.
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
