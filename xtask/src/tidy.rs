//! The machine-checkable rules of this repository. Those whose breach makes the product or its documentation worse run
//! as a test, too; matters of style are only reported.

mod documented_paths;
mod links;
mod named_tests;
mod plain_words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use xtask_support::process;

use self::links::LinkedDocuments;
use self::plain_words::TypeNames;

/// Dependencies that each package of the workspace may have. A package without an entry may have `toolyard-core` only:
/// siblings do not depend on each other; if one needs another's ability, the composition root adapts it.
const ALLOWED_EDGES: [(&str, &[&str]); 29] = [
    ("toolyard-core", &[]),
    (
        "toolyard-a2a",
        &["toolyard-agent", "toolyard-core", "toolyard-manifest", "toolyard-net", "toolyard-sdk"],
    ),
    ("toolyard-agent", &["toolyard-core", "toolyard-manifest", "toolyard-rank", "toolyard-sdk"]),
    ("toolyard-backends", &["toolyard-core", "toolyard-net", "toolyard-openapi"]),
    ("toolyard-bus", &["toolyard-core", "toolyard-manifest"]),
    (
        "toolyard-code",
        &[
            "toolyard-agent",
            "toolyard-core",
            "toolyard-functions",
            "toolyard-manifest",
            "toolyard-process",
            "toolyard-sandbox",
            "toolyard-sdk",
        ],
    ),
    ("toolyard-functions", &["toolyard-core", "toolyard-process", "toolyard-sandbox", "toolyard-store"]),
    ("toolyard-grpc", &["toolyard-backends", "toolyard-core", "toolyard-net"]),
    ("toolyard-mcp", &["toolyard-core", "toolyard-net", "toolyard-process"]),
    ("toolyard-operator", &["toolyard-core", "toolyard-manifest"]),
    ("toolyard-sandbox", &["toolyard-core", "toolyard-process"]),
    ("toolyard-schedule", &["toolyard-core", "toolyard-manifest", "toolyard-net", "toolyard-sdk"]),
    ("toolyard-sdk", &["toolyard-core", "toolyard-mcp", "toolyard-net", "toolyard-process"]),
    (
        "toolyard-server",
        &[
            "toolyard-a2a",
            "toolyard-agent",
            "toolyard-backends",
            "toolyard-bus",
            "toolyard-code",
            "toolyard-core",
            "toolyard-functions",
            "toolyard-grpc",
            "toolyard-manifest",
            "toolyard-mcp",
            "toolyard-net",
            "toolyard-openapi",
            "toolyard-operator",
            "toolyard-process",
            "toolyard-rank",
            "toolyard-sandbox",
            "toolyard-schedule",
            "toolyard-sdk",
            "toolyard-store",
            "toolyard-subagent",
            "toolyard-web",
            "toolyard-wisp",
        ],
    ),
    ("toolyard-subagent", &["toolyard-agent", "toolyard-core", "toolyard-net", "toolyard-sdk"]),
    (
        "toolyard-web",
        &["toolyard-agent", "toolyard-core", "toolyard-manifest", "toolyard-net", "toolyard-sdk"],
    ),
    ("toolyard-wisp", &["toolyard-agent", "toolyard-core", "toolyard-manifest", "toolyard-sdk"]),
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
    (TEST_SUPPORT, &["toolyard-core"]),
    ("xtask", &["xtask-support"]),
    ("xtask-arena", &["xtask-client", "xtask-support"]),
    ("xtask-bench", &["toolyard-testing", "xtask-client", "xtask-support"]),
    ("xtask-client", &[]),
    ("xtask-corpus", &["toolyard-core", "toolyard-openapi", "xtask-support"]),
    ("xtask-dist", &["xtask-support"]),
    ("xtask-matrix", &["xtask-support"]),
    ("xtask-pages", &["toolyard-web", "xtask-support"]),
    ("xtask-retrieval", &["toolyard-net", "toolyard-rank", "xtask-support"]),
    ("xtask-support", &[]),
];

/// Support for tests, which depends on the core alone, and which the tests of every package may use. The bench uses its
/// PostgreSQL.
const TEST_SUPPORT: &str = "toolyard-testing";

/// Maximum number of lines of a file; a longer one has more than one subject.
const MAX_FILE_LINES: usize = 500;

/// Markers of unfinished work, in halves, so that this file does not contain them.
const OPEN_WORK_MARKERS: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!"),
    concat!("unimpl", "emented!"),
];

/// Hosts of package registries. They are a setting of the machine that builds, not of the repository.
const REGISTRY_HOSTS: [&str; 7] = [
    concat!("registry.", "npmjs.org"),
    concat!("registry.", "yarnpkg.com"),
    concat!("pypi.", "org"),
    concat!("files.", "pythonhosted.org"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("deb.", "debian.org"),
];

/// The exception: the gateway has to know the index that pip uses by default.
const INDEX_CONFIG: &str = "crates/toolyard-sandbox/src/packages/config.rs";

pub(crate) fn run() -> anyhow::Result<()> {
    let texts = texts()?;
    let problems = [faults(&texts)?, style_problems(&texts)].concat();
    if problems.is_empty() {
        return Ok(());
    }
    bail!("the repository is not tidy:\n{}", problems.join("\n"))
}

/// Returns the breaches of rules that a change must keep.
fn faults(texts: &[(PathBuf, String)]) -> anyhow::Result<Vec<String>> {
    let mut faults = edge_problems(&metadata()?);
    let mut documents = LinkedDocuments::default();
    for (path, text) in texts {
        faults.extend(file_faults(path, text));
        let is_part = path.components().any(|part| part.as_os_str() == "src");
        if !is_part && path.extension().is_some_and(|extension| extension == "md") {
            documents.add(path, text);
        }
    }
    faults.extend(documents.problems(xtask_support::root()));
    faults.extend(documented_paths::problems(xtask_support::root()));
    faults.extend(named_tests::problems(xtask_support::root()));
    Ok(faults)
}

/// Returns the breaches of style, which two changes can cause that each keep it.
fn style_problems(texts: &[(PathBuf, String)]) -> Vec<String> {
    let (mut problems, mut type_names) = (Vec::new(), TypeNames::default());
    for (path, text) in texts.iter().filter(|(path, _)| is_rust(path)) {
        problems.extend(plain_words::problems(path, text));
        problems.extend(length_problem(path, text));
        if is_source(path) {
            type_names.add(path, text);
        }
    }
    problems.extend(type_names.problems());
    problems
}

/// Reads all files. One in git's index may be deleted, and a binary one has no lines.
fn texts() -> anyhow::Result<Vec<(PathBuf, String)>> {
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(xtask_support::root().join(&path)).ok()?;
        Some((path, text))
    };
    Ok(files()?.into_iter().filter_map(read).collect())
}

/// Committed files, and new files that are not ignored.
fn files() -> anyhow::Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .current_dir(xtask_support::root())
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("start git")?;
    ensure!(
        output.status.success(),
        "git cannot list the files: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let names = String::from_utf8(output.stdout).context("file name is not UTF-8")?;
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

fn edge_problems(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let is_ours = |name: &str| packages.iter().any(|package| package["name"] == name);
    let allowed = BTreeMap::from(ALLOWED_EDGES);
    let mut problems = Vec::new();
    for package in packages {
        let from = package["name"].as_str().unwrap_or_default();
        let allowed = allowed.get(from).copied().unwrap_or(&["toolyard-core"]);
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = dependency["name"].as_str().unwrap_or_default();
            let is_test_support = to == TEST_SUPPORT && dependency["kind"] == "dev";
            if is_ours(to) && !allowed.contains(&to) && !is_test_support {
                problems.push(format!("{from} must not depend on {to}"));
            }
        }
    }
    problems
}

fn file_faults(path: &Path, text: &str) -> Vec<String> {
    let markers = if is_rust(path) { occurrences(path, text, &OPEN_WORK_MARKERS) } else { Vec::new() };
    let hosts =
        if path == Path::new(INDEX_CONFIG) { Vec::new() } else { occurrences(path, text, &REGISTRY_HOSTS) };
    [markers, hosts].concat()
}

fn length_problem(path: &Path, text: &str) -> Option<String> {
    let lines = text.lines().count();
    let is_long = lines > MAX_FILE_LINES && !is_test(path);
    is_long.then(|| format!("{} has {lines} lines, more than {MAX_FILE_LINES}", path.display()))
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// Returns `true` for the sources of the workspace's packages: examples and foreign peers name types as they like.
fn is_source(path: &Path) -> bool {
    let is_package = ["crates", "tools", "xtask"].iter().any(|folder| path.starts_with(folder));
    is_rust(path) && is_package && !is_test(path) && path.components().any(|part| part.as_os_str() == "src")
}

/// Tests may be as long as their cases require.
fn is_test(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

fn occurrences(path: &Path, text: &str, words: &[&str]) -> Vec<String> {
    let mut matches = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for word in words.iter().filter(|word| line.contains(**word)) {
            matches.push(format!("{}:{number} contains {word}", path.display()));
        }
    }
    matches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_has_no_fault() {
        assert_eq!(faults(&texts().unwrap()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn dependency_on_a_sibling_is_a_problem() {
        let package = |name: &str, dependency: &str| serde_json::json!({ "name": name, "dependencies": [{ "name": dependency }] });
        let metadata = serde_json::json!({ "packages": [
            package("toolyard-core", "serde"),
            package("toolyard-net", "toolyard-core"),
            package("toolyard-process", "toolyard-net"),
            package("toolyard-mcp", "toolyard-net"),
        ]});
        assert_eq!(edge_problems(&metadata), ["toolyard-process must not depend on toolyard-net"]);
    }

    #[test]
    fn test_support_is_for_tests_only() {
        let package = |name: &str, kind: Option<&str>| serde_json::json!({ "name": name, "dependencies": [{ "name": TEST_SUPPORT, "kind": kind }] });
        let metadata = serde_json::json!({ "packages": [
            { "name": TEST_SUPPORT, "dependencies": [] },
            package("toolyard-core", Some("dev")),
            package("toolyard-net", None),
            package("toolyard-store", Some("build")),
        ]});
        assert_eq!(
            edge_problems(&metadata),
            [
                "toolyard-net must not depend on toolyard-testing",
                "toolyard-store must not depend on toolyard-testing"
            ]
        );
    }

    #[test]
    fn long_files_are_for_tests_only() {
        let text = "\n".repeat(MAX_FILE_LINES + 1);
        assert!(length_problem(Path::new("src/lib.rs"), &text).is_some());
        assert!(length_problem(Path::new("tests/all.rs"), &text).is_none());
        assert!(length_problem(Path::new("src/json/tests.rs"), &text).is_none());
    }

    #[test]
    fn markers_are_found_in_rust_files_and_hosts_in_all_files() {
        let text = format!("one\n{} // {}", OPEN_WORK_MARKERS[0], REGISTRY_HOSTS[0]);
        assert_eq!(
            file_faults(Path::new("src/lib.rs"), &text),
            [
                format!("src/lib.rs:2 contains {}", OPEN_WORK_MARKERS[0]),
                format!("src/lib.rs:2 contains {}", REGISTRY_HOSTS[0])
            ]
        );
        assert_eq!(file_faults(Path::new("README.md"), &text).len(), 1);
    }
}
