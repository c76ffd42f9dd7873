//! The size of regular expressions, computed before an engine builds them.

/// Maximum of [`PatternSize::states`]: an engine takes about 100 bytes for each, and in the worst case visits each of
/// them at every byte of a string.
pub(super) const MAX_STATES: u64 = 10_000;

/// Weight of a Unicode property such as `\p{L}`: hundreds of ranges.
const PROPERTY: u64 = 100;

/// The demands of a pattern on an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PatternSize {
    /// Number of characters and classes, with every counted repetition written out.
    pub(super) states: u64,
    /// `true` for lookaround and backreferences, which need an engine that backtracks.
    pub(super) backtracks: bool,
}

impl PatternSize {
    /// Measures a pattern. An invalid pattern has a size as well; it does not compile.
    pub(super) fn of(pattern: &str) -> Self {
        let mut scan = PatternScanner { rest: pattern, groups: vec![0], last: 0, backtracks: false };
        while scan.step() {}
        Self {
            states: scan.groups.iter().fold(0, |sum, group| sum.saturating_add(*group)),
            backtracks: scan.backtracks,
        }
    }
}

struct PatternScanner<'p> {
    rest: &'p str,
    /// States of each open group; the first is the whole pattern.
    groups: Vec<u64>,
    /// States of the last element, which a repetition multiplies. They are included in those of the group.
    last: u64,
    backtracks: bool,
}

impl PatternScanner<'_> {
    /// Reads one element; `false` at the end.
    fn step(&mut self) -> bool {
        let mut chars = self.rest.chars();
        let Some(first) = chars.next() else { return false };
        self.rest = chars.as_str();
        match first {
            '(' => self.open(),
            ')' => self.close(),
            '[' => self.class(),
            '\\' => self.escape(),
            '{' => self.repeat(),
            '*' | '+' | '?' | '|' => {}
            _ => self.add(1),
        }
        true
    }

    fn add(&mut self, states: u64) {
        self.last = states;
        if let Some(group) = self.groups.last_mut() {
            *group = group.saturating_add(states);
        }
    }

    fn open(&mut self) {
        let looks = ["?=", "?!", "?<=", "?<!", "?>"];
        self.backtracks |= looks.iter().any(|look| self.rest.starts_with(look));
        self.groups.push(1);
    }

    fn close(&mut self) {
        if self.groups.len() > 1 {
            let states = self.groups.pop().unwrap_or_default();
            self.add(states);
        }
    }

    /// Reads a class: one state, up to its closing bracket. A property in it counts separately.
    fn class(&mut self) {
        let (mut states, mut is_escaped) = (1, false);
        let mut end = self.rest.len();
        for (at, char) in self.rest.char_indices() {
            match char {
                ']' if !is_escaped => {
                    end = at + 1;
                    break;
                }
                'p' | 'P' if is_escaped => states += PROPERTY,
                _ => {}
            }
            is_escaped = char == '\\' && !is_escaped;
        }
        self.rest = &self.rest[end..];
        self.add(states);
    }

    fn escape(&mut self) {
        let mut chars = self.rest.chars();
        let escaped = chars.next();
        self.rest = chars.as_str();
        self.backtracks |= escaped.is_some_and(|char| matches!(char, '1'..='9' | 'k'));
        if !matches!(escaped, Some('p' | 'P')) {
            return self.add(1);
        }
        let name = self.rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        self.rest = name.map_or(self.rest, |(_, rest)| rest);
        self.add(PROPERTY);
    }

    /// Applies a repetition by its larger number; with an open end, by the first.
    fn repeat(&mut self) {
        let Some((counts, rest)) = self.rest.split_once('}') else { return self.add(1) };
        let counts: Option<Vec<u64>> =
            counts.split(',').filter(|count| !count.is_empty()).map(|count| count.parse().ok()).collect();
        // Without numbers a brace is literal, or belongs to a property.
        let Some(most) = counts.and_then(|counts| counts.into_iter().max()) else { return self.add(1) };
        self.rest = rest;
        let more = self.last.saturating_mul(most.saturating_sub(1));
        let whole = self.last.saturating_add(more);
        self.add(more);
        self.last = whole;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, states: u64, backtracks: bool) {
        assert_eq!(PatternSize::of(pattern), PatternSize { states, backtracks }, "{pattern}");
    }

    #[test]
    fn repetitions_are_written_out() {
        check("", 0, false);
        check("^a$", 3, false);
        check("a{3}", 3, false);
        check("a{2,}", 2, false);
        check("[a-z0-9_]{1,63}", 63, false);
        check("(ab){10}", 30, false);
        check("((a{100}){100}){100}", 1_010_100, false);
        check("a{100}{100}{100}", 1_000_000, false);
        check(r"\{{3}", 3, false);
        check(r"\p{L}{10}", 1000, false);
        check(r"[\p{L}\]]{10}", 1010, false);
        check("a{x}", 4, false);
        check("((((", 4, false);
        check("))))", 0, false);
        check("{999999999999999999999999}", 26, false);
        check("(?:[a-z]{18446744073709551615}){18446744073709551615}", u64::MAX, false);
    }

    #[test]
    fn looking_around_backtracks() {
        check("(?=a)b", 4, true);
        check("(?<!a)b", 5, true);
        check(r"(a)\1", 3, true);
        check("(?:a)(?<name>b)", 11, false);
    }
}
