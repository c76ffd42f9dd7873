//! The digest of a manifest's texts.

use sha2::{Digest, Sha256};

use crate::source::ManifestSource;

/// Returns the digest of texts in the order in which they are read: `sha256:`, and the hexadecimal digits of the SHA-256 of
/// all texts without anything in between, as `cat FILES | sha256sum` prints it.
#[must_use]
pub fn digest<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    texts.into_iter().for_each(|text| hasher.update(text));
    let digits: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// Returns the digest of sources.
pub(crate) fn digest_of<'a>(sources: impl IntoIterator<Item = &'a ManifestSource>) -> String {
    digest(sources.into_iter().map(|source| source.text.as_str()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{load, load_and_import};

    /// The first vector of FIPS 180-2.
    #[test]
    fn texts_are_hashed_one_after_the_other() {
        let expected = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        for texts in [&["abc"][..], &["a", "bc"], &["ab", "", "c"]] {
            assert_eq!(digest(texts.iter().copied()), expected, "{texts:?}");
        }
    }

    #[test]
    fn manifest_has_the_digest_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| fs::write(path(name), text).unwrap();
        let registry = |name: &str| {
            format!(
                "apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {{name: {name}}}\nspec: {{handlers: []}}\n"
            )
        };
        fs::create_dir(path("manifests")).unwrap();
        write("manifests/b.yaml", &registry("b"));
        write("manifests/a.yaml", &registry("a"));
        let client = r#"{"mcpServers": {}}"#;
        write("mcp.json", client);
        let (a, b) = (registry("a"), registry("b"));
        let loaded = load(&[path("manifests")]).unwrap();
        assert_eq!(loaded.digest, digest([&*a, &*b]));
        let (imported, _) = load_and_import(&[path("manifests")], &[path("mcp.json")]).unwrap();
        assert_eq!(imported.digest, digest([&*a, &*b, client]));
    }
}
