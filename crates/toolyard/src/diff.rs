//! What is different between two texts of which one is an edit of the other in one place.

/// Lines around a change that are shown with it.
const AROUND: usize = 3;

/// The lines that differ, with those around them, each behind `-`, `+` or a blank.
pub(crate) fn lines(before: &str, after: &str) -> String {
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let begin = before.iter().zip(&after).take_while(|(before, after)| before == after).count();
    let (old, new) = (&before[begin..], &after[begin..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let first = begin.saturating_sub(AROUND);
    let behind = &old[old.len() - end..];
    let part = |mark: char, lines: &[&str]| lines.iter().map(|line| format!("{mark} {line}\n")).collect();
    let parts: [String; 4] = [
        part(' ', &before[first..begin]),
        part('-', &old[..old.len() - end]),
        part('+', &new[..new.len() - end]),
        part(' ', &behind[..behind.len().min(AROUND)]),
    ];
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, expected: &str) {
        let lined = |text: &str| text.replace(' ', "\n");
        assert_eq!(lines(&lined(before), &lined(after)), expected.replace('|', "\n"), "{before} {after}");
    }

    #[test]
    fn changes() {
        check("", "a b", "+ a|+ b|");
        check("a", "a", "  a|");
        check("a b c", "a x c", "  a|- b|+ x|  c|");
        check("1 2 3 4 5 6 7 8", "1 2 3 4 x 5 6 7 8", "  2|  3|  4|+ x|  5|  6|  7|");
        check("a a", "a a a", "  a|  a|+ a|");
        check("a b", "b", "- a|  b|");
    }
}
