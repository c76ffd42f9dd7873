//! Finds lines and writes them with their surroundings.

use std::collections::VecDeque;
use std::fmt::Write;

use tokio::time::Instant;
use toolyard_manifest::ReadSettings;

use super::TextPart;
use super::excerpt::{beginning, excerpt};
use super::numbered::NumberedLines;
use super::pattern::LinePattern;
use crate::memory::texts::grouped;

/// Length in bytes up to which a line is shown as a whole. Of a longer one the surroundings of each match are shown.
const LONG_LINE: usize = 600;
/// Number of characters before and after a match in a long line.
const AROUND: usize = 120;
/// Maximum number of characters of a match that are shown.
const MAX_MATCH: usize = 400;
/// Number of bytes of a line that are searched at a time, between two looks at the clock; and of those that two parts
/// share, so that a match on their border is found.
const PART: usize = 64 * 1024;
const SHARED: usize = 1024;

/// A search for lines, and what it has written so far.
pub(super) struct LineSearch<'p, 'a> {
    pattern: &'p LinePattern,
    context: usize,
    limits: &'p ReadSettings,
    deadline: Instant,
    /// Lines before the current one that are not written yet: at most `context`.
    before: VecDeque<(usize, &'a str)>,
    /// Number of lines that are still to be written after a match.
    after: usize,
    /// Last line that is written, and the last one with a match.
    last: usize,
    last_match: usize,
    text: String,
    /// Remaining characters of the result.
    left: usize,
    /// Number of matches that are written, and of those that are not.
    shown: usize,
    more: usize,
    /// First line with a match that is not written.
    next: Option<usize>,
}

/// The end of the time of a search.
struct OutOfTime;

impl<'p, 'a> LineSearch<'p, 'a> {
    pub(super) fn new(
        pattern: &'p LinePattern,
        context: usize,
        limits: &'p ReadSettings,
        deadline: Instant,
    ) -> Self {
        Self {
            pattern,
            context,
            limits,
            deadline,
            before: VecDeque::new(),
            after: 0,
            last: 0,
            last_match: 0,
            text: String::new(),
            left: limits.result_chars,
            shown: 0,
            more: 0,
            next: None,
        }
    }

    /// Searches all lines and returns the result.
    pub(super) fn run(mut self, lines: NumberedLines<'a>) -> TextPart {
        let (mut searched, mut stopped) = (0_usize, None);
        for (number, line) in lines.iter() {
            if self.search_line(number, line).is_err() {
                stopped = Some(number);
                break;
            }
            searched += 1;
        }
        let match_count = self.shown + self.more;
        let mut text = match match_count {
            0 => format!("No match in {} line{}.", grouped(searched), plural(searched)),
            _ => format!(
                "{} match{} in {} line{}:",
                grouped(match_count),
                if match_count == 1 { "" } else { "es" },
                grouped(searched),
                plural(searched)
            ),
        };
        text.push_str(&self.text);
        if let (Some(next), 1..) = (self.next, self.more) {
            let more = grouped(self.more);
            // In a line of which matches are shown, the same ones would come again.
            let _ = match next > self.last_match {
                true => {
                    write!(text, "\n[{more} more: continue with lines \"{next}-\", or narrow the pattern]")
                }
                false => write!(text, "\n[{more} more: narrow the pattern]"),
            };
        }
        if let Some(number) = stopped {
            let _ = write!(text, "\n[stopped at the time limit: continue with lines \"{number}-\"]");
        }
        TextPart { text, has_match: match_count > 0 }
    }

    fn search_line(&mut self, number: usize, line: &'a str) -> Result<(), OutOfTime> {
        if line.len() > LONG_LINE {
            return self.search_long_line(number, line);
        }
        self.check_time()?;
        match self.pattern.find_at(line, 0) {
            Some(_) => self.add_match(number, &format!("{number}:{line}")),
            None => self.add_other(number, line),
        }
        Ok(())
    }

    /// Searches a long line, in parts.
    fn search_long_line(&mut self, number: usize, line: &'a str) -> Result<(), OutOfTime> {
        let (mut from, mut any) = (0, false);
        while let Some((start, end)) = self.find_in_parts(line, from)? {
            let shown_end = start + beginning(&line[start..end], MAX_MATCH).len();
            let (part, behind) = excerpt(line, (start, shown_end), AROUND * (self.context + 1));
            let column = line[..start].chars().count() + 1;
            self.add_match(number, &format!("{number}:{column}:{part}"));
            any = true;
            // What was shown around the match is not shown again.
            from = behind.max(end);
            if from >= line.len() {
                break;
            }
        }
        if !any {
            self.add_other(number, line);
        }
        Ok(())
    }

    /// Returns the first match in a long line that begins at `from` or after it.
    fn find_in_parts(&self, line: &str, mut from: usize) -> Result<Option<(usize, usize)>, OutOfTime> {
        loop {
            self.check_time()?;
            let end = char_boundary(line, from + PART);
            match self.pattern.find_at(&line[..end], from) {
                // It may go on after this part.
                Some((start, found_end)) if found_end == end && end < line.len() && start > from => {
                    from = start
                }
                Some(found) => return Ok(Some(found)),
                None if end == line.len() => return Ok(None),
                None => from = char_boundary(line, end - SHARED),
            }
        }
    }

    fn check_time(&self) -> Result<(), OutOfTime> {
        if Instant::now() < self.deadline { Ok(()) } else { Err(OutOfTime) }
    }

    /// Writes a match with the lines before it, or counts it if the result is full.
    fn add_match(&mut self, number: usize, shown: &str) {
        let mut before = std::mem::take(&mut self.before);
        let length = |text: &str| text.chars().count() + 1;
        let needed = length(shown)
            + before.iter().map(|(_, line)| length(beginning(line, LONG_LINE)) + 8).sum::<usize>();
        let fits = self.next.is_none()
            && self.shown < self.limits.matches
            && (needed <= self.left || self.shown == 0);
        if !fits {
            self.more += 1;
            self.next.get_or_insert(number);
            self.after = 0;
            return;
        }
        if needed > self.left {
            // The first match is shown without the lines before it.
            before.clear();
        }
        let first = before.front().map_or(number, |(number, _)| *number);
        if self.context > 0 && self.shown > 0 && first > self.last + 1 {
            self.write("--");
        }
        for (number, line) in before {
            self.write_other(number, line);
        }
        let excerpt = beginning(shown, self.left.max(1)).to_owned();
        self.write(&excerpt);
        (self.last, self.last_match, self.after) = (number, number, self.context);
        self.shown += 1;
    }

    /// Writes a line after a match, or keeps it for the next match.
    fn add_other(&mut self, number: usize, line: &'a str) {
        if self.after > 0 && self.left > 0 {
            self.after -= 1;
            self.write_other(number, line);
            return;
        }
        if self.context > 0 && self.next.is_none() {
            self.before.push_back((number, line));
            if self.before.len() > self.context {
                self.before.pop_front();
            }
        }
    }

    fn write_other(&mut self, number: usize, line: &str) {
        let part = beginning(line, LONG_LINE);
        let mark = if part.len() < line.len() { "…" } else { "" };
        self.write(&format!("{number}-{part}{mark}"));
        self.last = number;
    }

    fn write(&mut self, line: &str) {
        self.text.push('\n');
        self.text.push_str(line);
        self.left = self.left.saturating_sub(line.chars().count() + 1);
    }
}

const fn plural(number: usize) -> &'static str {
    if number == 1 { "" } else { "s" }
}

/// Returns the last character boundary up to `at`.
fn char_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}
