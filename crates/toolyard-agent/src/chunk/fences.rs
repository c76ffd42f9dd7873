//! Blocks of code between fences (CommonMark 0.31, section 4.5), in which no line is a heading.

/// Minimum number of characters of a fence.
const MIN_LENGTH: usize = 3;

/// Maximum number of blanks before a fence.
const MAX_INDENT: usize = 3;

/// A line that opens or closes a block.
#[derive(Clone, Copy, PartialEq, Eq)]
struct CodeFence {
    mark: u8,
    length: usize,
    /// True if more than blanks follow, such as the name of a language: it closes no block.
    has_info: bool,
}

impl CodeFence {
    fn of(line: &str) -> Option<Self> {
        let indented = &line[mark_position(line)?..];
        let mark = *indented.as_bytes().first()?;
        let length = indented.bytes().take_while(|byte| *byte == mark).count();
        let info = indented[length..].trim();
        let is_fence = length >= MIN_LENGTH;
        // Code within a line may begin with as many marks.
        (is_fence && !(mark == b'`' && info.contains('`'))).then_some(Self {
            mark,
            length,
            has_info: !info.is_empty(),
        })
    }

    fn is_closed_by(self, other: Self) -> bool {
        other.mark == self.mark && other.length >= self.length && !other.has_info
    }
}

/// Returns the position of the first mark of a line, if it may be a fence. Most lines are none, and are not read any
/// further.
fn mark_position(line: &str) -> Option<usize> {
    let indent = line.bytes().take(MAX_INDENT + 1).take_while(|byte| *byte == b' ').count();
    let is_mark = matches!(line.as_bytes().get(indent), Some(b'`' | b'~'));
    (is_mark && indent <= MAX_INDENT).then_some(indent)
}

/// Returns the length in bytes of the block of code at the start of a text, with its fences. `None` if there is none, or
/// `Some(None)` if it is not closed.
pub(super) fn code_block(text: &str) -> Option<Option<usize>> {
    mark_position(text)?;
    let open = CodeFence::of(text.lines().next()?)?;
    let mut end = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        end += line.len();
        if number > 0 && CodeFence::of(line).is_some_and(|fence| open.is_closed_by(fence)) {
            return Some(Some(end));
        }
    }
    Some(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_with_a_fence_of_their_kind() {
        let check = |text: &str, expected: Option<Option<&str>>| {
            let block = code_block(text).map(|end| end.map(|end| &text[..end]));
            assert_eq!(block, expected, "{text:?}");
        };
        check("```\n# a\n```\n# b\n", Some(Some("```\n# a\n```\n")));
        check("  ~~~~ sh\n~~~\n```\n~~~~~\nx", Some(Some("  ~~~~ sh\n~~~\n```\n~~~~~\n")));
        check("```\n```sh\n```", Some(Some("```\n```sh\n```")));
        check("```\n# a\n", Some(None));
        check("```a```\n```\n", None);
        check("    ```\n```\n", None);
        check("``\n``\n", None);
        check("", None);
    }
}
