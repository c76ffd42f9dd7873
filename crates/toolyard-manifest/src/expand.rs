//! `${…}` in a string stands for something outside of the document; `$${` writes a `${`.
//!
//! - `${NAME}`: a variable of the environment;
//! - `${NAME:-default}`: the same, and another text where it is not set or empty;
//! - `${file:PATH}`: what is in a file, without the line end behind it.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use crate::{problem::quoted, report::Environment};

/// The longest file that a string may refer to. Secrets and their like are shorter.
const LONGEST: u64 = 64 << 10;

/// What references refer to.
#[derive(Clone, Copy)]
pub(crate) struct Outside<'a> {
    pub(crate) environment: &'a Environment<'a>,
    /// Where the paths of files begin that are not absolute.
    pub(crate) folder: &'a Path,
}

/// Why a reference could not be replaced. It repeats what is written, never what it refers to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadReference {
    #[error("the environment variable {} is not set", quoted(.0))]
    Unset(String),
    #[error("{} is not the name of an environment variable", quoted(.0))]
    NotAName(String),
    #[error("the file {} cannot be read: {error}", quoted(.path))]
    Unreadable { path: String, error: io::Error },
    #[error("a `${{` has no `}}`")]
    Unclosed,
}

impl BadReference {
    /// What its author may want to know.
    pub(crate) const fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "a path that is not absolute begins at the folder of the manifest",
            Self::Unset(_) | Self::NotAName(_) | Self::Unclosed => {
                "`${NAME}` stands for an environment variable, and `$${` for the characters `${`"
            }
        }
    }
}

/// A text whose references were replaced.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expanded {
    pub(crate) text: String,
    /// What came from outside. Defaults did not: they are written down in the document.
    pub(crate) from_outside: Vec<String>,
}

/// `text` with its references replaced, or everything that is wrong with them.
///
/// What comes from outside is not looked at again: a value that holds `${` stays as it is.
pub(crate) fn expand(text: &str, outside: Outside<'_>) -> Result<Expanded, Vec<BadReference>> {
    let (mut expanded, mut from_outside) = (String::new(), Vec::new());
    let mut bad = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            expanded.extend([before, "${"]);
            rest = after;
            continue;
        }
        expanded.push_str(before);
        let Some((reference, after)) = after.split_once('}') else {
            bad.push(BadReference::Unclosed);
            rest = "";
            break;
        };
        match resolve(reference, outside) {
            Ok(Replacement::Default(value)) => expanded.push_str(value),
            Ok(Replacement::Outside(value)) => {
                expanded.push_str(&value);
                from_outside.push(value);
            }
            Err(problem) => bad.push(problem),
        }
        rest = after;
    }
    expanded.push_str(rest);
    if bad.is_empty() { Ok(Expanded { text: expanded, from_outside }) } else { Err(bad) }
}

/// What stands in the place of a reference.
enum Replacement<'a> {
    Default(&'a str),
    Outside(String),
}

fn resolve<'a>(reference: &'a str, outside: Outside<'_>) -> Result<Replacement<'a>, BadReference> {
    if let Some(path) = reference.strip_prefix("file:") {
        return contents(&outside.folder.join(path))
            .map(Replacement::Outside)
            .map_err(|error| BadReference::Unreadable { path: path.to_owned(), error });
    }
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    if !is_name(name) {
        return Err(BadReference::NotAName(name.to_owned()));
    }
    let value = (outside.environment)(name);
    match default {
        Some(default) => {
            let value = value.filter(|value| !value.is_empty());
            Ok(value.map_or(Replacement::Default(default), Replacement::Outside))
        }
        None => value.map(Replacement::Outside).ok_or_else(|| BadReference::Unset(name.to_owned())),
    }
}

fn contents(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(io::Error::other(format!("it is longer than {} KiB", LONGEST >> 10)));
    }
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}

pub(crate) fn is_name(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(inner) && !text.starts_with(|c: char| c.is_ascii_digit()) && !text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &[&str]>) {
        let environment = |name: &str| match name {
            "HOST" => Some("example.com".to_owned()),
            "NESTED" => Some("${HOST}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let outside = Outside { environment: &environment, folder: Path::new("fixtures/secrets") };
        let found = expand(text, outside)
            .map(|expanded| expanded.text)
            .map_err(|bad| bad.iter().map(ToString::to_string).collect::<Vec<_>>());
        let expected =
            expected.map(str::to_owned).map_err(|bad| bad.iter().map(|s| (*s).to_owned()).collect());
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn references_are_replaced_once() {
        check("https://${HOST}/mcp", Ok("https://example.com/mcp"));
        check("${HOST}${EMPTY}${HOST}", Ok("example.comexample.com"));
        check("${NESTED}", Ok("${HOST}"));
        check("$HOST $ } $}", Ok("$HOST $ } $}"));
    }

    #[test]
    fn a_doubled_dollar_escapes() {
        check("$${HOST}", Ok("${HOST}"));
        check("$$${HOST} ${HOST}", Ok("$${HOST} example.com"));
    }

    #[test]
    fn bad_references_are_reported_together() {
        check(
            "${MISSING} ${} ${HOST:x} ${",
            Err(&[
                "the environment variable `MISSING` is not set",
                "`` is not the name of an environment variable",
                "`HOST:x` is not the name of an environment variable",
                "a `${` has no `}`",
            ]),
        );
    }

    #[test]
    fn a_default_stands_in_for_what_is_not_set() {
        check("${MISSING:-http://a:1}/${EMPTY:-x}${HOST:-y}${MISSING:-}", Ok("http://a:1/xexample.com"));
        check("${:-x}", Err(&["`` is not the name of an environment variable"]));
    }

    #[test]
    fn what_comes_from_outside_is_told_from_what_is_written_down() {
        let environment = |name: &str| (name == "TOKEN").then(|| "hunter2".to_owned());
        let outside = Outside { environment: &environment, folder: Path::new("fixtures/secrets") };
        let expanded = expand("a ${TOKEN} ${HOST:-b} ${TOKEN:-c} ${file:token}", outside).unwrap();
        assert_eq!(expanded.text, "a hunter2 b hunter2 hunter2");
        assert_eq!(expanded.from_outside, ["hunter2", "hunter2", "hunter2"]);
    }

    #[test]
    fn files_are_read_without_the_line_end() {
        check("Bearer ${file:token}!", Ok("Bearer hunter2!"));
        check("${file:../secrets/token}", Ok("hunter2"));
        let here = std::env::current_dir().unwrap();
        check(&format!("${{file:{}/fixtures/secrets/token}}", here.display()), Ok("hunter2"));
        check(
            "${file:absent} ${file:} ${file:binary} ${file:/dev/zero}",
            Err(&[
                "the file `absent` cannot be read: No such file or directory (os error 2)",
                "the file `` cannot be read: Is a directory (os error 21)",
                "the file `binary` cannot be read: stream did not contain valid UTF-8",
                "the file `/dev/zero` cannot be read: it is longer than 64 KiB",
            ]),
        );
    }
}
