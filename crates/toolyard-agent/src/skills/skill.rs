//! A skill and its summary.

use serde::{Deserialize, Serialize};

use super::name::SkillName;

/// Maximum number of words and of characters of a summary.
const MAX_WORDS: usize = 15;
const MAX_CHARS: usize = 160;

/// Summary of a text without words.
const NO_SUMMARY: &str = "(no summary)";

/// A skill to save.
#[derive(Debug, Clone, Copy)]
pub struct NewSkill<'a> {
    /// Name of the skill.
    pub name: &'a SkillName,
    /// Instructions as Markdown.
    pub content: &'a str,
    /// Summary. `None`: the beginning of the content.
    pub summary: Option<&'a str>,
    /// Names of related skills. `None`: unchanged.
    pub see_also: Option<&'a [String]>,
}

/// A stored skill. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredSkill {
    /// Name of the skill.
    pub name: String,
    /// Summary in one line.
    pub summary: String,
    /// Instructions as Markdown.
    pub content: String,
    /// Time of the first save.
    pub created_at: u64,
    /// Time of the last save after the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<u64>,
    /// Time of the last use, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<u64>,
    /// Names of related skills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub see_also: Vec<String>,
}

impl StoredSkill {
    /// Returns the skill after a save that may replace an existing one.
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

    /// Returns the bytes that count towards the limit of its owner.
    #[must_use]
    pub fn size(&self) -> usize {
        let others = self.see_also.iter().map(String::len).sum::<usize>();
        self.name.len() + self.summary.len() + self.content.len() + others
    }
}

/// Summarizes a text by its front matter, or else by its first heading or sentence.
#[must_use]
pub fn summary_of(content: &str) -> String {
    let (front, body) = front_matter(content);
    let described = front.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let value = value.trim().trim_matches(['"', '\'']);
        (matches!(name.trim(), "description" | "summary") && !value.is_empty()).then_some(value)
    });
    let first_line = || body.lines().map(plain).find(|line| !line.is_empty());
    match described.map(str::to_owned).or_else(first_line) {
        Some(line) => shortened(first_sentence(&line)),
        None => NO_SUMMARY.to_owned(),
    }
}

/// Splits a text into its front matter, between two lines of dashes, and the rest.
fn front_matter(content: &str) -> (&str, &str) {
    let divided = content.trim_start().strip_prefix("---\n").and_then(|rest| rest.split_once("\n---"));
    divided.unwrap_or(("", content))
}

/// Returns a line without Markdown syntax; an empty text if it has no word or begins a code block.
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

/// Returns a text in one line, cut to the length of a summary.
fn shortened(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let line = words.iter().take(MAX_WORDS).copied().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect();
    match words.len() > MAX_WORDS || cut.len() < line.len() {
        true => format!("{cut} …"),
        false => cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_is_the_beginning_of_the_text() {
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
