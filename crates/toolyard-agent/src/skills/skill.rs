//! A skill, and the one line that it is found by.

use serde::{Deserialize, Serialize};

use super::name::SkillName;

/// How many words a summary has, at most, and how many characters.
const MOST_WORDS: usize = 15;
const MOST_CHARS: usize = 160;

/// What is said where there is nothing that could be said.
const NO_SUMMARY: &str = "(no summary)";

/// A skill that is to be kept.
#[derive(Debug, Clone, Copy)]
pub struct NewSkill<'a> {
    /// What to call it.
    pub name: &'a SkillName,
    /// Instructions, as Markdown.
    pub content: &'a str,
    /// What it is for. `None`: what it begins with.
    pub summary: Option<&'a str>,
    /// Names of others that go with it. `None`: those that it had.
    pub see_also: Option<&'a [String]>,
}

/// A skill as it is kept. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    /// What it is called.
    pub name: String,
    /// What it is for, in one line.
    pub summary: String,
    /// Instructions, as Markdown.
    pub content: String,
    /// When it was saved first.
    pub created_at: u64,
    /// When it was saved again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<u64>,
    /// When it was read last, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<u64>,
    /// Names of others that go with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub see_also: Vec<String>,
}

impl Skill {
    /// The skill after it was saved, in the place of what there was.
    #[must_use]
    pub fn saved(new: &NewSkill<'_>, before: Option<&Self>, now: u64) -> Self {
        let see_also = new.see_also.map(<[String]>::to_vec);
        Self {
            name: new.name.to_string(),
            summary: new.summary.map_or_else(|| summary_of(new.content), shortened),
            content: new.content.to_owned(),
            created_at: before.map_or(now, |before| before.created_at),
            updated_at: before.map(|_| now),
            last_used_at: before.and_then(|before| before.last_used_at),
            see_also: see_also.or_else(|| before.map(|before| before.see_also.clone())).unwrap_or_default(),
        }
    }

    /// What it takes of what its owner may keep, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let others = self.see_also.iter().map(String::len).sum::<usize>();
        self.name.len() + self.summary.len() + self.content.len() + others
    }
}

/// What a text is about: what it says so itself, else its first heading or sentence.
#[must_use]
pub fn summary_of(content: &str) -> String {
    let (front, body) = front_matter(content);
    let described = front.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let value = value.trim().trim_matches(['"', '\'']);
        (matches!(name.trim(), "description" | "summary") && !value.is_empty()).then_some(value)
    });
    let begun = || body.lines().map(plain).find(|line| !line.is_empty());
    match described.map(str::to_owned).or_else(begun) {
        Some(line) => shortened(first_sentence(&line)),
        None => NO_SUMMARY.to_owned(),
    }
}

/// What stands between two lines of dashes at the beginning, and the rest.
fn front_matter(content: &str) -> (&str, &str) {
    let divided = content.trim_start().strip_prefix("---\n").and_then(|rest| rest.split_once("\n---"));
    divided.unwrap_or(("", content))
}

/// A line without the signs of Markdown; nothing of one that has no word, or begins a block of code.
fn plain(line: &str) -> String {
    let line = line.trim();
    if line.starts_with("```") || !line.contains(char::is_alphanumeric) {
        return String::new();
    }
    let line = line.trim_start_matches(['#', '-', '*', '>', ' ']);
    let step = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let line = if step.len() < line.len() { step.strip_prefix(". ").unwrap_or(line) } else { line };
    line.replace("**", "")
}

fn first_sentence(line: &str) -> &str {
    let end = line.match_indices(['.', '!', '?']).map(|(at, _)| at + 1);
    let end = end.into_iter().find(|end| line[*end..].starts_with(' ')).unwrap_or(line.len());
    line[..end].trim_end_matches(['.', ':'])
}

/// In one line, and not longer than summaries are.
fn shortened(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let line = words.iter().take(MOST_WORDS).copied().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().filter(|c| !c.is_control()).take(MOST_CHARS).collect();
    match words.len() > MOST_WORDS || cut.len() < line.len() {
        true => format!("{cut} …"),
        false => cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_what_a_text_begins_with() {
        #[track_caller]
        fn check(content: &str, expected: &str) {
            assert_eq!(summary_of(content), expected, "{content:?}");
        }
        check("# Plan a meeting\n\nAsk first.", "Plan a meeting");
        check("\n\n---\nUse `search` first. Then read.", "Use `search` first");
        check("Version 1.2 of it. More.", "Version 1.2 of it");
        check("- **Say:** hello", "Say: hello");
        check("1. Open it. 2. Close it.", "Open it");
        check("2026 was a year.", "2026 was a year");
        check("---\nname: x\ndescription: \"Finds invoices\"\n---\n# Title\n", "Finds invoices");
        check("---\nname: x\n---\n# Title\n", "Title");
        check("```sh\nls\n```", "ls");
        check("## Why?\nBecause.", "Why?");
        check("", NO_SUMMARY);
        check("---\n***\n", NO_SUMMARY);
        check("è vero! sì", "è vero!");
        check(
            "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
            "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
        );
        check("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 …");
        check(&"é".repeat(200), &format!("{} …", "é".repeat(160)));
    }
}
