//! Suggestions for a name that does not exist: names with a typing error, with or without the name of a server in front,
//! or with their words in another order.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::identifier_words::starts_word;
use crate::registry::{EntryKind, Registry, RegistryEntry};

/// Maximum number of suggestions.
pub const MAX_SUGGESTIONS: usize = 3;

/// Maximum number of candidates that are compared letter by letter. Their pairs of letters decide which ones.
const MAX_COMPARED: usize = 48;

/// Maximum number of compared characters and words. The time for each name grows with the square of them.
const MAX_LENGTH: usize = 128;
const MAX_WORDS: usize = 16;

/// Minimum similarity of names that differ by a typing error, from 0 to 1.
const ALIKE: f64 = 0.9;

/// Similarity of names of which one is the end of the other, as with the name of a server in front, or another part. It
/// grows with the length of the part.
const SAME_END: f64 = 0.85;
const SAME_PART: f64 = 0.8;
const LONG_PART: f64 = 0.05;
/// Minimum length of such a part, and of a word that may be misspelled or part of another one, in characters.
const LEAST_PART: usize = 4;

/// Minimum share of common words by their letters, with at least one word of [`LEAST_PART`] and without, and the
/// similarity of names that have all words in common.
const COMMON_WORDS: f64 = 0.25;
const COMMON_SHORT_WORDS: f64 = 0.5;
const SAME_WORDS: f64 = 0.79;

/// Minimum similarity in spelling of names that have nothing else in common, and its factor.
const REMOTELY_ALIKE: f64 = 0.75;
const REMOTE: f64 = 0.2;

/// A name in the forms that are compared letter by letter.
struct ComparedName {
    /// Letters and digits in lower case, without separators.
    plain: String,
    words: Vec<String>,
}

impl ComparedName {
    fn new(parts: &[&str]) -> Self {
        let (mut words, mut plain) = (Vec::new(), String::new());
        for part in parts {
            let (mut word, mut before) = (String::new(), None);
            let mut chars = part.chars().take(MAX_LENGTH).peekable();
            while let Some(char) = chars.next() {
                let starts_word = starts_word(before, char, chars.peek().copied());
                if starts_word || !char.is_alphanumeric() {
                    words.push(std::mem::take(&mut word));
                }
                for lower in char.to_lowercase().filter(|lower| lower.is_alphanumeric()) {
                    plain.push(lower);
                    word.push(lower);
                }
                before = Some(char);
            }
            words.push(word);
        }
        words.retain(|word| !word.is_empty());
        words.sort_unstable();
        words.dedup();
        words.truncate(MAX_WORDS);
        Self { plain, words }
    }

    /// Returns the similarity to another name, from 0 to 1; 0 if they have little in common.
    fn likeness(&self, other: &Self) -> f64 {
        if self.plain == other.plain {
            return 1.0;
        }
        let spelling = strsim::jaro_winkler(&self.plain, &other.plain);
        if spelling > ALIKE {
            return spelling;
        }
        let (short, long) = match self.plain.len() < other.plain.len() {
            true => (&self.plain, &other.plain),
            false => (&other.plain, &self.plain),
        };
        if is_long(short) && long.contains(&**short) {
            let base = if long.ends_with(&**short) { SAME_END } else { SAME_PART };
            return base + LONG_PART * short.len() as f64 / long.len() as f64;
        }
        let common = self.common_words(other) * SAME_WORDS;
        let remote = if spelling >= REMOTELY_ALIKE { spelling * REMOTE } else { 0.0 };
        common.max(remote)
    }

    /// Returns the share of letters in words that both names have, from 0 to 1; 0 if it is small.
    fn common_words(&self, other: &Self) -> f64 {
        let (mut common, mut total, mut has_long) = (0, 0, false);
        for (one, other) in [(self, other), (other, self)] {
            for word in &one.words {
                total += word.len();
                if other.has_word(word) {
                    common += word.len();
                    has_long |= is_long(word);
                }
            }
        }
        let share = common as f64 / total.max(1) as f64;
        let least = if has_long { COMMON_WORDS } else { COMMON_SHORT_WORDS };
        if share >= least { share } else { 0.0 }
    }

    /// Returns `true` if a word of another name occurs in this one, a long one with a typing error or as a part, too.
    fn has_word(&self, word: &str) -> bool {
        let is_similar = |own: &String| is_long(own) && strsim::jaro_winkler(own, word) > ALIKE;
        match is_long(word) {
            true => self.plain.contains(word) || self.words.iter().any(is_similar),
            false => self.words.iter().any(|own| own == word),
        }
    }
}

/// Returns `true` if a word or a part of a name is long enough to be found within another one.
fn is_long(text: &str) -> bool {
    text.chars().nth(LEAST_PART - 1).is_some()
}

/// The name that was asked for, with its letters and the pairs of them, by which candidates are chosen.
struct RequestedName {
    name: ComparedName,
    letters: u64,
    pairs: [u64; LETTERS as usize],
    pair_count: u32,
}

/// Number of letters that are told apart. Letters of other scripts share some of them.
const LETTERS: u32 = 64;

impl RequestedName {
    fn new(name: &str) -> Self {
        let name = ComparedName::new(&[name]);
        let (mut letters, mut pairs, mut before) = (0, [0; LETTERS as usize], None);
        for letter in name.plain.chars().filter_map(letter) {
            letters |= 1 << letter;
            if let Some(before) = before.replace(letter) {
                pairs[before as usize] |= 1 << letter;
            }
        }
        let pair_count = pairs.iter().map(|row: &u64| row.count_ones()).sum();
        Self { name, letters, pairs, pair_count }
    }

    /// Returns the share of letters and their pairs that another name has in common with this one, in thousandths of
    /// the names and of the shorter one, without memory of its own.
    fn closeness(&self, parts: &[&str]) -> u32 {
        let (mut letters, mut left, mut before) = (0, self.pairs, None);
        let (mut pair_count, mut common) = (0, 0);
        for letter in parts.iter().flat_map(|part| part.chars().take(MAX_LENGTH)).filter_map(letter) {
            letters |= 1 << letter;
            if let Some(before) = before.replace(letter) {
                let row: &mut u64 = &mut left[before as usize];
                common += (*row >> letter & 1) as u32;
                *row &= !(1 << letter);
                pair_count += 1;
            }
        }
        let of_all = 2_000 * common / (pair_count + self.pair_count).max(1);
        let of_shorter = 500 * common / pair_count.min(self.pair_count).max(1);
        let counts = (self.letters.count_ones(), u64::count_ones(letters));
        of_all + of_shorter + 1_000 * (self.letters & letters).count_ones() / (counts.0 + counts.1).max(1)
    }

    /// Returns the candidates that are most similar, the best first; none if no candidate is similar. Each candidate has
    /// one form or several.
    fn nearest<'a, T: Copy, const N: usize>(
        &self,
        candidates: impl IntoIterator<Item = T>,
        forms: impl Fn(T) -> [[&'a str; 2]; N],
    ) -> Vec<T> {
        if self.letters == 0 {
            return Vec::new();
        }
        let closeness = |candidate| forms(candidate).iter().map(|form| self.closeness(form)).max();
        let mut close: Vec<_> = candidates
            .into_iter()
            .enumerate()
            .map(|(position, candidate)| (Reverse(closeness(candidate)), position, candidate))
            .collect();
        let order = |entry: &(_, usize, T)| (entry.0, entry.1);
        if close.len() > MAX_COMPARED {
            close.select_nth_unstable_by_key(MAX_COMPARED, order);
            close.truncate(MAX_COMPARED);
        }
        let likeness = |candidate| {
            let forms = forms(candidate).map(|form| self.name.likeness(&ComparedName::new(&form)));
            forms.into_iter().fold(0.0, f64::max)
        };
        let mut similar: Vec<_> = close
            .into_iter()
            .map(|(_, position, candidate)| (likeness(candidate), position, candidate))
            .filter(|(likeness, ..)| *likeness > 0.0)
            .collect();
        similar.sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        similar.into_iter().take(MAX_SUGGESTIONS).map(|(.., candidate)| candidate).collect()
    }
}

/// Returns the number of a letter or a digit; `None` for separators.
fn letter(char: char) -> Option<u32> {
    match char.to_ascii_lowercase() {
        lower @ 'a'..='z' => Some(lower as u32 - 'a' as u32),
        digit @ '0'..='9' => Some(26 + digit as u32 - '0' as u32),
        ascii if ascii.is_ascii() => None,
        other => other.is_alphanumeric().then_some(36 + other as u32 % (LETTERS - 36)),
    }
}

/// Returns the names that are most similar to `wanted`, the best first; none if no name is similar.
pub fn nearest_names<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    RequestedName::new(wanted).nearest(names, |name| [[name, ""]])
}

/// Returns the names of the visible tools that are most similar to `wanted`, the best first. Compares published names,
/// the servers' own names, and both with the name of the server in front.
#[must_use]
pub fn nearest_tools(view: &Registry, wanted: &str) -> Vec<Arc<str>> {
    nearest_entries(wanted, view.entries(EntryKind::Tools))
        .into_iter()
        .map(|entry| entry.name.clone())
        .collect()
}

/// Returns the tools among `entries` whose names are most similar to `wanted`, as [`nearest_tools`] does.
pub fn nearest_entries<'a>(
    wanted: &str,
    entries: impl IntoIterator<Item = &'a Arc<RegistryEntry>>,
) -> Vec<&'a Arc<RegistryEntry>> {
    RequestedName::new(wanted).nearest(entries, |entry: &'a Arc<RegistryEntry>| {
        [[&*entry.name, ""], [&*entry.own, ""], [&*entry.handler.name, &*entry.own]]
    })
}

/// Returns the question for these suggestions, with a blank in front; nothing without suggestions.
#[must_use]
pub fn did_you_mean(names: &[impl AsRef<str>]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => format!(" Did you mean {one}?"),
        [others @ .., last] => format!(" Did you mean {} or {last}?", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::access::{AccessGrant, ScopePattern};
    use crate::call::Caller;
    use crate::names::{NameRegistry, PrefixPolicy};
    use crate::registry::HandlerEntry;
    use crate::testing::{self, FakeBackend};

    fn registry() -> Registry {
        let part = |name: &str, tools: &[&str], prefix| {
            let handler = testing::handler(name, FakeBackend::new(&[], Box::new(|_| unreachable!())));
            (HandlerEntry { prefix, ..handler }, Arc::new(testing::tools(tools)))
        };
        let parts = [
            part("github", &["create_issue", "list_issues", "search_repositories"], PrefixPolicy::OnClash),
            part("gitlab", &["create_issue", "getPipelineStatus"], PrefixPolicy::OnClash),
            part("fs", &["read_file", "write_file", "move"], PrefixPolicy::Always),
        ];
        Registry::assemble(&parts, &mut NameRegistry::default())
    }

    #[track_caller]
    fn check(scope: &[&str], wanted: &str, expected: &str) {
        let scope = scope.iter().map(|pattern| pattern.parse::<ScopePattern>().expect("a pattern")).collect();
        let grant = Some(Arc::new(AccessGrant { scope, ..AccessGrant::default() }));
        let view = Registry::view_for(Arc::new(registry()), &Caller { grant, ..Caller::default() });
        assert_eq!(nearest_tools(&view, wanted).join(" "), expected, "{wanted}");
    }

    #[test]
    fn similar_names_of_tools_are_suggested() {
        let all: &[&str] = &["*"];
        check(all, "create_isue", "create_issue gitlab_create_issue list_issues");
        check(all, "creat_issue", "create_issue gitlab_create_issue list_issues");
        check(all, "CreateIssue", "create_issue gitlab_create_issue list_issues");
        check(all, "issue-create", "create_issue gitlab_create_issue list_issues");
        // The name of the server in front, also of one that is called otherwise here.
        check(all, "github_create_issue", "create_issue gitlab_create_issue list_issues");
        check(all, "github__list_issues", "list_issues create_issue gitlab_create_issue");
        check(all, "github.create_isue", "create_issue gitlab_create_issue list_issues");
        check(all, "filesystem_read_file", "fs_read_file fs_write_file");
        check(all, "mcp__gitlab__create_issue", "gitlab_create_issue create_issue list_issues");
        // The server's own name.
        check(all, "read_file", "fs_read_file fs_write_file");
        check(all, "readFile", "fs_read_file fs_write_file");
        check(all, "get_pipeline_status", "getPipelineStatus gitlab_create_issue");
        for nothing in ["", "weather", "x", "___", "日本語"] {
            check(all, nothing, "");
        }
    }

    #[test]
    fn hidden_tools_are_not_suggested() {
        check(&["gitlab/*"], "create_isue", "gitlab_create_issue");
        check(&["fs/*"], "create_issue", "");
        check(&[], "create_issue", "");
    }

    #[test]
    fn similar_names_are_suggested() {
        let check = |wanted: &str, expected: &[&str]| {
            let names = [
                "github",
                "gitlab",
                "google-calendar",
                "weather",
                "time",
                "national-weather-service",
                "weather-forecast",
                "open-weather",
            ];
            assert_eq!(nearest_names(wanted, names), expected, "{wanted}");
        };
        check("gihub", &["github", "gitlab"]);
        check("git-hub", &["github", "gitlab"]);
        check("calendar", &["google-calendar"]);
        check("Weather_Server", &["weather", "national-weather-service", "open-weather"]);
        check("weathr", &["weather", "open-weather", "weather-forecast"]);
        check("nationalweather", &["national-weather-service", "weather", "open-weather"]);
        check("nothing", &[]);
        check("", &[]);
    }

    /// Comparing all names letter by letter takes a second with thousands of them.
    #[test]
    fn few_of_many_names_are_compared_letter_by_letter() {
        let names: Vec<_> = (0..2_500).map(|number| format!("get_{number}_forecast_of_hour")).collect();
        let forms = Cell::new(0);
        let near = RequestedName::new("get_1234_forcast_of_hour").nearest(&names, |name| {
            forms.set(forms.get() + 1);
            [[&**name, ""]]
        });
        assert_eq!(near[0], "get_1234_forecast_of_hour");
        assert_eq!((near.len(), forms.get()), (MAX_SUGGESTIONS, names.len() + MAX_COMPARED));
    }

    /// Comparing a long name with all names would take long.
    #[test]
    fn long_name_is_cut() {
        let name = format!("create_issue{}", "x".repeat(1_000_000));
        assert_eq!(ComparedName::new(&[&name]).plain.len(), MAX_LENGTH - 1);
    }

    #[test]
    fn suggestions_are_a_question() {
        let check = |names: &[&str], expected: &str| assert_eq!(did_you_mean(names), expected);
        check(&[], "");
        check(&["a"], " Did you mean `a`?");
        check(&["a", "b", "c"], " Did you mean `a`, `b` or `c`?");
    }
}
