//! Reads lines of a text, by number and by pattern, for `get_from_working_memory`.
//!
//! - [`range`]: the lines to read, as a model writes them;
//! - [`pattern`]: regular expressions within limits, and errors that say what to write;
//! - `numbered`: the lines of a text with their numbers;
//! - `matching`: finds lines and writes them with their surroundings;
//! - `excerpt`: the part of a long line that is shown.
//!
//! The engine of regular expressions takes time in proportion to the text, and the size of a compiled pattern is
//! limited. Beyond that, a search checks its deadline between lines, and reads a line of any length in parts; it then
//! returns what it has found, and where to continue. The length of a result is limited.

mod excerpt;
mod matching;
mod numbered;
pub mod pattern;
pub mod range;
#[cfg(test)]
mod tests;

use tokio::time::{Duration, Instant};
use toolyard_manifest::ReadSettings;

use super::blocking::{BlockingRunner, WorkError};
pub(super) use excerpt::excerpt;
use matching::LineSearch;
use numbered::NumberedLines;
pub(super) use numbered::line_count;
use pattern::{LinePattern, PatternError};
use range::{LineRange, RangeError};

/// Maximum number of lines around a match.
pub const MAX_CONTEXT: usize = 50;

/// Time for a search that has exceeded its limit to return what it has found.
const GRACE: Duration = Duration::from_secs(2);

/// A part of a text to read. Without a range and a pattern it is the whole text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartRequest {
    /// Lines to read, or to search.
    pub lines: Option<LineRange>,
    /// Pattern of the lines to find.
    pub pattern: Option<LinePattern>,
    /// Number of lines to show before and after each match.
    pub context: usize,
}

/// The text to read from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceText {
    /// The text.
    pub text: String,
    /// Number of lines of a longer text that precede it.
    pub lines_before: usize,
    /// Number of lines of a longer text that follow it, if it stands for the longer text.
    pub lines_after: usize,
    /// True if it is a part of a longer text.
    pub is_part: bool,
}

/// Error of reading a part. A model reads the texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// The range is invalid.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// The pattern is invalid.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The search takes too long.
    #[error("The search took too long. Look for a simpler pattern, or in fewer lines.")]
    TooSlow,
    /// The search failed for an internal reason, such as a panic.
    #[error("The search failed because of a fault in the server.")]
    Fault,
}

/// The part that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPart {
    /// Text for the model.
    pub text: String,
    /// False if no line matches the pattern.
    pub has_match: bool,
}

impl PartRequest {
    /// Parses a request. An empty text counts as absent.
    ///
    /// # Errors
    /// Returns an error if the range or the pattern is invalid.
    pub fn parse(
        lines: Option<&str>,
        pattern: Option<&str>,
        ignores_case: bool,
        context: usize,
    ) -> Result<Self, PartError> {
        let lines = lines.filter(|lines| !lines.trim().is_empty()).map(LineRange::parse).transpose()?;
        let pattern = pattern.filter(|pattern| !pattern.is_empty());
        let pattern = pattern.map(|pattern| LinePattern::new(pattern, ignores_case)).transpose()?;
        Ok(Self { lines, pattern, context: context.min(MAX_CONTEXT) })
    }

    /// Returns `true` if the request is for the whole text.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.lines.is_none() && self.pattern.is_none()
    }

    /// Returns the part of a text. A search ends at the deadline with what it has found.
    #[must_use]
    pub fn read(&self, source: &SourceText, limits: &ReadSettings, deadline: Instant) -> TextPart {
        let lines = NumberedLines::of(source, self.lines);
        match &self.pattern {
            Some(pattern) => LineSearch::new(pattern, self.context, limits, deadline).run(lines),
            None => TextPart { text: lines.shown(limits.result_chars), has_match: true },
        }
    }
}

impl From<WorkError> for PartError {
    fn from(error: WorkError) -> Self {
        match error {
            WorkError::TooSlow => Self::TooSlow,
            WorkError::Fault => Self::Fault,
        }
    }
}

/// Reads parts of texts, and searches a limited number of texts at a time.
#[derive(Debug, Clone)]
pub struct PartReader {
    limits: ReadSettings,
    runner: BlockingRunner,
}

impl PartReader {
    /// Returns a reader with these limits.
    #[must_use]
    pub fn new(limits: ReadSettings) -> Self {
        Self { limits, runner: BlockingRunner::new(limits.concurrent, limits.time + GRACE) }
    }

    /// Returns the runner of searches.
    pub(super) const fn runner(&self) -> &BlockingRunner {
        &self.runner
    }

    /// Returns a part of a text.
    ///
    /// # Errors
    /// Returns [`PartError::TooSlow`] if a search waits or takes too long.
    pub async fn read(&self, source: SourceText, request: PartRequest) -> Result<TextPart, PartError> {
        let limits = self.limits;
        let is_search = request.pattern.is_some();
        // The time of a search begins when it runs, however long it has waited.
        let work = move || request.read(&source, &limits, Instant::now() + limits.time);
        let part = if is_search { self.runner.run(work).await } else { self.runner.run_freely(work).await };
        Ok(part?)
    }
}

/// Characters of a result for its title and the notice at its end.
const MAX_TITLE: usize = 300;

impl PartReader {
    /// Returns a reader whose results have at most this many characters, and at least 100 of the text.
    #[must_use]
    pub fn within(&self, chars: usize) -> Self {
        let result_chars = self.limits.result_chars.min(chars.saturating_sub(MAX_TITLE).max(100));
        Self { limits: ReadSettings { result_chars, ..self.limits }, ..self.clone() }
    }
}
