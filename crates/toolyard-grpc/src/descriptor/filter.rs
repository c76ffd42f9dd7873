//! Selects the methods that become tools.

/// Selects the methods that become tools: those that match each list that is not empty.
///
/// A pattern is a name, in which `*` matches anything but a dot or slash, and `**` matches anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MethodFilter {
    /// By service: its full name, such as `package.Service`, or the name without the package.
    pub services: Vec<String>,
    /// By method: its name, its full name such as `package.Service/Method`, or its tool.
    pub methods: Vec<String>,
}

impl MethodFilter {
    /// Returns true if it selects everything.
    pub(crate) const fn is_empty(&self) -> bool {
        self.services.is_empty() && self.methods.is_empty()
    }

    /// Returns true if methods of a service may be selected.
    pub(crate) fn allows_service(&self, full_name: &str) -> bool {
        let short = full_name.rsplit_once('.').map_or(full_name, |(_, short)| short);
        is_matched(&self.services, &[full_name, short])
    }

    /// Returns true if a method of a selected service is selected.
    pub(crate) fn allows_method(&self, service: &str, method: &str, tool: &str) -> bool {
        self.methods.is_empty() || is_matched(&self.methods, &[method, &format!("{service}/{method}"), tool])
    }
}

fn is_matched(patterns: &[String], names: &[&str]) -> bool {
    let matches = |pattern: &String| names.iter().any(|name| matches(pattern.as_bytes(), name.as_bytes()));
    patterns.is_empty() || patterns.iter().any(matches)
}

fn matches(glob: &[u8], name: &[u8]) -> bool {
    match glob {
        [] => name.is_empty(),
        [b'*', b'*', rest @ ..] => (0..=name.len()).any(|at| matches(rest, &name[at..])),
        [b'*', rest @ ..] => {
            let end = name.iter().position(|byte| b"./".contains(byte)).unwrap_or(name.len());
            (0..=end).any(|at| matches(rest, &name[at..]))
        }
        [first, rest @ ..] => name.first() == Some(first) && matches(rest, &name[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_and_methods_are_selected_by_patterns() {
        let check = |services: &[&str], methods: &[&str], expected: bool| {
            let all = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            let filter = MethodFilter { services: all(services), methods: all(methods) };
            let is_allowed = filter.allows_service("etcd.v3.KV")
                && filter.allows_method("etcd.v3.KV", "Range", "etcd_v3_KV_Range");
            assert_eq!(is_allowed, expected, "{services:?} {methods:?}");
        };
        check(&[], &[], true);
        check(&["KV"], &[], true);
        check(&["etcd.v3.KV"], &["Range"], true);
        check(&["etcd.*.KV"], &[], true);
        check(&["etcd.*"], &[], false);
        check(&["etcd.**"], &[], true);
        check(&["*"], &[], true);
        check(&["v3.KV"], &[], false);
        check(&["Lease", "KV"], &["Put", "R*"], true);
        check(&[], &["etcd.v3.KV/*"], true);
        check(&[], &["etcd_v3_KV_Range"], true);
        check(&["Lease"], &["Range"], false);
        check(&["KV"], &["Put"], false);
        check(&[""], &[], false);
    }
}
