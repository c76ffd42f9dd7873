//! What tools are called.

use std::collections::HashSet;

use http::Method;

/// The longest name that models' interfaces accept.
const LONGEST: usize = 64;

/// The names that are given.
#[derive(Debug, Default)]
pub(super) struct Names {
    given: HashSet<String>,
    /// What several operations would be called.
    shared: HashSet<String>,
}

impl Names {
    /// Notes the name that each operation would have.
    pub(super) fn among(wanted: impl Iterator<Item = String>) -> Self {
        let mut names = HashSet::new();
        let shared = wanted.filter(|name| !names.insert(name.clone())).collect();
        Self { given: HashSet::new(), shared }
    }

    /// The name of an operation: its `operationId` in legal characters, or else its method and path. One that several
    /// would have gets an end in each of them, which depends on method and path alone: so a name never comes to mean
    /// another operation when the document grows.
    pub(super) fn give(&mut self, id: Option<&str>, method: &Method, path: &str) -> String {
        let name = wanted(id, method, path);
        let place = format!("{method} {path}");
        let name = match name.len() <= LONGEST && !self.shared.contains(&name) {
            true => name,
            false => ended(&name, &place),
        };
        let mut free = name.clone();
        let mut number = 2;
        // A document that says an operation twice, in letters of two sizes perhaps.
        while !self.given.insert(free.clone()) {
            free = ended(&name, &format!("{place} {number}"));
            number += 1;
        }
        free
    }
}

/// What it is called if it is free and short enough.
pub(super) fn wanted(id: Option<&str>, method: &Method, path: &str) -> String {
    let id = id.map(legal).filter(|name| !name.is_empty());
    id.unwrap_or_else(|| {
        let path: String = path.chars().filter(|c| !"{}".contains(*c)).collect();
        legal(&format!("{}_{}", method.as_str().to_ascii_lowercase(), path))
    })
}

/// In the characters that models' interfaces accept.
fn legal(text: &str) -> String {
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

fn ended(name: &str, place: &str) -> String {
    let end = format!("_{:08x}", fnv(place.as_bytes()));
    let start = &name[..name.len().min(LONGEST - end.len())];
    format!("{}{end}", start.trim_end_matches('_'))
}

/// FNV-1a of 32 bits: names have to stay the same in every version of this program.
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_stable() {
        let mut names = Names::among(["getPet", "getPet", "other"].map(str::to_owned).into_iter());
        let mut check = |id, path, expected: &str| {
            let name = names.give(id, &Method::GET, path);
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
