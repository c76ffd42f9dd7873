//! Which tools of a server are served.

use std::collections::BTreeSet;

/// A choice among the tools of a server. Names are compared exactly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// These and no others, whatever `block` says. Empty, it allows all.
    pub allow: Vec<String>,
    /// All but these.
    pub block: Vec<String>,
}

impl ToolFilter {
    /// Whether a tool of this name is served.
    pub(super) fn admits(&self, name: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|other| other == name);
        if self.allow.is_empty() { !named(&self.block) } else { named(&self.allow) }
    }

    /// The names in it.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        self.allow.iter().chain(&self.block).map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(allow: &[&str], block: &[&str], admitted: &[&str]) {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let filter = ToolFilter { allow: names(allow), block: names(block) };
        let got: Vec<_> = ["a", "A", "b"].into_iter().filter(|name| filter.admits(name)).collect();
        assert_eq!(got, admitted);
    }

    #[test]
    fn the_list_of_the_allowed_wins() {
        check(&[], &[], &["a", "A", "b"]);
        check(&[], &["a", "c"], &["A", "b"]);
        check(&["a", "B"], &[], &["a"]);
        check(&["a"], &["a", "b"], &["a"]);
    }
}
