//! Assigns names to tools.

use std::collections::HashSet;

use http::Method;
use toolyard_core::names::{MAX_LENGTH, with_site_hash};

/// The names in use.
#[derive(Debug, Default)]
pub(super) struct ToolNames {
    assigned: HashSet<String>,
    /// Names that several operations would have.
    shared: HashSet<String>,
}

impl ToolNames {
    /// Creates an allocator from the preferred names of all operations.
    pub(super) fn with_preferred(preferred: impl Iterator<Item = String>) -> Self {
        let mut names = HashSet::new();
        let shared = preferred.filter(|name| !names.insert(name.clone())).collect();
        Self { assigned: HashSet::new(), shared }
    }

    /// Assigns the name of an operation: its `operationId` in valid characters, or else its method and path. If several
    /// operations prefer the same name, each gets a suffix that depends only on method and path, so that a name never
    /// refers to another operation after the document grows.
    pub(super) fn assign(&mut self, id: Option<&str>, method: &Method, path: &str) -> String {
        let name = preferred_name(id, method, path);
        let site = format!("{method} {path}");
        let name = match name.len() <= MAX_LENGTH && !self.shared.contains(&name) {
            true => name,
            false => with_site_hash(&name, &site),
        };
        let mut free = name.clone();
        let mut number = 2;
        // The document contains the same operation twice, perhaps with different case.
        while !self.assigned.insert(free.clone()) {
            free = with_site_hash(&name, &format!("{site} {number}"));
            number += 1;
        }
        free
    }
}

/// Returns the name of an operation if it is unused and short enough.
pub(super) fn preferred_name(id: Option<&str>, method: &Method, path: &str) -> String {
    let id = id.map(to_legal_name).filter(|name| !name.is_empty());
    id.unwrap_or_else(|| {
        let path: String = path.chars().filter(|c| !"{}".contains(*c)).collect();
        to_legal_name(&format!("{}_{}", method.as_str().to_ascii_lowercase(), path))
    })
}

/// Replaces characters that the interfaces of models do not accept.
fn to_legal_name(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '-' || c == '_' => out.push(c),
            _ if out.ends_with('_') => {}
            _ => out.push('_'),
        }
    }
    out.trim_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_and_stable() {
        let mut names =
            ToolNames::with_preferred(["getPet", "getPet", "other"].map(str::to_owned).into_iter());
        let mut check = |id, path, expected: &str| {
            let name = names.assign(id, &Method::GET, path);
            assert_eq!(name, expected, "{id:?} {path}");
        };
        check(Some("other"), "/pet", "other");
        check(Some("getPet"), "/pets/{id}", "getPet_8e9452ee");
        check(Some("getPet"), "/pets/{id}", "getPet_8e9452ee_91e86ae8");
        check(Some("pets/get one.v2"), "/a", "pets_get_one_v2");
        check(None, "/pets/{petId}/toys", "get_pets_petId_toys");
        check(Some("ä"), "/pets", "get_pets");
        check(None, "/", "get");
        let long = "x".repeat(70);
        let expected = format!("{}_bf97e35d", "x".repeat(55));
        check(Some(&long), "/a", &expected);
    }
}
