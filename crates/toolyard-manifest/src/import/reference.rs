//! Converts references in clients' files to those of manifests.

use crate::expand;

/// Variables that editors fill in, and that look like environment variables.
const EDITOR_VARIABLES: &[&str] = &["workspaceFolder", "workspaceFolderBasename", "cwd", "file"];

/// A text with references in the syntax of manifests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RewrittenText {
    pub(super) text: String,
    /// References that only a client can resolve, with their new environment variables.
    pub(super) new_variables: Vec<(String, String)>,
}

/// Converts the references of a text. `${NAME}`, `${NAME:-default}` and `${env:NAME}` are environment variables, and
/// `${userHome}` is one that every system has. Any other reference becomes a variable with a similar name:
/// `${input:api-key}` is `${API_KEY}`.
pub(super) fn rewrite_references(text: &str) -> RewrittenText {
    let mut rewritten = RewrittenText::default();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        rewritten.text.push_str(before);
        let Some((reference, behind)) = behind.split_once('}') else {
            rewritten.text.push_str("$${");
            rest = behind;
            continue;
        };
        rewritten.add(reference);
        rest = behind;
    }
    rewritten.text.push_str(rest);
    rewritten
}

impl RewrittenText {
    fn add(&mut self, reference: &str) {
        let name = reference.strip_prefix("env:").unwrap_or(reference);
        let variable = name.split_once(":-").map_or(name, |(variable, _)| variable);
        match reference {
            "userHome" => self.push_reference("HOME"),
            "/" | "pathSeparator" => self.text.push('/'),
            _ if expand::is_variable_name(variable) && !EDITOR_VARIABLES.contains(&variable) => {
                self.push_reference(name)
            }
            _ => {
                let variable = variable_name(reference.strip_prefix("input:").unwrap_or(reference));
                self.push_reference(&variable);
                self.new_variables.push((reference.to_owned(), variable));
            }
        }
    }

    fn push_reference(&mut self, inner: &str) {
        self.text.extend(["${", inner, "}"]);
    }
}

/// Derives the name of a variable: `api-key` and `apiKey` become `API_KEY`.
pub(super) fn variable_name(text: &str) -> String {
    let mut name = String::new();
    let mut after_small = false;
    for c in text.chars() {
        if !c.is_ascii_alphanumeric() {
            name.push('_');
        } else {
            if c.is_ascii_uppercase() && after_small {
                name.push('_');
            }
            name.push(c.to_ascii_uppercase());
        }
        after_small = c.is_ascii_lowercase();
    }
    let name = name.trim_matches('_');
    let needs_letter = name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit());
    if needs_letter { format!("_{name}") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str, renamed: &[(&str, &str)]) {
        let renamed = renamed.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
        assert_eq!(
            rewrite_references(text),
            RewrittenText { text: expected.to_owned(), new_variables: renamed }
        );
    }

    #[test]
    fn variables_keep_their_names() {
        check("", "", &[]);
        check("Bearer ${TOKEN}", "Bearer ${TOKEN}", &[]);
        check("${URL:-http://a}/mcp", "${URL:-http://a}/mcp", &[]);
        check("${env:TOKEN}-${env:b}", "${TOKEN}-${b}", &[]);
        check("${userHome}${/}x${pathSeparator}y", "${HOME}/x/y", &[]);
        check("a $B ${C", "a $B $${C", &[]);
    }

    #[test]
    fn client_references_become_variables() {
        check("${input:api-key}", "${API_KEY}", &[("input:api-key", "API_KEY")]);
        check("${workspaceFolder}/x", "${WORKSPACE_FOLDER}/x", &[("workspaceFolder", "WORKSPACE_FOLDER")]);
        check("${config:a.bC}", "${CONFIG_A_B_C}", &[("config:a.bC", "CONFIG_A_B_C")]);
        check("${input:2}${}", "${_2}${_}", &[("input:2", "_2"), ("", "_")]);
    }
}
