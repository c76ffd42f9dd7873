//! Selects the operations that become tools.

use http::Method;

/// Selects the operations that become tools: those that match every non-empty list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationSelector {
    /// By `operationId` or tool name.
    pub operations: Vec<String>,
    /// By one of their tags.
    pub tags: Vec<String>,
    /// By method.
    pub methods: Vec<Method>,
    /// By path: `*` matches anything but a slash, `**` matches anything.
    pub paths: Vec<String>,
}

impl OperationSelector {
    pub(super) fn allows(
        &self,
        id: Option<&str>,
        name: &str,
        tags: &[&str],
        method: &Method,
        path: &str,
    ) -> bool {
        let named = |selector: &String| Some(&**selector) == id || selector == name;
        (self.operations.is_empty() || self.operations.iter().any(named))
            && (self.tags.is_empty() || self.tags.iter().any(|tag| tags.contains(&&**tag)))
            && (self.methods.is_empty() || self.methods.contains(method))
            && (self.paths.is_empty()
                || self.paths.iter().any(|glob| matches(glob.as_bytes(), path.as_bytes())))
    }
}

fn matches(glob: &[u8], path: &[u8]) -> bool {
    match glob {
        [] => path.is_empty(),
        [b'*', b'*', rest @ ..] => (0..=path.len()).any(|at| matches(rest, &path[at..])),
        [b'*', rest @ ..] => {
            let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
            (0..=end).any(|at| matches(rest, &path[at..]))
        }
        [first, rest @ ..] => path.first() == Some(first) && matches(rest, &path[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_paths() {
        let check = |glob: &str, path: &str, expected| {
            assert_eq!(matches(glob.as_bytes(), path.as_bytes()), expected, "{glob} {path}");
        };
        check("/pets", "/pets", true);
        check("/pets", "/pets/{id}", false);
        check("/pets/*", "/pets/{id}", true);
        check("/pets/*", "/pets/{id}/toys", false);
        check("/pets/**", "/pets/{id}/toys", true);
        check("/pets**", "/pets", true);
        check("/*/toys", "/pets/toys", true);
        check("**/toys", "/pets/{id}/toys", true);
        check("*", "/pets", false);
    }
}
