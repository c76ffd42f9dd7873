//! The selection of the tools that are served.

use std::collections::BTreeSet;

/// A selection among the tools of a server. Names are compared exactly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamToolFilter {
    /// Only these tools, regardless of `block`. Empty: all tools.
    pub allow: Vec<String>,
    /// All tools but these.
    pub block: Vec<String>,
}

impl UpstreamToolFilter {
    /// True if a tool with this name is served.
    pub(super) fn admits(&self, name: &str) -> bool {
        let contains = |names: &[String]| names.iter().any(|other| other == name);
        if self.allow.is_empty() { !contains(&self.block) } else { contains(&self.allow) }
    }

    /// Returns all names of the filter.
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
        let filter = UpstreamToolFilter { allow: names(allow), block: names(block) };
        let got: Vec<_> = ["a", "A", "b"].into_iter().filter(|name| filter.admits(name)).collect();
        assert_eq!(got, admitted);
    }

    #[test]
    fn allow_list_wins() {
        check(&[], &[], &["a", "A", "b"]);
        check(&[], &["a", "c"], &["A", "b"]);
        check(&["a", "B"], &[], &["a"]);
        check(&["a"], &["a", "b"], &["a"]);
    }
}
