//! Names that look like those of another handler.
//!
//! `{handler}_{tool}` is the form of prefixed names. A tool `good_echo` beside a handler `good` would be taken for one
//! of `good` by models and people. A URI `good+file:///a` is one of the handler `good`.

use std::collections::HashMap;
use std::sync::Arc;

use super::qualifier::{qualifier, qualifier_of};

/// Handlers whose names may be prefixes.
#[derive(Debug, Clone, Default)]
pub(crate) struct HandlerNamespaces {
    by_look: HashMap<String, Arc<str>>,
    by_qualifier: HashMap<String, Arc<str>>,
}

impl HandlerNamespaces {
    /// Returns the namespaces of these handlers.
    pub(crate) fn of<'a>(handlers: impl Iterator<Item = &'a Arc<str>>) -> Self {
        let mut namespaces = Self::default();
        for handler in handlers {
            namespaces.by_look.insert(look(handler), handler.clone());
            namespaces.by_qualifier.insert(qualifier(handler), handler.clone());
        }
        namespaces
    }

    /// Returns the handler that a URI or template names.
    pub(crate) fn owner_of_uri(&self, uri: &str) -> Option<&Arc<str>> {
        self.by_qualifier.get(&qualifier_of(uri)?)
    }

    /// Returns the handler whose namespace contains a name: the one with the longest name.
    pub(crate) fn owner_of(&self, name: &str) -> Option<&Arc<str>> {
        let look = look(name);
        let separators = look.match_indices('_').map(|(at, _)| at);
        separators.rev().find_map(|at| self.by_look.get(&look[..at]))
    }
}

/// Returns a name without differences that are easily overlooked.
fn look(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_owns_a_name() {
        let handlers = ["good", "code", "code-tools"].map(Arc::from);
        let namespaces = HandlerNamespaces::of(handlers.iter());
        let cases = [
            ("good_echo", Some("good")),
            ("good_", Some("good")),
            ("Good-Echo", Some("good")),
            ("good__echo", Some("good")),
            ("good", None),
            ("goodness_me", None),
            ("a_good_echo", None),
            ("code_run", Some("code")),
            ("code_tools", Some("code")),
            ("code_tools_run", Some("code-tools")),
            ("code-tools_run", Some("code-tools")),
            ("code.tools.run", Some("code-tools")),
            ("", None),
            ("_", None),
        ];
        for (name, owner) in cases {
            assert_eq!(namespaces.owner_of(name).map(|owner| &**owner), owner, "{name}");
        }
    }
}
