//! Valid and unique handler names for the servers of clients.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use crate::formats::HandlerName;

/// Maximum length of a handler name.
const MAX_NAME_CHARS: usize = 63;

/// The names in use, across all files that are imported together.
#[derive(Default)]
pub(crate) struct NameAllocator {
    registries: UsedNames,
    handlers: UsedNames,
}

/// Names in use.
#[derive(Default)]
struct UsedNames {
    names: HashSet<String>,
    /// The number to try next, by the name without a number.
    next_numbers: HashMap<String, usize>,
}

impl NameAllocator {
    /// Creates an allocator with the names of an existing manifest.
    pub(crate) fn with_existing(registries: HashSet<String>, handlers: HashSet<String>) -> Self {
        let used = |names| UsedNames { names, next_numbers: HashMap::new() };
        Self { registries: used(registries), handlers: used(handlers) }
    }

    /// Returns the name of the registry for a file, derived from the file name.
    pub(crate) fn registry_name(&mut self, source: &str) -> String {
        let stem = Path::new(source).file_stem().unwrap_or_default();
        self.registries.unique_name(to_legal_name(&stem.to_string_lossy(), "imported"))
    }

    /// Returns names for the servers of one file, in its order. A name that is valid and unused stays the same,
    /// whatever the others become.
    pub(crate) fn handler_names(&mut self, servers: &[&str]) -> Vec<String> {
        let unchanged: Vec<bool> = servers
            .iter()
            .map(|name| HandlerName::parse(name).is_ok() && self.handlers.names.insert((*name).to_owned()))
            .collect();
        let name = |(server, stays): (&&str, bool)| match stays {
            true => (*server).to_owned(),
            false => self.handlers.unique_name(to_legal_name(server, "server")),
        };
        servers.iter().zip(unchanged).map(name).collect()
    }
}

/// Converts a name to lower-case letters, digits and single `-`; `otherwise` replaces an empty result.
fn to_legal_name(name: &str, otherwise: &str) -> String {
    let mut legal = String::new();
    for c in name.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => legal.push(c),
            _ if legal.is_empty() || legal.ends_with('-') => {}
            _ => legal.push('-'),
        }
    }
    let legal = truncate_name(&legal, MAX_NAME_CHARS);
    if legal.is_empty() { otherwise.to_owned() } else { legal.to_owned() }
}

impl UsedNames {
    /// Returns the name itself, or the first unused one of `name-2`, `name-3` and so on.
    fn unique_name(&mut self, name: String) -> String {
        if self.names.insert(name.clone()) {
            return name;
        }
        let number = self.next_numbers.entry(name.clone()).or_insert(2);
        loop {
            let suffix = format!("-{number}");
            *number += 1;
            let unique = format!("{}{suffix}", truncate_name(&name, MAX_NAME_CHARS - suffix.len()));
            if self.names.insert(unique.clone()) {
                return unique;
            }
        }
    }
}

/// Truncates an ASCII name, and removes any `-` at its end.
fn truncate_name(name: &str, longest: usize) -> &str {
    name[..name.len().min(longest)].trim_end_matches('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(servers: &[&str], expected: &[&str]) {
        let names = NameAllocator::default().handler_names(servers);
        assert_eq!(names, expected);
        assert!(names.iter().all(|name| HandlerName::parse(name).is_ok()), "{names:?}");
    }

    #[test]
    fn names_become_valid_and_unique() {
        check(
            &["github", "My Server", "a_b.c", "@scope/pkg", "--", "天気"],
            &["github", "my-server", "a-b-c", "scope-pkg", "server", "server-2"],
        );
        // A valid name stays, wherever it is in the list.
        check(&["My Server", "my-server", "MY_SERVER"], &["my-server-2", "my-server", "my-server-3"]);
        check(&["a", "a"], &["a", "a-2"]);
        let long = "A".repeat(80);
        check(&[&long, &long], &[&"a".repeat(63), &format!("{}-2", "a".repeat(61))]);
    }

    #[test]
    fn names_are_unique_across_files() {
        let mut names = NameAllocator::default();
        assert_eq!(names.handler_names(&["a"]), ["a"]);
        assert_eq!(names.handler_names(&["a", "b"]), ["a-2", "b"]);
        assert_eq!(names.registry_name("/home/me/.cursor/mcp.json"), "mcp");
        assert_eq!(names.registry_name(".mcp.json"), "mcp-2");
        assert_eq!(names.registry_name("claude_desktop_config.json"), "claude-desktop-config");
    }
}
