//! The part of a long text that is shown.

/// Returns at most `chars` characters of the beginning of a text.
pub(super) fn beginning(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

/// Returns at most `chars` characters of the end of a text.
fn ending(text: &str, chars: usize) -> &str {
    let Some(last) = chars.checked_sub(1) else { return "" };
    text.char_indices().nth_back(last).map_or(text, |(start, _)| &text[start..])
}

/// Returns a part of a text (a range of bytes) with `around` characters before and after it, and its end in bytes. Marks
/// what is left out.
pub(in crate::memory) fn excerpt(text: &str, part: (usize, usize), around: usize) -> (String, usize) {
    let (start, end) = part;
    let before = ending(&text[..start], around);
    let after = beginning(&text[end..], around);
    let (left, right) = (start - before.len(), end + after.len());
    let mark = |is_cut: bool| if is_cut { "…" } else { "" };
    (format!("{}{}{}", mark(left > 0), &text[left..right], mark(right < text.len())), right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_marks_what_is_left_out() {
        #[track_caller]
        fn check(part: (usize, usize), around: usize, expected: &str) {
            assert_eq!(excerpt("aébcdéf", part, around).0, expected, "{part:?} {around}");
        }
        check((3, 4), 1, "…ébc…");
        check((3, 4), 2, "aébcd…");
        check((3, 4), 9, "aébcdéf");
        check((3, 4), 0, "…b…");
        check((0, 0), 0, "…");
        check((0, 9), 0, "aébcdéf");
        check((8, 9), 1, "…éf");
    }
}
