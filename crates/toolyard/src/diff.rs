//! Line diffs of a text and an edit of it in one place.

/// Number of context lines before and after a change.
const CONTEXT_LINES: usize = 3;

/// Returns the changed lines and their context, each prefixed with `-`, `+` or a blank.
pub(crate) fn render(before: &str, after: &str) -> String {
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let begin = before.iter().zip(&after).take_while(|(before, after)| before == after).count();
    let (old, new) = (&before[begin..], &after[begin..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let first = begin.saturating_sub(CONTEXT_LINES);
    let behind = &old[old.len() - end..];
    let part = |mark: char, lines: &[&str]| lines.iter().map(|line| format!("{mark} {line}\n")).collect();
    let parts: [String; 4] = [
        part(' ', &before[first..begin]),
        part('-', &old[..old.len() - end]),
        part('+', &new[..new.len() - end]),
        part(' ', &behind[..behind.len().min(CONTEXT_LINES)]),
    ];
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, expected: &str) {
        let one_per_line = |text: &str| text.replace(' ', "\n");
        assert_eq!(
            render(&one_per_line(before), &one_per_line(after)),
            expected.replace('|', "\n"),
            "{before} {after}"
        );
    }

    #[test]
    fn changed_lines_have_context() {
        check("", "a b", "+ a|+ b|");
        check("a", "a", "  a|");
        check("a b c", "a x c", "  a|- b|+ x|  c|");
        check("1 2 3 4 5 6 7 8", "1 2 3 4 x 5 6 7 8", "  2|  3|  4|+ x|  5|  6|  7|");
        check("a a", "a a a", "  a|  a|+ a|");
        check("a b", "b", "- a|  b|");
    }
}
