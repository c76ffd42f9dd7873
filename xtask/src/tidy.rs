//! The rules of this repository that a machine can check. They run as a test, too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::process;

/// Which packages of the workspace a package may name. One that is not listed may name `toolyard-core` alone:
/// siblings never name each other, and where one needs another's ability, the composition root adapts.
const ALLOWED_EDGES: [(&str, &[&str]); 11] = [
    ("toolyard-core", &[]),
    ("toolyard-agent", &["toolyard-core", "toolyard-rank", "toolyard-sdk"]),
    ("toolyard-backends", &["toolyard-core", "toolyard-net", "toolyard-openapi"]),
    ("toolyard-functions", &["toolyard-core", "toolyard-process", "toolyard-sandbox", "toolyard-store"]),
    ("toolyard-mcp", &["toolyard-core", "toolyard-net", "toolyard-process"]),
    ("toolyard-rank", &[]),
    ("toolyard-sandbox", &["toolyard-core", "toolyard-process"]),
    ("toolyard-sdk", &["toolyard-core", "toolyard-mcp", "toolyard-net", "toolyard-process"]),
    (
        "toolyard-server",
        &[
            "toolyard-agent",
            "toolyard-backends",
            "toolyard-core",
            "toolyard-functions",
            "toolyard-manifest",
            "toolyard-mcp",
            "toolyard-net",
            "toolyard-openapi",
            "toolyard-operator",
            "toolyard-process",
            "toolyard-sandbox",
            "toolyard-sdk",
            "toolyard-store",
        ],
    ),
    (
        "toolyard",
        &[
            "toolyard-agent",
            "toolyard-backends",
            "toolyard-core",
            "toolyard-functions",
            "toolyard-manifest",
            "toolyard-mcp",
            "toolyard-net",
            "toolyard-openapi",
            "toolyard-process",
            "toolyard-sandbox",
            "toolyard-sdk",
            "toolyard-server",
            "toolyard-store",
        ],
    ),
    ("xtask", &["toolyard-openapi", "toolyard-rank"]),
];

/// A file that is longer has more than one subject.
const LONGEST_FILE: usize = 500;

/// Work that was put off. In halves, so that this file does not find itself.
const LEFT_OPEN: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!"),
    concat!("unimpl", "emented!"),
];

/// Where packages come from is the concern of the machine that builds, never of the repository.
const REGISTRY_HOSTS: [&str; 7] = [
    concat!("registry.", "npmjs.org"),
    concat!("registry.", "yarnpkg.com"),
    concat!("pypi.", "org"),
    concat!("files.", "pythonhosted.org"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("deb.", "debian.org"),
];

pub(crate) fn run() -> anyhow::Result<()> {
    let problems = problems()?;
    if problems.is_empty() {
        return Ok(());
    }
    bail!("the repository is not tidy:\n{}", problems.join("\n"))
}

fn problems() -> anyhow::Result<Vec<String>> {
    let mut problems = edges(&metadata()?);
    for path in files()? {
        // A file that git still lists may be gone, and a binary one has no lines.
        if let Ok(text) = std::fs::read_to_string(crate::root().join(&path)) {
            problems.extend(file(&path, &text));
        }
    }
    Ok(problems)
}

/// What is committed, and what would be.
fn files() -> anyhow::Result<Vec<PathBuf>> {
    let listed = Command::new("git")
        .current_dir(crate::root())
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("start git")?;
    ensure!(
        listed.status.success(),
        "git did not list the files: {}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let names = String::from_utf8(listed.stdout).context("a file's name is not UTF-8")?;
    Ok(names.split_terminator('\0').map(PathBuf::from).collect())
}

fn metadata() -> anyhow::Result<Value> {
    let output = process::cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("start cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("read cargo metadata")
}

fn edges(metadata: &Value) -> Vec<String> {
    let names = |of: &Value| -> Vec<String> {
        let items = of.as_array().into_iter().flatten();
        items.filter_map(|item| item["name"].as_str().map(str::to_owned)).collect()
    };
    let ours = names(&metadata["packages"]);
    let allowed = BTreeMap::from(ALLOWED_EDGES);
    let mut problems = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let from = package["name"].as_str().unwrap_or_default();
        let allowed = allowed.get(from).copied().unwrap_or(&["toolyard-core"]);
        for to in names(&package["dependencies"]) {
            if ours.contains(&to) && !allowed.contains(&to.as_str()) {
                problems.push(format!("{from} names {to} in its Cargo.toml"));
            }
        }
    }
    problems
}

fn file(path: &Path, text: &str) -> Vec<String> {
    let shown = path.display();
    let mut problems = Vec::new();
    if path.extension().is_some_and(|extension| extension == "rs") {
        let lines = text.lines().count();
        if lines > LONGEST_FILE && !is_test(path) {
            problems.push(format!("{shown} has {lines} lines, more than {LONGEST_FILE}"));
        }
        problems.extend(found(path, text, &LEFT_OPEN));
    }
    problems.extend(found(path, text, &REGISTRY_HOSTS));
    problems
}

/// Tests may be as long as what they list.
fn is_test(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

fn found(path: &Path, text: &str, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for word in words.iter().filter(|word| line.contains(**word)) {
            found.push(format!("{}:{number} says {word}", path.display()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        assert_eq!(problems().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn siblings_may_not_name_each_other() {
        let package = |name: &str, dependency: &str| serde_json::json!({ "name": name, "dependencies": [{ "name": dependency }] });
        let metadata = serde_json::json!({ "packages": [
            package("toolyard-core", "serde"),
            package("toolyard-net", "toolyard-core"),
            package("toolyard-process", "toolyard-net"),
            package("toolyard-mcp", "toolyard-net"),
        ]});
        assert_eq!(edges(&metadata), ["toolyard-process names toolyard-net in its Cargo.toml"]);
    }

    #[test]
    fn long_files_are_for_tests_only() {
        let text = "\n".repeat(LONGEST_FILE + 1);
        assert_eq!(file(Path::new("src/lib.rs"), &text).len(), 1);
        assert!(file(Path::new("tests/all.rs"), &text).is_empty());
        assert!(file(Path::new("src/json/tests.rs"), &text).is_empty());
    }

    #[test]
    fn what_was_left_open_is_found_in_rust_and_hosts_everywhere() {
        let text = format!("one\n{} // {}", LEFT_OPEN[0], REGISTRY_HOSTS[0]);
        assert_eq!(
            file(Path::new("src/lib.rs"), &text),
            [
                format!("src/lib.rs:2 says {}", LEFT_OPEN[0]),
                format!("src/lib.rs:2 says {}", REGISTRY_HOSTS[0])
            ]
        );
        assert_eq!(file(Path::new("README.md"), &text).len(), 1);
    }
}
