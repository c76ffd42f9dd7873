//! The lines to read, as a model writes them.

/// Number of lines of `first` and `last` without a number.
const DEFAULT_COUNT: usize = 20;

/// Maximum length of a range in an error message, in characters.
const MAX_SHOWN: usize = 40;

/// Lines of a text, which are numbered from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineRange {
    /// From one line to another one, both included.
    Between(usize, usize),
    /// The first lines.
    First(usize),
    /// The last lines.
    Last(usize),
}

/// Error of a range that cannot be read. A model reads the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "lines: `{0}` is no range of lines, which count from 1. Write `120-180`, `120-`, `first 20` or `last 20`."
)]
pub struct RangeError(String);

impl LineRange {
    /// Parses a range, such as `120-180`, `120-` (to the end), `120`, `first 20` or `last 20`. Other common forms of the
    /// same are accepted: `120:180`, `120..180`, `L120-L180`, `head 20`, `tail 20`, and `-20` for the last lines.
    ///
    /// # Errors
    /// Returns an error that says what to write.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        let invalid = || RangeError(text.trim().chars().take(MAX_SHOWN).collect());
        let lower = text.to_lowercase();
        let plain = ["lines", "line"].iter().find_map(|word| lower.trim().strip_prefix(word));
        let plain = plain.unwrap_or(&lower).trim();
        let range = counted(plain).or_else(|| between(plain)).ok_or_else(invalid)?;
        match range {
            Self::First(0) | Self::Last(0) | Self::Between(_, 0) => Err(invalid()),
            Self::Between(first, last) => Ok(Self::Between(first.max(1).min(last), last.max(first))),
            other => Ok(other),
        }
    }
}

/// Parses a number of lines at the beginning or the end.
fn counted(text: &str) -> Option<LineRange> {
    let of = |words: [&str; 2]| words.iter().find_map(|word| text.strip_prefix(word));
    let (rest, range): (_, fn(usize) -> LineRange) = match (of(["first", "head"]), of(["last", "tail"])) {
        (Some(rest), _) => (rest, LineRange::First),
        (None, Some(rest)) => (rest, LineRange::Last),
        (None, None) => return number(text.strip_prefix('-')?).map(LineRange::Last),
    };
    let count = rest.trim_start_matches([' ', ':', '=', '-']).trim_end_matches("lines").trim();
    if count.is_empty() { Some(range(DEFAULT_COUNT)) } else { number(count).map(range) }
}

/// Parses two numbers of lines, or one.
fn between(text: &str) -> Option<LineRange> {
    if let Some(line) = number(text) {
        return Some(LineRange::Between(line, line));
    }
    let ends = ["..", "-", ":", ",", "–", " to "].iter().find_map(|mark| text.split_once(mark));
    let (first, last) = ends?;
    let first = number(first)?;
    match last.trim() {
        "" | "end" => Some(LineRange::Between(first.max(1), usize::MAX)),
        last => Some(LineRange::Between(first, number(last)?)),
    }
}

/// Parses the number of a line. A number that is too large is the largest one.
fn number(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text.strip_prefix('l').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::LineRange::{Between, First, Last};
    use super::*;

    #[test]
    fn common_forms_of_a_range_are_parsed() {
        #[track_caller]
        fn check(texts: &[&str], expected: LineRange) {
            for text in texts {
                assert_eq!(LineRange::parse(text), Ok(expected), "{text:?}");
            }
        }
        check(
            &[
                "120-180",
                " 120 - 180 ",
                "120:180",
                "120..180",
                "120,180",
                "120–180",
                "120 to 180",
                "L120-L180",
                "lines 120-180",
                "180-120",
            ],
            Between(120, 180),
        );
        check(&["120", "line 120", "L120", "120-120"], Between(120, 120));
        check(&["120-", "120:", "120..", "120-end"], Between(120, usize::MAX));
        check(
            &["first 20", "First 20 lines", "first:20", "first20", "first-20", "head 20", "first", "head"],
            First(20),
        );
        check(&["last 20", "tail 20", "LAST 20", "-20", "last"], Last(20));
        check(&["0-10", "1-10"], Between(1, 10));
        check(&["7-99999999999999999999999"], Between(7, usize::MAX));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "", "x", "0", "0-0", "first 0", "last 0", "-0", "-", "--5", "1-2-3", "1.5", "a-b", "five",
            "first x", "²", "１",
        ] {
            assert!(LineRange::parse(text).is_err(), "{text:?}");
        }
        let error = LineRange::parse(&"the beginning ".repeat(9)).expect_err("no range");
        insta::assert_snapshot!(error, @"lines: `the beginning the beginning the beginnin` is no range of lines, which count from 1. Write `120-180`, `120-`, `first 20` or `last 20`.");
    }

    fn ranges() -> impl Strategy<Value = LineRange> {
        prop_oneof![
            (1_usize.., 1_usize..).prop_map(|(a, b)| Between(a.min(b), a.max(b))),
            (1_usize..).prop_map(|first| Between(first, usize::MAX)),
            (1_usize..).prop_map(First),
            (1_usize..).prop_map(Last),
        ]
    }

    /// Returns a range as the tool's description writes it.
    fn range_text(range: LineRange) -> String {
        match range {
            Between(first, usize::MAX) => format!("{first}-"),
            Between(first, last) if first == last => first.to_string(),
            Between(first, last) => format!("{first}-{last}"),
            First(count) => format!("first {count}"),
            Last(count) => format!("last {count}"),
        }
    }

    proptest! {
        #[test]
        fn written_range_is_parsed_as_the_same(range in ranges()) {
            prop_assert_eq!(LineRange::parse(&range_text(range)), Ok(range));
        }

        #[test]
        fn any_text_is_a_valid_range_or_refused(text in r"(first|last|head|L| |[0-9]{0,21}|[-:.,–]|é|to|end){0,6}") {
            match LineRange::parse(&text) {
                Ok(Between(first, last)) => prop_assert!(1 <= first && first <= last),
                Ok(First(count) | Last(count)) => prop_assert!(count >= 1),
                Err(error) => prop_assert!(error.to_string().len() < 300),
            }
        }
    }
}
