//! Expands references in strings: `${…}` refers to a value outside the document, and `$${` is a literal `${`.
//!
//! - `${NAME}`: an environment variable;
//! - `${NAME:-default}`: the variable, or the default if it is unset or empty;
//! - `${file:PATH}`: the content of a file, without the final line end.

use std::{io, path::Path};

use toolyard_core::file;

use crate::{problem::quoted, report::EnvironmentLookup};

/// Maximum size of a referenced file, in bytes. Secrets and certificates are smaller.
const MAX_FILE_BYTES: usize = 64 << 10;

/// The environment and folder that references are resolved against.
#[derive(Clone, Copy)]
pub(crate) struct ReferenceScope<'a> {
    pub(crate) environment: &'a EnvironmentLookup<'a>,
    /// The folder of relative paths.
    pub(crate) folder: &'a Path,
    /// False if the document is for a gateway elsewhere, which has none of the files here.
    pub(crate) has_files: bool,
}

/// The reason why a reference cannot be expanded. It quotes the document, never the value of a reference.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReferenceError {
    #[error("the environment variable {} is not set", quoted(.0))]
    Unset(String),
    #[error("{} is not the name of an environment variable", quoted(.0))]
    InvalidName(String),
    #[error("the file {} cannot be read: {error}", quoted(.path))]
    Unreadable { path: String, error: io::Error },
    #[error("the file {} does not exist where the gateway runs", quoted(.0))]
    Elsewhere(String),
    #[error("a `${{` has no `}}`")]
    Unclosed,
}

impl ReferenceError {
    /// A remedy for the author.
    pub(crate) const fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "relative paths start at the folder of the manifest",
            Self::Elsewhere(_) => NO_FILES,
            Self::Unset(_) | Self::InvalidName(_) | Self::Unclosed => {
                "`${NAME}` stands for an environment variable, and `$${` for the characters `${`"
            }
        }
    }
}

/// The remedy for a file in a document for a gateway elsewhere.
pub(crate) const NO_FILES: &str =
    "write the content into the document, or refer to a secret, by `secretRef` or an environment variable";

/// A text with expanded references.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExpandedText {
    pub(crate) text: String,
    /// The values of the references, without defaults, which are part of the document.
    pub(crate) reference_values: Vec<String>,
}

/// Expands the references of `text`, or returns all their errors.
///
/// Values are not expanded again: a `${` in a value remains.
pub(crate) fn expand(text: &str, outside: ReferenceScope<'_>) -> Result<ExpandedText, Vec<ReferenceError>> {
    let (mut expanded, mut reference_values) = (String::new(), Vec::new());
    let mut errors = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            expanded.extend([before, "${"]);
            rest = after;
            continue;
        }
        expanded.push_str(before);
        let Some((reference, after)) = after.split_once('}') else {
            errors.push(ReferenceError::Unclosed);
            rest = "";
            break;
        };
        match resolve(reference, outside) {
            Ok(ReferenceValue::Default(value)) => expanded.push_str(value),
            Ok(ReferenceValue::External(value)) => {
                expanded.push_str(&value);
                reference_values.push(value);
            }
            Err(problem) => errors.push(problem),
        }
        rest = after;
    }
    expanded.push_str(rest);
    if errors.is_empty() { Ok(ExpandedText { text: expanded, reference_values }) } else { Err(errors) }
}

/// The value of a reference.
enum ReferenceValue<'a> {
    Default(&'a str),
    External(String),
}

fn resolve<'a>(
    reference: &'a str,
    outside: ReferenceScope<'_>,
) -> Result<ReferenceValue<'a>, ReferenceError> {
    if let Some(path) = reference.strip_prefix("file:") {
        if !outside.has_files {
            return Err(ReferenceError::Elsewhere(path.to_owned()));
        }
        return read_file(&outside.folder.join(path))
            .map(ReferenceValue::External)
            .map_err(|error| ReferenceError::Unreadable { path: path.to_owned(), error });
    }
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    if !is_variable_name(name) {
        return Err(ReferenceError::InvalidName(name.to_owned()));
    }
    let value = (outside.environment)(name);
    match default {
        Some(default) => {
            let value = value.filter(|value| !value.is_empty());
            Ok(value.map_or(ReferenceValue::Default(default), ReferenceValue::External))
        }
        None => value.map(ReferenceValue::External).ok_or_else(|| ReferenceError::Unset(name.to_owned())),
    }
}

fn read_file(path: &Path) -> io::Result<String> {
    let mut text = file::read_text(path, MAX_FILE_BYTES)?;
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}

pub(crate) fn is_variable_name(text: &str) -> bool {
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
        let outside = ReferenceScope {
            environment: &environment,
            folder: Path::new("fixtures/secrets"),
            has_files: true,
        };
        let actual = expand(text, outside)
            .map(|expanded| expanded.text)
            .map_err(|bad| bad.iter().map(ToString::to_string).collect::<Vec<_>>());
        let expected =
            expected.map(str::to_owned).map_err(|bad| bad.iter().map(|s| (*s).to_owned()).collect());
        assert_eq!(actual, expected, "{text}");
    }

    #[test]
    fn references_are_replaced_once() {
        check("https://${HOST}/mcp", Ok("https://example.com/mcp"));
        check("${HOST}${EMPTY}${HOST}", Ok("example.comexample.com"));
        check("${NESTED}", Ok("${HOST}"));
        check("$HOST $ } $}", Ok("$HOST $ } $}"));
    }

    #[test]
    fn doubled_dollar_is_an_escape() {
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
    fn default_replaces_unset_and_empty_variables() {
        check("${MISSING:-http://a:1}/${EMPTY:-x}${HOST:-y}${MISSING:-}", Ok("http://a:1/xexample.com"));
        check("${:-x}", Err(&["`` is not the name of an environment variable"]));
    }

    #[test]
    fn reference_values_exclude_defaults() {
        let environment = |name: &str| (name == "TOKEN").then(|| "hunter2".to_owned());
        let outside = ReferenceScope {
            environment: &environment,
            folder: Path::new("fixtures/secrets"),
            has_files: true,
        };
        let expanded = expand("a ${TOKEN} ${HOST:-b} ${TOKEN:-c} ${file:token}", outside).unwrap();
        assert_eq!(expanded.text, "a hunter2 b hunter2 hunter2");
        assert_eq!(expanded.reference_values, ["hunter2", "hunter2", "hunter2"]);
    }

    #[test]
    fn final_line_end_of_a_file_is_removed() {
        check("Bearer ${file:token}!", Ok("Bearer hunter2!"));
        check("${file:../secrets/token}", Ok("hunter2"));
        let here = std::env::current_dir().unwrap();
        check(&format!("${{file:{}/fixtures/secrets/token}}", here.display()), Ok("hunter2"));
        check(
            "${file:absent} ${file:} ${file:binary} ${file:/dev/zero}",
            Err(&[
                "the file `absent` cannot be read: No such file or directory (os error 2)",
                "the file `` cannot be read: is a directory",
                "the file `binary` cannot be read: it is not UTF-8",
                "the file `/dev/zero` cannot be read: it is not a regular file",
            ]),
        );
    }
}
