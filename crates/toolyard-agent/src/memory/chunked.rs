//! The keys of a large result: of its pieces, and of the outline that leads to them.

use super::namespace::Namespace;
use super::working::random_hex;

/// How much of a tool's name stands in a key, in characters.
const LONGEST_NAME: usize = 40;

/// What the keys of one result begin with: one that no other result has.
#[must_use]
pub fn fresh(namespace: &Namespace, tool: &str) -> String {
    named(namespace, tool, &random_hex::<3>())
}

/// What the keys of the result of this run begin with.
#[must_use]
pub fn named(namespace: &Namespace, tool: &str, run: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = tool.chars().take(LONGEST_NAME).map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!("{namespace}/tool-{name}-{run}")
}

/// The key of a piece.
#[must_use]
pub fn chunk(base: &str, number: usize) -> String {
    format!("{base}-chunk{number}")
}

/// The key of the outline.
#[must_use]
pub fn index(base: &str) -> String {
    format!("{base}-index")
}

/// What a key of a result begins with; `None` where it does not look like one.
#[must_use]
pub fn base(key: &str) -> Option<&str> {
    if let Some(base) = key.strip_suffix("-index") {
        return Some(base);
    }
    let (base, number) = key.rsplit_once("-chunk")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_made_and_known_again() {
        let (namespace, _) = Namespace::of_path("session/abc123/x").expect("a path");
        let key = named(&namespace, "list_models", "a1b2c3");
        assert_eq!(key, "session/abc123/tool-list_models-a1b2c3");
        assert_eq!(base(&chunk(&key, 12)), Some(&*key));
        assert_eq!(base(&index(&key)), Some(&*key));
        for other in ["", "notes", "x-chunk", "x-chunk1a", "x-indexes"] {
            assert_eq!(base(other), None, "{other:?}");
        }
        let odd = named(&namespace, &format!("a/b.c é|{}", "x".repeat(99)), "1");
        assert_eq!(odd, format!("session/abc123/tool-a_b_c___{}-1", "x".repeat(32)));
        assert_ne!(fresh(&namespace, "t"), fresh(&namespace, "t"));
    }
}
