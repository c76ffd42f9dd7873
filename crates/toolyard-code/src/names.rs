//! Names of tools in scripts: `tools.github.create_issue` is the tool `create_issue` of the handler `github`.

use std::collections::HashMap;
use std::sync::Arc;

use toolyard_core::registry::{EntryKind, Registry, RegistryEntry};

/// Names that cannot stand behind a dot: keywords of Lua, and members that JavaScript itself asks for.
const RESERVED: [&str; 28] = [
    "and",
    "break",
    "constructor",
    "do",
    "else",
    "elseif",
    "end",
    "false",
    "for",
    "function",
    "goto",
    "if",
    "in",
    "local",
    "nil",
    "not",
    "or",
    "prototype",
    "repeat",
    "return",
    "then",
    "toJSON",
    "toString",
    "true",
    "until",
    "valueOf",
    "while",
    "call_tool",
];

/// Characters between the name of a handler and that of its tool.
const SEPARATORS: [char; 4] = ['_', '-', '.', '/'];

/// The paths of the tools that a caller sees.
pub struct ToolPaths {
    /// Published names by path, and by other names that are as clear.
    published: HashMap<String, Arc<str>>,
    /// Paths by published name.
    paths: HashMap<Arc<str>, String>,
}

impl ToolPaths {
    /// Returns the paths of all tools in a view. If two tools of a handler have the same path, the later one has a number
    /// behind it.
    #[must_use]
    pub fn of(view: &Registry) -> Self {
        let entries = view.entries(EntryKind::Tools);
        let mut all = Self {
            published: HashMap::with_capacity(2 * entries.len()),
            paths: HashMap::with_capacity(entries.len()),
        };
        for entry in entries {
            let path = all.free_path(entry);
            all.published.insert(path.clone(), entry.name.clone());
            all.paths.insert(entry.name.clone(), path);
        }
        for entry in entries {
            let name = identifier(&entry.name);
            let of_handler = format!("{}.{name}", identifier(&entry.handler.name));
            for other in [name, of_handler] {
                all.published.entry(other).or_insert_with(|| entry.name.clone());
            }
        }
        all
    }

    fn free_path(&self, entry: &RegistryEntry) -> String {
        let path = format!("{}.{}", identifier(&entry.handler.name), identifier(short_name(entry)));
        let mut free = path.clone();
        let mut number = 1;
        while self.published.contains_key(&free) {
            number += 1;
            free = format!("{path}_{number}");
        }
        free
    }

    /// Returns the published name of the tool that a script or a model means: the name itself, or a path with or without
    /// `tools.` in front.
    #[must_use]
    pub fn resolve(&self, view: &Registry, reference: &str) -> Option<Arc<str>> {
        if let Ok(entry) = view.tool(reference) {
            return Some(entry.name.clone());
        }
        let path = reference.strip_prefix("tools.").unwrap_or(reference);
        self.published.get(path).cloned()
    }

    /// Returns the path of a tool without `tools.`, by its published name.
    #[must_use]
    pub fn path(&self, published: &str) -> Option<&str> {
        self.paths.get(published).map(String::as_str)
    }
}

/// Returns the name of a tool without that of its handler in front.
fn short_name(entry: &RegistryEntry) -> &str {
    let (name, handler) = (&*entry.name, &*entry.handler.name);
    let has_prefix = name.len() > entry.own.len() && name.ends_with(&*entry.own);
    let name = if has_prefix { &entry.own } else { name };
    let rest = name.strip_prefix(handler).and_then(|rest| rest.strip_prefix(SEPARATORS));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(name)
}

/// Returns a name that is an identifier in both languages.
fn identifier(name: &str) -> String {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let mut identifier: String = name.chars().map(|char| if is_part(char) { char } else { '_' }).collect();
    if identifier.is_empty() || identifier.starts_with(|char: char| char.is_ascii_digit()) {
        identifier.insert(0, '_');
    }
    if RESERVED.contains(&&*identifier) {
        identifier.push('_');
    }
    identifier
}

#[cfg(test)]
mod tests {
    use toolyard_core::names::PrefixPolicy;

    use super::*;
    use crate::testing::{named, registry};

    fn offers() -> Registry {
        registry(&[
            (
                "github",
                named(&["create_issue", "github_search", "get-file", "get.file"]),
                PrefixPolicy::OnClash,
            ),
            ("gitlab", named(&["create_issue", "end"]), PrefixPolicy::OnClash),
            ("file-system", named(&["read", "2fa"]), PrefixPolicy::Always),
        ])
    }

    #[test]
    fn tools_have_paths_by_handler() {
        let registry = offers();
        let paths = ToolPaths::of(&registry);
        let all: Vec<_> = registry
            .entries(EntryKind::Tools)
            .iter()
            .map(|entry| format!("{} = {}", entry.name, paths.path(&entry.name).unwrap_or("?")))
            .collect();
        insta::assert_snapshot!(all.join("\n"), @"
        create_issue = github.create_issue
        github_search = github.search
        get-file = github.get_file
        github_get_file = github.get_file_2
        gitlab_create_issue = gitlab.create_issue
        end = gitlab.end_
        file-system_read = file_system.read
        file-system_2fa = file_system._2fa
        ");
    }

    #[test]
    fn references_are_resolved() {
        let registry = offers();
        let paths = ToolPaths::of(&registry);
        let check = |reference: &str, expected: Option<&str>| {
            assert_eq!(paths.resolve(&registry, reference).as_deref(), expected, "{reference}");
        };
        check("create_issue", Some("create_issue"));
        check("github.create_issue", Some("create_issue"));
        check("tools.github.create_issue", Some("create_issue"));
        check("gitlab.create_issue", Some("gitlab_create_issue"));
        check("gitlab.gitlab_create_issue", Some("gitlab_create_issue"));
        check("gitlab_create_issue", Some("gitlab_create_issue"));
        check("github.search", Some("github_search"));
        check("gitlab.end_", Some("end"));
        check("file_system._2fa", Some("file-system_2fa"));
        check("github.delete_issue", None);
        check("tools", None);
        check("", None);
    }
}
