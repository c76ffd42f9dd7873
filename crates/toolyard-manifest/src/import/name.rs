//! Names for what clients call as they like.

use std::{collections::HashSet, path::Path};

use crate::forms::HandlerName;

/// The longest name that a handler may have.
const LONGEST: usize = 63;

/// The names that were given so far, by all files that are imported together.
#[derive(Default)]
pub(crate) struct Names {
    registries: HashSet<String>,
    handlers: HashSet<String>,
}

impl Names {
    /// The names that a manifest has.
    pub(crate) fn taken(registries: HashSet<String>, handlers: HashSet<String>) -> Self {
        Self { registries, handlers }
    }

    /// The name of the registry that is made of a file: that of the file.
    pub(crate) fn registry(&mut self, source: &str) -> String {
        let stem = Path::new(source).file_stem().unwrap_or_default();
        unique(&mut self.registries, legal(&stem.to_string_lossy(), "imported"))
    }

    /// Names for the servers of one file, in its order. One that is legal and free stays as it is, whatever
    /// the others become.
    pub(crate) fn handlers(&mut self, servers: &[&str]) -> Vec<String> {
        let stays: Vec<bool> = servers
            .iter()
            .map(|name| HandlerName::parse(name).is_ok() && self.handlers.insert((*name).to_owned()))
            .collect();
        let name = |(server, stays): (&&str, bool)| match stays {
            true => (*server).to_owned(),
            false => unique(&mut self.handlers, legal(server, "server")),
        };
        servers.iter().zip(stays).map(name).collect()
    }
}

/// Lower-case letters, digits and single `-`; `otherwise` where nothing is left.
fn legal(name: &str, otherwise: &str) -> String {
    let mut legal = String::new();
    for c in name.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => legal.push(c),
            _ if legal.is_empty() || legal.ends_with('-') => {}
            _ => legal.push('-'),
        }
    }
    let legal = cut(&legal, LONGEST);
    if legal.is_empty() { otherwise.to_owned() } else { legal.to_owned() }
}

/// The name itself, or the first free one of `name-2`, `name-3` and so on.
fn unique(taken: &mut HashSet<String>, name: String) -> String {
    let mut unique = name.clone();
    let mut number = 2;
    while !taken.insert(unique.clone()) {
        let suffix = format!("-{number}");
        unique = format!("{}{suffix}", cut(&name, LONGEST - suffix.len()));
        number += 1;
    }
    unique
}

/// At most so many bytes of an ASCII name, and no `-` at its end.
fn cut(name: &str, longest: usize) -> &str {
    name[..name.len().min(longest)].trim_end_matches('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(servers: &[&str], expected: &[&str]) {
        let names = Names::default().handlers(servers);
        assert_eq!(names, expected);
        assert!(names.iter().all(|name| HandlerName::parse(name).is_ok()), "{names:?}");
    }

    #[test]
    fn names_become_legal_and_unique() {
        check(
            &["github", "My Server", "a_b.c", "@scope/pkg", "--", "天気"],
            &["github", "my-server", "a-b-c", "scope-pkg", "server", "server-2"],
        );
        // Who is legal keeps the name, wherever it stands.
        check(&["My Server", "my-server", "MY_SERVER"], &["my-server-2", "my-server", "my-server-3"]);
        check(&["a", "a"], &["a", "a-2"]);
        let long = "A".repeat(80);
        check(&[&long, &long], &[&"a".repeat(63), &format!("{}-2", "a".repeat(61))]);
    }

    #[test]
    fn files_share_the_names() {
        let mut names = Names::default();
        assert_eq!(names.handlers(&["a"]), ["a"]);
        assert_eq!(names.handlers(&["a", "b"]), ["a-2", "b"]);
        assert_eq!(names.registry("/home/me/.cursor/mcp.json"), "mcp");
        assert_eq!(names.registry(".mcp.json"), "mcp-2");
        assert_eq!(names.registry("claude_desktop_config.json"), "claude-desktop-config");
    }
}
