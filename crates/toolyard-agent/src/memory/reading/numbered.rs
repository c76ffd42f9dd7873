//! The lines of a text with their numbers.

use super::SourceText;
use super::excerpt::beginning;
use super::range::LineRange;
use crate::memory::texts::grouped;

/// Lines of a text, without the ends of the lines.
#[derive(Debug, Clone)]
pub(super) struct NumberedLines<'a> {
    /// The text of the lines.
    text: &'a str,
    /// Number of the first line.
    pub(super) first: usize,
    /// Number of the last line of the whole source; the one before its first line if it is empty.
    last_of_source: usize,
    /// Number of the first line of the source, if that is a part of a longer text.
    first_of_part: Option<usize>,
}

impl<'a> NumberedLines<'a> {
    /// Returns the lines of a range.
    pub(super) fn of(source: &'a SourceText, range: Option<LineRange>) -> Self {
        let (text, before) = (source.text.as_str(), source.lines_before);
        let count = line_count(text);
        let last_of_source = before + count + source.lines_after;
        let (first, last) = match range {
            None => (before + 1, last_of_source),
            Some(LineRange::Between(first, last)) => (first.max(before + 1), last.min(last_of_source)),
            Some(LineRange::First(lines)) => (before + 1, last_of_source.min(before.saturating_add(lines))),
            Some(LineRange::Last(lines)) => (last_of_source - lines.min(count) + 1, last_of_source),
        };
        let start = line_start(text, first - before - 1);
        let length = line_start(&text[start..], (last + 1).saturating_sub(first));
        let first_of_part = source.is_part.then_some(before + 1);
        Self { text: &text[start..start + length], first, last_of_source, first_of_part }
    }

    /// Returns an iterator over the numbers and the lines.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        let mut rest = self.text;
        let lines = std::iter::from_fn(move || {
            let end = match memchr::memchr(b'\n', rest.as_bytes()) {
                Some(at) => at + 1,
                None if rest.is_empty() => return None,
                None => rest.len(),
            };
            let (line, after) = rest.split_at(end);
            rest = after;
            let line = line.strip_suffix('\n').unwrap_or(line);
            Some(line.strip_suffix('\r').unwrap_or(line))
        });
        (self.first..).zip(lines)
    }

    /// Returns the lines with a title, in at most `chars` characters and a notice.
    pub(super) fn shown(&self, chars: usize) -> String {
        let (mut shown, mut notice, mut left, mut end) = (String::new(), String::new(), chars, self.first);
        for (number, line) in self.iter() {
            let length = line.chars().count();
            if length < left {
                left -= length + 1;
                shown.push_str(line);
                shown.push('\n');
                end = number + 1;
                continue;
            }
            if number > self.first {
                notice = format!("[cut: continue with lines \"{number}-\"]");
            } else {
                let part = beginning(line, chars);
                let rest = grouped(length - part.chars().count());
                notice = format!("[{rest} more characters in this line: find a part of it with grep]");
                (shown, end) = (format!("{part}\n"), number + 1);
            }
            break;
        }
        shown.push_str(&notice);
        let (first, last, shown) = (self.first, end - 1, shown.trim_end_matches('\n'));
        let total = match self.first_of_part {
            Some(first) => format!("{first}-{}", self.last_of_source),
            None => grouped(self.last_of_source),
        };
        match (end - first, total) {
            (_, _) if self.last_of_source == 0 => "The text is empty.".to_owned(),
            (0, total) => format!("There are no such lines: the last one is {total}."),
            (1, total) => format!("Line {last} of {total}:\n{shown}"),
            (_, total) => format!("Lines {first}-{last} of {total}:\n{shown}"),
        }
    }
}

/// Returns the number of lines. The end of the last line may be missing.
pub(in crate::memory) fn line_count(text: &str) -> usize {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    ends + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Returns the start of the line after `lines` lines, in bytes; the end of the text if there are fewer.
fn line_start(text: &str, lines: usize) -> usize {
    let Some(before) = lines.checked_sub(1) else { return 0 };
    memchr::memchr_iter(b'\n', text.as_bytes()).nth(before).map_or(text.len(), |at| at + 1)
}
