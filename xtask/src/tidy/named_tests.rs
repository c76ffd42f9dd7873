//! Checks that the tests that `docs/security.md` names exist, so that no claim outlives its test.
//!
//! A test is named as `cargo nextest list` prints it: the binary, then the path, such as `toolyard-server::it
//! keys::pages`.

use std::fs;
use std::path::{Path, PathBuf};

const DOCUMENT: &str = "docs/security.md";

/// The problems of the document in this folder.
pub(super) fn problems(root: &Path) -> Vec<String> {
    match fs::read_to_string(root.join(DOCUMENT)) {
        Ok(text) => missing(root, &text),
        Err(error) => vec![format!("{DOCUMENT}: {error}")],
    }
}

fn missing(root: &Path, text: &str) -> Vec<String> {
    let tests = named_tests(text);
    let missing = tests.into_iter().filter(|test| !test.exists(root));
    missing
        .map(|test| format!("{DOCUMENT} names the test {} {}, which does not exist", test.binary, test.path))
        .collect()
}

struct NamedTest<'a> {
    /// The package; for an integration test followed by `::` and its folder below `tests`.
    binary: &'a str,
    path: &'a str,
}

/// The tests in code spans.
fn named_tests(text: &str) -> Vec<NamedTest<'_>> {
    let spans = text.split('`').skip(1).step_by(2);
    let named =
        spans.filter_map(|span| span.split_once(' ').map(|(binary, path)| NamedTest { binary, path }));
    let is_test = |test: &NamedTest<'_>| test.binary.contains("::") || test.path.contains("::");
    named.filter(|test| test.binary.starts_with("toolyard") && is_test(test)).collect()
}

impl NamedTest<'_> {
    /// Returns `true` if the file or module of the path has a function of that name.
    fn exists(&self, root: &Path) -> bool {
        let folder = match self.binary.split_once("::") {
            Some((package, binary)) => root.join("crates").join(package).join("tests").join(binary),
            None => root.join("crates").join(self.binary).join("src"),
        };
        let mut modules: Vec<&str> = self.path.split("::").collect();
        let Some(name) = modules.pop() else { return false };
        let Some((text, inline)) = innermost_file(&folder, &modules) else { return false };
        // A macro that generates modules takes their names as arguments.
        let is_inline = |module: &&str| {
            text.contains(&format!("mod {module} {{")) || text.contains(&format!("{module}: "))
        };
        text.contains(&format!("fn {name}(")) && inline.iter().all(is_inline)
    }
}

/// The file of the longest prefix of a module path that has one, with the remaining modules.
fn innermost_file<'a>(folder: &Path, modules: &'a [&'a str]) -> Option<(String, &'a [&'a str])> {
    (0..=modules.len()).rev().find_map(|length| {
        let (outer, inner) = modules.split_at(length);
        let module = folder.join(outer.iter().collect::<PathBuf>());
        let file = if outer.is_empty() { module.join("main.rs") } else { module.with_extension("rs") };
        fs::read_to_string(file).ok().map(|text| (text, inner))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_test_is_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("crates/toolyard-a/tests/it/keys.rs", "fn one() {}"),
            ("crates/toolyard-a/tests/it/deep.rs", "fn one() {}"),
            ("crates/toolyard-a/tests/it/main.rs", "mod keys;\nfn three() {}"),
            ("crates/toolyard-a/src/names.rs", "mod tests {\n    fn one() {}\n}"),
            ("crates/toolyard-a/src/names/tests.rs", "fn two() {}"),
            ("crates/toolyard-a/src/other.rs", "mod tests {\n    fn one() {}\n}"),
            ("crates/toolyard-a/src/made.rs", "make! {root: Root}\nfn one() {}"),
        ];
        for (file, text) in files {
            let file = folder.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let cases = [
            ("`toolyard-a::it keys::one`", true),
            ("`toolyard-a::it deep::one`", true),
            ("`toolyard-a::it keys::two`", false),
            ("`toolyard-a::it gone::one`", false),
            ("`toolyard-a::it three`", true),
            ("`toolyard-a::it gone::three`", false),
            ("`toolyard-a::it gone`", false),
            ("`toolyard-a::gone keys::one`", false),
            ("`toolyard-a names::tests::two`", true),
            ("`toolyard-a names::tests::one`", false),
            ("`toolyard-a other::tests::one`", true),
            ("`toolyard-a other::cases::one`", false),
            ("`toolyard-a made::root::one`", true),
            ("`toolyard-a made::user::one`", false),
            ("`toolyard key create` and `toolyard doctor` are no tests", true),
        ];
        for (text, exists) in cases {
            assert_eq!(missing(folder.path(), text).is_empty(), exists, "{text}");
        }
    }
}
