//! The members of an object in a definition. A member that is null counts as absent.

use std::borrow::Cow;

use serde_json::{Map, Value};
use toolyard_core::nearest::{did_you_mean, nearest_names};

use super::noun;
use super::problem::{DefinitionProblem, ProblemList};

/// Maximum length of an excerpt of a value, in characters.
const MAX_EXCERPT: usize = 64;

/// Reads the members of an object, and reports problems with their paths.
pub(super) struct MemberReader<'a, 'p> {
    path: &'a str,
    members: &'a Map<String, Value>,
    problems: &'p mut ProblemList,
}

impl<'a, 'p> MemberReader<'a, 'p> {
    /// Returns the reader of an object; `None`, with a problem, if the value is none.
    pub(super) fn new(path: &'a str, value: &'a Value, problems: &'p mut ProblemList) -> Option<Self> {
        match value {
            Value::Object(members) => Some(Self { path, members, problems }),
            other => {
                let problem = DefinitionProblem::new(path, format!("found {}", noun(other)));
                problems.add(problem.expected("an object"));
                None
            }
        }
    }

    /// Returns a problem of a member.
    pub(super) fn problem(&self, name: &str, message: impl Into<String>) -> DefinitionProblem {
        DefinitionProblem::new(format!("{}.{name}", self.path), message)
    }

    /// Reports a problem.
    pub(super) fn report(&mut self, problem: DefinitionProblem) {
        self.problems.add(problem);
    }

    /// Reports a problem of a member, with the expectation.
    pub(super) fn fault(
        &mut self,
        name: &str,
        message: impl Into<String>,
        expected: impl Into<Cow<'static, str>>,
    ) {
        self.report(self.problem(name, message).expected(expected));
    }

    /// Reports members that are not in this list.
    pub(super) fn reject_unknown(&mut self, known: &[&str]) {
        for name in self.members.keys().filter(|name| !known.contains(&name.as_str())) {
            let shown = excerpt(name);
            let problem = DefinitionProblem::new(format!("{}.{shown}", self.path), "unknown member");
            let problem = problem.expected(format!("one of {}", known.join(", ")));
            let near = did_you_mean(&nearest_names(name, known.iter().copied()));
            self.problems.add(match near.trim() {
                "" => problem,
                question => problem.hint(lower_first(question)),
            });
        }
    }

    /// Returns a member that is present.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    /// Returns a text that is not blank.
    pub(super) fn text(&mut self, name: &str) -> Option<&'a str> {
        match self.get(name)? {
            Value::String(text) if !text.trim().is_empty() => Some(text),
            Value::String(_) => {
                self.fault(name, "the text is empty", "a text");
                None
            }
            other => {
                self.fault(name, format!("found {}", noun(other)), "a text");
                None
            }
        }
    }

    /// Returns a text that must be present.
    pub(super) fn required_text(&mut self, name: &str, expected: &'static str) -> Option<&'a str> {
        if self.get(name).is_none() {
            self.fault(name, "the member is missing", expected);
            return None;
        }
        self.text(name)
    }

    /// Returns a number above zero. It may be given as a text.
    pub(super) fn number(&mut self, name: &str, most: f64) -> Option<f64> {
        let value = self.get(name)?;
        let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
        let number = number.filter(|number| *number > 0.0 && *number <= most);
        if number.is_none() {
            self.fault(
                name,
                format!("found {}", excerpt(&value.to_string())),
                format!("a number above 0, at most {most}"),
            );
        }
        number
    }

    /// Returns an array of texts, which is empty if it is absent.
    pub(super) fn texts(&mut self, name: &str, most: usize) -> Vec<String> {
        let Some(value) = self.get(name) else { return Vec::new() };
        let texts: Option<Vec<_>> = value
            .as_array()
            .and_then(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect());
        match texts {
            Some(texts) if texts.len() <= most && texts.iter().all(|text| !text.trim().is_empty()) => texts,
            _ => {
                self.fault(
                    name,
                    format!("found {}", excerpt(&value.to_string())),
                    format!("an array of at most {most} names"),
                );
                Vec::new()
            }
        }
    }

    /// Returns an array of 1 to `most` items that must be present.
    pub(super) fn required_array(
        &mut self,
        name: &str,
        expected: &'static str,
        most: usize,
    ) -> Option<&'a [Value]> {
        match self.get(name) {
            None => self.fault(name, "the member is missing", expected),
            Some(Value::Array(items)) if items.is_empty() => self.fault(name, "the array is empty", expected),
            Some(Value::Array(items)) if items.len() > most => {
                self.fault(name, format!("there are {} items", items.len()), format!("at most {most}"));
            }
            Some(Value::Array(items)) => return Some(items),
            Some(other) => self.fault(name, format!("found {}", noun(other)), "an array"),
        }
        None
    }

    /// Returns an object, which may also be given as a text with its JSON, under the first of these names that is
    /// present; an empty object if none is.
    pub(super) fn object(&mut self, names: &[&str]) -> Option<Map<String, Value>> {
        let present: Vec<_> =
            names.iter().filter_map(|name| self.get(name).map(|value| (*name, value))).collect();
        if let [(first, _), (second, _), ..] = *present {
            self.fault(second, format!("`{first}` is present as well"), "one of them");
        }
        let Some((name, value)) = present.first().copied() else { return Some(Map::new()) };
        let parsed = match value {
            Value::Object(members) => Some(members.clone()),
            Value::String(text) => serde_json::from_str(text).ok(),
            _ => None,
        };
        if parsed.is_none() {
            self.fault(name, format!("found {}", noun(value)), "an object");
        }
        parsed
    }

    /// Returns the value of a word, ignoring case; `None`, with a problem, for another word.
    pub(super) fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(name)?;
        let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()));
        if found.is_none() {
            let names: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            self.fault(name, format!("found `{}`", excerpt(text)), format!("one of {}", names.join(", ")));
        }
        found.map(|(_, value)| *value)
    }
}

/// Shortens a value for a message.
pub(super) fn excerpt(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut excerpt: String = text.chars().map(plain).take(MAX_EXCERPT).collect();
    if text.chars().nth(MAX_EXCERPT).is_some() {
        excerpt.push('…');
    }
    excerpt
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}
