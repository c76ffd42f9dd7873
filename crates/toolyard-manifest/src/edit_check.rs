//! Compares an edited manifest with its predecessor.

use std::path::Path;

use crate::{
    manifest::Manifest,
    problem::{ManifestProblem, ManifestProblems, SourceLocation},
};

impl Manifest {
    /// Checks that this manifest is not a half-written edit of `before`.
    ///
    /// # Errors
    /// If a file that declared handlers still exists but contains no `ToolRegistry` document. Editors truncate a file
    /// before they write it, and a text that is empty or ends early is often valid. An empty list of handlers is
    /// accepted.
    pub fn check_edit_of(&self, before: &Self) -> Result<(), ManifestProblems> {
        let declared =
            before.registry_sizes.iter().filter(|(_, handlers)| **handlers > 0).map(|(name, _)| name);
        let emptied = declared
            .filter(|name| !self.registry_sizes.contains_key(*name) && Path::new(name.as_str()).exists());
        let problem = |name: &String| {
            ManifestProblem::new(SourceLocation::file(name), "this file no longer declares handlers")
                .expected("a ToolRegistry document")
                .hint("to remove all handlers of the file, write `handlers: []` or delete the file")
        };
        ManifestProblems::from_unsorted(emptied.map(problem).collect()).map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use insta::assert_snapshot;

    use crate::{ManifestProblems, load};

    const REGISTRY: &str = "apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {name: a}\n\
                            spec:\n  handlers:";
    const HANDLERS: &str = "\n  - {name: h, type: mcp, mcpConfig: {transport: stdio, command: x}}\n";
    const TOOLYARD: &str = "apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec: {}\n";

    /// Checks an edit of one of two files; `None` deletes the edited file.
    fn edited(before: &str, after: Option<&str>) -> Result<(), ManifestProblems> {
        let folder = tempfile::tempdir().unwrap();
        let [edited, other] = ["a.yaml", "b.yaml"].map(|name| folder.path().join(name));
        fs::write(&other, TOOLYARD).unwrap();
        fs::write(&edited, before).unwrap();
        let paths = [folder.path().to_owned()];
        let first = load(&paths).unwrap();
        match after {
            Some(text) => fs::write(&edited, text).unwrap(),
            None => fs::remove_file(&edited).unwrap(),
        }
        load(&paths).unwrap().check_edit_of(&first)
    }

    #[test]
    fn truncated_file_is_refused() {
        let full = format!("{REGISTRY}{HANDLERS}");
        let empty = format!("{REGISTRY} []\n");
        let cases = [
            ("the same", &*full, Some(&*full), true),
            ("an empty file", &full, Some(""), false),
            ("comments only", &full, Some("# handlers:\n#  - {name: h}\n"), false),
            ("empty documents", &full, Some("---\n---\n"), false),
            ("an empty list", &full, Some(&empty), true),
            ("a deleted file", &full, None, true),
            ("an empty file after an empty list", &empty, Some(""), true),
            ("an empty file after comments", "# nothing\n", Some(""), true),
        ];
        for (name, before, after, accepted) in cases {
            assert_eq!(edited(before, after).is_ok(), accepted, "{name}");
        }
    }

    #[test]
    fn message_explains_how_to_remove_all_handlers() {
        let problems = edited(&format!("{REGISTRY}{HANDLERS}"), Some("")).unwrap_err().to_string();
        let from = problems.find("a.yaml").unwrap();
        assert_snapshot!(&problems[from..], @"
        a.yaml: this file no longer declares handlers
          expected a ToolRegistry document
          hint: to remove all handlers of the file, write `handlers: []` or delete the file
        ");
    }
}
