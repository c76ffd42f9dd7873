//! The files that `ARCHITECTURE.md` and the design notes name: each exists, so that the way of a call can be followed.
//!
//! A path begins with a package, such as `toolyard-core/src/gateway.rs`, with `xtask`, or with a
//! package below `tools`.

use std::fs;
use std::path::{Path, PathBuf};

/// Folder of the design notes; `ARCHITECTURE.md` is read as well.
const DESIGN_NOTES: &str = "docs/design";

/// Returns a problem for each named file that does not exist below `root`.
pub(super) fn problems(root: &Path) -> Vec<String> {
    let notes = fs::read_dir(root.join(DESIGN_NOTES)).into_iter().flatten().flatten();
    let documents = notes.map(|note| note.path()).chain([root.join("ARCHITECTURE.md")]);
    let mut problems = Vec::new();
    for document in documents {
        let name = document.strip_prefix(root).unwrap_or(&document).display().to_string();
        match fs::read_to_string(&document) {
            Ok(text) => {
                let missing = named_files(&text).filter(|path| !root.join(path).exists());
                problems.extend(
                    missing.map(|path| format!("{name} names {}, which does not exist", path.display())),
                );
            }
            Err(error) => problems.push(format!("{name}: {error}")),
        }
    }
    problems
}

/// Returns the files named in code spans, from the root of the repository.
fn named_files(text: &str) -> impl Iterator<Item = PathBuf> {
    text.split('`').skip(1).step_by(2).filter_map(|span| {
        let (package, _) = span.split_once("/src/").or_else(|| span.split_once("/tests/"))?;
        let is_package = package.starts_with("toolyard") && !package.contains('/');
        let is_tool = package == "xtask" || package.starts_with("tools/");
        match is_tool {
            true => Some(PathBuf::from(span)),
            false => is_package.then(|| Path::new("crates").join(span)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_packages_are_found_in_code_spans() {
        let text = "`toolyard-core/src/a.rs` and `xtask/src/b.rs`, `/src/c`, toolyard/src/d.rs, `tools/call`, `toolyard/tests/it`, `tools/bench/src/d.rs`";
        let expected = [
            "crates/toolyard-core/src/a.rs",
            "xtask/src/b.rs",
            "crates/toolyard/tests/full",
            "tools/bench/src/d.rs",
        ];
        assert_eq!(named_files(text).collect::<Vec<_>>(), expected.map(PathBuf::from));
    }
}
