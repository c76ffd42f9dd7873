//! The rules of `STYLE.md` that a script can check: beginnings of doc comments, words that make riddles, names of tests,
//! and names of types that several files share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Words that a doc comment does not begin with: it begins with a noun phrase or a verb.
const QUESTION_WORDS: [&str; 10] = [
    concat!("Wh", "ich"),
    concat!("Wh", "at"),
    concat!("Wh", "o"),
    concat!("Wh", "om"),
    concat!("Wh", "ose"),
    concat!("Wh", "ether"),
    concat!("Ho", "w"),
    concat!("Wh", "ere"),
    concat!("Wh", "en"),
    concat!("Wh", "y"),
];

/// Words that no comment contains: the caller, the client or the operator has a name.
const PRONOUNS: [&str; 5] = [
    concat!("wh", "o"),
    concat!("who", "ever"),
    concat!("no", "body"),
    concat!("some", "body"),
    concat!("every", "body"),
];

/// Beginnings of names of tests that ask instead of stating a case and its result.
const RIDDLES: [&str; 7] = ["what_", "who_", "whose_", "how_", "which_", "where_", "whether_"];

/// Number of files of the workspace that may define a type of the same name.
const SHARED_NAME_LIMIT: usize = 2;

/// Returns the problems of comments and names of tests in one Rust file.
pub(super) fn problems(path: &Path, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let (mut is_in_doc, mut is_test) = (false, false);
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        let mut report = |fault: &str| problems.push(format!("{}:{number} {fault}", path.display()));
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        if let Some(doc) = doc.filter(|_| !is_in_doc)
            && words(doc).next().is_some_and(|word| QUESTION_WORDS.contains(&word))
        {
            report("begins a doc comment with a question word");
        }
        is_in_doc = doc.is_some();
        if line.starts_with("//") {
            if words(line).any(|word| PRONOUNS.contains(&word.to_lowercase().as_str())) {
                report("says who or nobody in a comment");
            }
        } else if line.starts_with("#[test") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(name) = function_name(line).filter(|_| is_test) {
            is_test = false;
            if RIDDLES.iter().any(|riddle| name.starts_with(riddle)) {
                report("names a test with a question word");
            }
        }
    }
    problems
}

/// Files that define a type of each name, outside of tests.
#[derive(Default)]
pub(super) struct TypeNames(BTreeMap<String, Vec<PathBuf>>);

impl TypeNames {
    /// Adds the types that stand at the beginning of a line of one Rust file.
    pub(super) fn add(&mut self, path: &Path, text: &str) {
        for name in text.lines().filter_map(type_name) {
            let files = self.0.entry(name.to_owned()).or_default();
            if files.last().is_none_or(|last| last != path) {
                files.push(path.to_owned());
            }
        }
    }

    /// Returns a problem for each name that too many files define.
    pub(super) fn problems(&self) -> Vec<String> {
        let shared = self.0.iter().filter(|(_, files)| files.len() > SHARED_NAME_LIMIT);
        let paths =
            |files: &[PathBuf]| files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        shared
            .map(|(name, files)| format!("the type name {name} is used in {}", paths(files).join(", ")))
            .collect()
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

/// Returns the name that a line defines as a function.
fn function_name(line: &str) -> Option<&str> {
    line.split_once("fn ").and_then(|(_, rest)| words(rest).next())
}

/// Returns the name that a line without indentation defines as a type.
fn type_name(line: &str) -> Option<&str> {
    let mut rest = line;
    if let Some(visible) = rest.strip_prefix("pub") {
        rest = match visible.strip_prefix('(') {
            Some(restricted) => restricted.split_once(')')?.1,
            None => visible,
        }
        .strip_prefix(' ')?;
    }
    let (keyword, rest) = rest.split_once(' ')?;
    ["struct", "enum", "trait", "type"].contains(&keyword).then(|| words(rest).next())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(problems(Path::new("a.rs"), text), expected);
    }

    #[test]
    fn doc_comments_begin_with_a_noun_or_a_verb() {
        check("/// Returns the length.\n/// What follows is a second line.\nfn length() {}", &[]);
        let question = format!("/// {} it is long.", QUESTION_WORDS[0]);
        check(&question, &["a.rs:1 begins a doc comment with a question word"]);
    }

    #[test]
    fn comments_name_the_one_they_mean() {
        check("// The caller asks. Whole words alone are found.", &[]);
        let pronoun = format!("let a = 1;\n// Then {} asks.", PRONOUNS[2]);
        check(&pronoun, &["a.rs:2 says who or nobody in a comment"]);
    }

    #[test]
    fn tests_state_a_case_and_its_result() {
        check("#[test]\nfn empty_input_is_refused() {}\nfn what_is_no_test() {}", &[]);
        check("#[tokio::test]\nasync fn what_is_refused() {}", &["a.rs:2 names a test with a question word"]);
    }

    #[test]
    fn a_type_name_in_three_files_is_a_problem() {
        let mut names = TypeNames::default();
        for (path, text) in [
            ("a.rs", "pub(crate) struct Entry<T>;\nimpl Entry {}\nstruct Other;"),
            ("b.rs", "pub enum Entry {\n    struct_is_no_type,\n}\nstruct Other;"),
        ] {
            names.add(Path::new(path), text);
        }
        assert_eq!(names.problems(), Vec::<String>::new());
        names.add(Path::new("c.rs"), "type Entry = u8;");
        assert_eq!(names.problems(), ["the type name Entry is used in a.rs, b.rs, c.rs"]);
    }
}
