//! Suggestions for a name that does not exist: names with a typing error, with or without the name of a server in front,
//! or with their words in another order.

use std::collections::HashSet;
use std::sync::Arc;

use crate::identifier_words::starts_word;
use crate::registry::{EntryKind, Registry, RegistryEntry};

/// Maximum number of suggestions.
pub const MAX_SUGGESTIONS: usize = 3;

/// Maximum number of compared characters. The time for each name grows with the square of it.
const MAX_LENGTH: usize = 128;

/// Minimum similarity of names that differ by a typing error, from 0 to 1.
const ALIKE: f64 = 0.9;

/// Similarity of names of which one is the end of the other, as with the name of a server in front. It grows with the
/// length of the end.
const SAME_END: f64 = 0.85;
const LONG_END: f64 = 0.05;
/// Minimum length of such an end, in characters.
const LEAST_END: usize = 4;

/// Minimum share of common words, and the similarity of names that have all words in common.
const COMMON_WORDS: f64 = 0.65;
const SAME_WORDS: f64 = 0.88;

/// A name in the forms that are compared.
struct ComparedName {
    /// Letters and digits in lower case, without separators.
    plain: String,
    words: HashSet<String>,
    /// A bit for each letter and digit that occurs.
    letters: u64,
}

impl ComparedName {
    fn new(parts: &[&str]) -> Self {
        let (mut words, mut plain, mut letters) = (HashSet::new(), String::new(), 0);
        for part in parts {
            let (mut word, mut before) = (String::new(), None);
            let mut chars = part.chars().take(MAX_LENGTH).peekable();
            while let Some(char) = chars.next() {
                let starts_word = starts_word(before, char, chars.peek().copied());
                if (starts_word || !char.is_alphanumeric()) && !word.is_empty() {
                    words.insert(std::mem::take(&mut word));
                }
                for lower in char.to_lowercase().filter(|lower| lower.is_alphanumeric()) {
                    letters |= bit(lower);
                    plain.push(lower);
                    word.push(lower);
                }
                before = Some(char);
            }
            if !word.is_empty() {
                words.insert(word);
            }
        }
        Self { plain, words, letters }
    }

    /// Returns the similarity to another name, from 0 to 1; 0 if they have little in common.
    fn likeness(&self, other: &Self) -> f64 {
        if self.plain == other.plain {
            return 1.0;
        }
        let spelled = strsim::jaro_winkler(&self.plain, &other.plain);
        if spelled > ALIKE {
            return spelled;
        }
        if is_end(&self.plain, &other.plain) || is_end(&other.plain, &self.plain) {
            let lengths = (self.plain.len() as f64, other.plain.len() as f64);
            return SAME_END + LONG_END * lengths.0.min(lengths.1) / lengths.0.max(lengths.1);
        }
        let common = self.words.intersection(&other.words).count() as f64;
        let share = 2.0 * common / (self.words.len() + other.words.len()).max(1) as f64;
        if share >= COMMON_WORDS { share * SAME_WORDS } else { 0.0 }
    }

    /// Returns `true` if the name may be similar to a text, by a cheap comparison of their letters.
    fn may_be_like(&self, parts: &[&str]) -> bool {
        let letters = parts.iter().flat_map(|part| part.chars().take(MAX_LENGTH));
        let letters = letters.fold(0, |letters, char| letters | bit(char.to_ascii_lowercase()));
        (letters & self.letters).count_ones() * 2 >= self.letters.count_ones()
    }
}

/// Returns `true` if a name is the end of another one.
fn is_end(end: &str, name: &str) -> bool {
    end.chars().nth(LEAST_END - 1).is_some() && name.ends_with(end)
}

/// Returns the bit of a letter or a digit. Other scripts share one.
const fn bit(char: char) -> u64 {
    match char {
        'a'..='z' => 1 << (char as u32 - 'a' as u32),
        '0'..='9' => 1 << (26 + char as u32 - '0' as u32),
        char if char.is_ascii() => 0,
        _ => 1 << 36,
    }
}

/// Returns the names that are most similar to `wanted`, the best first; none if no name is similar.
pub fn nearest_names<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = ComparedName::new(&[wanted]);
    let near = names.into_iter().filter(|name| wanted.may_be_like(&[name]));
    best(near.map(|name| (wanted.likeness(&ComparedName::new(&[name])), name)))
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
    let wanted = ComparedName::new(&[wanted]);
    let near = entries
        .into_iter()
        .filter(|entry| wanted.may_be_like(&[&entry.name, &entry.handler.name, &entry.own]));
    let likeness = |entry: &RegistryEntry| {
        let forms: [&[&str]; 3] = [&[&entry.name], &[&entry.own], &[&entry.handler.name, &entry.own]];
        forms.map(|form| wanted.likeness(&ComparedName::new(form))).into_iter().fold(0.0, f64::max)
    };
    best(near.map(|entry| (likeness(entry), entry)))
}

/// Returns the best of the candidates that are similar at all. Equal ones keep their order.
fn best<T>(candidates: impl Iterator<Item = (f64, T)>) -> Vec<T> {
    let mut similar: Vec<_> = candidates.filter(|(likeness, _)| *likeness > 0.0).collect();
    similar.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    similar.into_iter().take(MAX_SUGGESTIONS).map(|(_, candidate)| candidate).collect()
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
        check(all, "create_isue", "create_issue gitlab_create_issue");
        check(all, "creat_issue", "create_issue gitlab_create_issue");
        check(all, "CreateIssue", "create_issue gitlab_create_issue");
        check(all, "issue-create", "create_issue gitlab_create_issue");
        // The name of the server in front, also of one that is called otherwise here.
        check(all, "github_create_issue", "create_issue gitlab_create_issue");
        check(all, "github__list_issues", "list_issues");
        check(all, "github.create_isue", "create_issue");
        check(all, "filesystem_read_file", "fs_read_file");
        check(all, "mcp__gitlab__create_issue", "gitlab_create_issue create_issue");
        // The server's own name.
        check(all, "read_file", "fs_read_file");
        check(all, "readFile", "fs_read_file");
        check(all, "get_pipeline_status", "getPipelineStatus");
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
            let names = ["github", "gitlab", "google-calendar", "weather", "time"];
            assert_eq!(nearest_names(wanted, names), expected, "{wanted}");
        };
        check("gihub", &["github"]);
        check("git-hub", &["github"]);
        check("calendar", &["google-calendar"]);
        check("Weather_Server", &["weather"]);
        check("nothing", &[]);
        check("", &[]);
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
