//! The commands in the README and in `docs` run as they are printed: [`toolyard_testing::pages`] has the rules.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;
use toolyard_testing::pages::{PageSession, PageStep, steps};
use toolyard_testing::peers;

/// Blocks that are not run, by their beginnings, and the reasons.
const NOT_RUN: [(&str, &str); 9] = [
    ("podman ", "needs the files of a release: the tests of `cargo xtask dist`"),
    ("npx --package ", "needs the files of a release: the tests of `cargo xtask dist`"),
    ("sudo TOOLYARD_STATE_DIR", "changes the machine: the tests of the packages"),
    ("cargo build ", "the build of the tests has built it"),
    ("cargo xtask ", "the suites themselves, which CI runs"),
    ("cargo run --release ", "a release build: CI builds the same program"),
    ("cargo install ", "a release build"),
    ("kubectl ", "needs a cluster: the tests of toolyard-operator"),
    ("sudo ", "changes the machine: the tests of the packages"),
];

/// Launchers that start the installed peers instead of a package of a registry.
const LAUNCHERS: [(&str, &str); 2] = [
    ("uvx", "#!/bin/sh\nexec \"$@\"\n"),
    (
        "npx",
        "#!/bin/sh\n[ \"$1\" = -y ] || { PATH=${PATH#*:}; exec npx \"$@\"; }\nexec \"mcp-${2#@modelcontextprotocol/}\"\n",
    ),
];

/// Runs the page of this path in an empty home.
#[track_caller]
fn check(page: &str) {
    let home = TempDir::new().unwrap();
    run(page, home.path(), home.path());
}

/// Runs the page of this path in a folder of a user.
#[track_caller]
fn run(page: &str, home: &Path, folder: &Path) {
    // The programs of the repository are built already.
    let target = Path::new(env!("CARGO_BIN_EXE_toolyard")).ancestors().nth(2).unwrap();
    std::os::unix::fs::symlink(target, folder.join("target")).unwrap();
    let launchers = TempDir::new().unwrap();
    for (name, script) in LAUNCHERS {
        let path = launchers.path().join(name);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_toolyard")).parent().unwrap();
    let folders = [launchers.path().to_owned(), program.to_owned()].into_iter();
    let path = std::env::join_paths(folders.chain(std::env::split_paths(&peers::search_path()))).unwrap();
    let shell = |script: &str| {
        let mut shell = peers::command("bash", home);
        shell.current_dir(folder).env("PATH", &path).args(["-c", script]);
        shell
    };
    PageSession::new(folder, &shell, &NOT_RUN).run(page);
}

/// Declares a test for each page with commands, and the list of these pages.
macro_rules! pages {
    ($($test:ident: $path:literal,)*) => {
        $(
            #[test]
            fn $test() {
                check($path);
            }
        )*

        const PAGES: &[&str] = &[$($path),*];
    };
}

pages! {
    readme: "README.md",
    index: "docs/index.md",
    install: "docs/install.md",
    upgrade: "docs/upgrade.md",
    editor_servers: "docs/start/editor-servers.md",
    api: "docs/start/api.md",
    team: "docs/start/team.md",
    python_tool: "docs/start/python-tool.md",
    rust_tool: "docs/start/rust-tool.md",
    arena: "docs/arena.md",
    benchmarks: "docs/benchmarks.md",
    console: "docs/console.md",
    functions: "docs/functions.md",
    kubernetes_scripts: "docs/kubernetes-scripts.md",
    manifest: "docs/manifest.md",
    rest_api: "docs/rest-api.md",
}

/// A new user's first hour: what one page leaves behind does not break the next.
#[test]
fn first_pages_share_a_home() {
    let home = TempDir::new().unwrap();
    for page in ["editor-servers", "api", "team", "python-tool", "rust-tool"] {
        let folder = home.path().join(page);
        std::fs::create_dir(&folder).unwrap();
        run(&format!("docs/start/{page}.md"), home.path(), &folder);
    }
}

#[test]
fn every_page_with_commands_is_run() {
    let root = peers::root();
    let mut pages = vec!["README.md".to_owned()];
    for folder in ["docs", "docs/start"] {
        let files = std::fs::read_dir(root.join(folder)).unwrap().flatten();
        pages.extend(files.map(|file| format!("{folder}/{}", file.file_name().to_str().unwrap())));
    }
    let has_commands = |path: &String| {
        path.ends_with(".md")
            && steps(&std::fs::read_to_string(root.join(path)).unwrap())
                .iter()
                .any(|step| matches!(step, PageStep::Commands(_)))
    };
    pages.retain(has_commands);
    pages.sort();
    let mut tested = PAGES.to_vec();
    tested.sort_unstable();
    assert_eq!(pages, tested);
}
