//! The keys of a large result: those of its chunks, and that of their outline.

use toolyard_core::store::StoreError;

use super::namespace::MemoryNamespace;
use super::working_memory::random_hex;

/// Maximum number of characters of a tool's name in a key.
const MAX_NAME_LENGTH: usize = 40;

/// Returns a new common prefix for the keys of one result.
///
/// # Errors
/// Returns an error if the system has no random numbers.
pub fn new_base(namespace: &MemoryNamespace, tool: &str) -> Result<String, StoreError> {
    Ok(base_of_run(namespace, tool, &random_hex::<3>()?))
}

/// Returns the common prefix for the keys of the result with this run id.
#[must_use]
pub fn base_of_run(namespace: &MemoryNamespace, tool: &str, run: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String =
        tool.chars().take(MAX_NAME_LENGTH).map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!("{namespace}/tool-{name}-{run}")
}

/// Returns the key of a chunk.
#[must_use]
pub fn chunk_key(base: &str, number: usize) -> String {
    format!("{base}-chunk{number}")
}

/// Returns the key of the outline.
#[must_use]
pub fn index_key(base: &str) -> String {
    format!("{base}-index")
}

/// Returns the common prefix of a key; `None` if it does not look like a key of a large result.
#[must_use]
pub fn base_of(key: &str) -> Option<&str> {
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
    fn base_of_a_key_is_recognized() {
        let (namespace, _) = MemoryNamespace::of_path("session/abc123/x").expect("a path");
        let key = base_of_run(&namespace, "list_models", "a1b2c3");
        assert_eq!(key, "session/abc123/tool-list_models-a1b2c3");
        assert_eq!(base_of(&chunk_key(&key, 12)), Some(&*key));
        assert_eq!(base_of(&index_key(&key)), Some(&*key));
        for other in ["", "notes", "x-chunk", "x-chunk1a", "x-indexes"] {
            assert_eq!(base_of(other), None, "{other:?}");
        }
        let odd = base_of_run(&namespace, &format!("a/b.c é|{}", "x".repeat(99)), "1");
        assert_eq!(odd, format!("session/abc123/tool-a_b_c___{}-1", "x".repeat(32)));
        let new = || new_base(&namespace, "t").unwrap();
        assert_ne!(new(), new());
    }
}
