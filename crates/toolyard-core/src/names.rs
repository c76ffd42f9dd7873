//! Which name a tool is called by.
//!
//! A tool is called what its owner calls it as long as that is legal and free; else
//! `{handler}_{tool}`. A name once given stays with its tool while the gateway runs: what a model
//! has learnt, and what a policy names, does not change because another server came up.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// What the APIs of the large models accept as the name of a function.
pub const MAX_LENGTH: usize = 64;

/// Whether models can call a tool by this name: `^[a-zA-Z0-9_-]{1,64}$`.
#[must_use]
pub fn is_legal(name: &str) -> bool {
    (1..=MAX_LENGTH).contains(&name.len()) && name.bytes().all(is_legal_byte)
}

fn is_legal_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// The names that were ever given out, and to whom.
#[derive(Debug, Default)]
pub struct Names {
    given: HashMap<Owner, Arc<str>>,
    owners: HashMap<Arc<str>, Owner>,
}

/// A handler and the name that it calls a tool by.
type Owner = (Arc<str>, Arc<str>);

impl Names {
    /// The name of `tool` of `handler`: the one that it has, or a new one.
    pub fn give(&mut self, handler: &Arc<str>, tool: &Arc<str>) -> Arc<str> {
        let owner = (handler.clone(), tool.clone());
        if let Some(name) = self.given.get(&owner) {
            return name.clone();
        }
        let name = self.choose(handler, tool);
        self.given.insert(owner.clone(), name.clone());
        self.owners.insert(name.clone(), owner);
        name
    }

    fn choose(&self, handler: &str, tool: &Arc<str>) -> Arc<str> {
        let free = |name: &str| is_legal(name) && !self.owners.contains_key(name);
        if free(tool) {
            return tool.clone();
        }
        let full = format!("{handler}_{tool}");
        let legal = legalized(&full);
        if free(&legal) {
            return legal.into();
        }
        // Two different names may become one when they are made legal: a hash tells them apart. Where
        // somebody's own name happens to be that one, the next hash is tried.
        let hashed = (0..).map(|attempt| with_hash(&legal, &format!("{full}{}", "#".repeat(attempt))));
        hashed.into_iter().find(|name| free(name)).unwrap_or(legal).into()
    }
}

/// `name` with every foreign character replaced, shortened where it is too long.
fn legalized(name: &str) -> String {
    let legal: String =
        name.chars().map(|c| if c.is_ascii() && is_legal_byte(c as u8) { c } else { '_' }).collect();
    if legal.len() <= MAX_LENGTH { legal } else { with_hash(&legal, name) }
}

/// The beginning of `legal` and a hash of the whole `name`: the same on every start.
fn with_hash(legal: &str, name: &str) -> String {
    const HASH: usize = 8;
    let digest = Sha256::digest(name.as_bytes());
    let hash: String = digest.iter().take(HASH / 2).map(|byte| format!("{byte:02x}")).collect();
    let kept = legal.len().min(MAX_LENGTH - HASH - 1);
    format!("{}_{hash}", &legal[..kept])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tools: &[(&str, &str)], expect: &[&str]) {
        let mut names = Names::default();
        let given: Vec<_> = tools.iter().map(|(h, t)| names.give(&(*h).into(), &(*t).into())).collect();
        let again: Vec<_> = tools.iter().map(|(h, t)| names.give(&(*h).into(), &(*t).into())).collect();
        assert_eq!(given.iter().map(|name| &**name).collect::<Vec<_>>(), expect);
        assert_eq!(given, again, "a name stays with its owner");
        assert!(given.iter().all(|name| is_legal(name)));
    }

    #[test]
    fn a_tool_keeps_its_name_where_that_is_free() {
        check(&[("a", "read"), ("a", "write"), ("b", "getPetById")], &["read", "write", "getPetById"]);
    }

    #[test]
    fn the_first_handler_keeps_the_bare_name() {
        check(&[("a", "read"), ("b", "read"), ("c", "read")], &["read", "b_read", "c_read"]);
    }

    #[test]
    fn illegal_names_are_made_legal() {
        check(&[("a", "fs.read"), ("a", "grüße"), ("a", "")], &["a_fs_read", "a_gr__e", "a_"]);
    }

    #[test]
    fn names_that_become_one_are_told_apart() {
        check(&[("a", "x.y"), ("a", "x y")], &["a_x_y", "a_x_y_ba072e2d"]);
        check(&[("x", "read"), ("x", "a_read"), ("a", "read")], &["read", "a_read", "a_read_9503720d"]);
    }

    #[test]
    fn long_names_are_shortened_with_a_stable_hash() {
        let long = "n".repeat(70);
        let short = format!("a_{}_73aaa18a", "n".repeat(53));
        check(&[("a", &long)], &[&short]);
    }
}
