//! `cargo xtask test`, the README's second command, and `cargo xtask test --full`.
//!
//! The first is the gate's: `.ci/run` calls it, and it needs nothing but a Rust toolchain and a few system packages. The
//! second runs suites with foreign servers and clients, brokers, an API server of Kubernetes or a browser ([`suites`]).

mod preparation;
mod suites;

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZero;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use xtask_support::process;

use self::preparation::PreparedMachine;
use self::suites::{SUITES, SuiteRun, TestSuite};
use crate::conformance;
use crate::slowest_tests;
use crate::system;

/// Number of tests that are printed as the slowest of a run.
const SLOWEST: usize = 20;

/// The packages that the gate leaves unbuilt: tools of developers, which need corpora and foreign software.
const NOT_IN_GATE: [&str; 1] = ["xtask-*"];

/// Arguments of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct XtaskTestArgs {
    /// Run the suites that every change need not pass: those named, or all, for more than an hour
    #[arg(long)]
    full: bool,
    /// Suites to run [default: all]
    #[arg(requires = "full", value_name = "SUITE", value_parser = suite_names())]
    suites: Vec<String>,
    /// Run only the suites that the changes since `main` concern
    #[arg(long, requires = "full")]
    changed: bool,
    /// Print the suites, and run nothing
    #[arg(long, requires = "full")]
    list: bool,
}

fn suite_names() -> clap::builder::PossibleValuesParser {
    SUITES.iter().map(|suite| suite.name).collect::<Vec<_>>().into()
}

/// Runs the gate's tests or suites.
pub(crate) fn run(args: &XtaskTestArgs) -> anyhow::Result<()> {
    if !args.full {
        return run_gate();
    }
    let changed = if args.changed { Some(changed_paths()?) } else { None };
    let is_selected = |suite: &&TestSuite| {
        let is_named = args.suites.is_empty() || args.suites.iter().any(|name| name == suite.name);
        is_named && changed.as_ref().is_none_or(|paths| suite.is_concerned(paths))
    };
    let selected: Vec<_> = SUITES.iter().filter(is_selected).collect();
    if args.list {
        selected.iter().for_each(|suite| println!("{}", suite.name));
        return Ok(());
    }
    run_suites(&selected)
}

/// Runs what `.ci/run` requires of every change.
fn run_gate() -> anyhow::Result<()> {
    system::install_for_gate()?;
    // Tests start these. Selected by name as below, examples would be built as test programs only.
    process::run(gate_cargo(&["build"]).args([
        "--bins",
        "--example",
        "reverse",
        "--example",
        "conformance",
    ]))?;
    // The other test programs, such as those of `tests/full`, are not even built.
    let mut tests = gate_cargo(&["nextest", "run", "--profile", "gate"]);
    tests.args(["--lib", "--bins", "--test", "it"]);
    // A quarter of the time is spent on waiting.
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get) + 1;
    tests.args(["--test-threads", &threads.to_string()]);
    let outcome = process::run(tests.env("RUST_BACKTRACE", "0"));
    outcome.and(slowest_tests::print("gate", SLOWEST))?;
    conformance::run_in_gate()
}

/// Returns a command of cargo for the packages of the gate.
fn gate_cargo(command: &[&str]) -> Command {
    let mut cargo = process::cargo();
    cargo.args(command).args(["--locked", "--workspace", "--all-features"]);
    for package in NOT_IN_GATE {
        cargo.args(["--exclude", package]);
    }
    cargo
}

/// Runs suites one after the other, and prints a table of them. A failing suite stops no other.
fn run_suites(suites: &[&TestSuite]) -> anyhow::Result<()> {
    let mut machine = PreparedMachine::default();
    let mut ends = Vec::new();
    for suite in suites {
        println!("\n==> {} ({} of {})", suite.name, ends.len() + 1, suites.len());
        let prepared = machine.prepare(suite.needs).context("the preparation failed");
        let start = Instant::now();
        let outcome = prepared.and_then(|()| suite.run(&machine));
        if let Err(error) = &outcome {
            println!("==> {} failed: {error:#}", suite.name);
        }
        ends.push(SuiteEnd { name: suite.name, failed: outcome.is_err(), time: start.elapsed() });
    }
    println!();
    ends.iter().for_each(|end| println!("{end}"));
    let failed: Vec<_> = ends.iter().filter(|end| end.failed).map(|end| end.name).collect();
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// A suite that has run.
struct SuiteEnd {
    name: &'static str,
    failed: bool,
    time: Duration,
}

impl fmt::Display for SuiteEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = if self.failed { "FAILED" } else { "passed" };
        write!(f, "{:<22}{result:<8}{:>8.1} s", self.name, self.time.as_secs_f64())
    }
}

impl TestSuite {
    fn run(&self, machine: &PreparedMachine) -> anyhow::Result<()> {
        match self.run {
            SuiteRun::Tests(filter) => machine.nextest(filter),
            SuiteRun::Command(run) => run(machine),
        }
    }

    fn is_concerned(&self, paths: &BTreeSet<String>) -> bool {
        paths.iter().any(|path| self.paths.iter().any(|prefix| path.starts_with(prefix)))
    }
}

/// Returns the paths that differ from `main`, committed or not.
fn changed_paths() -> anyhow::Result<BTreeSet<String>> {
    let mut git = Command::new("git");
    let output = git.current_dir(xtask_support::root()).args(["diff", "--name-only", "main"]).output();
    let output = output.context("start git")?;
    ensure!(output.status.success(), "git: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_concern_the_suites_of_their_paths() {
        let check = |path: &str, expected: &[&str]| {
            let paths = BTreeSet::from([path.to_owned()]);
            let suites = SUITES.iter().filter(|suite| suite.is_concerned(&paths)).map(|suite| suite.name);
            assert_eq!(suites.collect::<Vec<_>>(), expected, "{path}");
        };
        check("crates/toolyard-rank/src/search.rs", &["retrieval"]);
        check("crates/toolyard-bus/src/lib.rs", &["brokers"]);
        check("crates/toolyard-sandbox/src/confine.rs", &["sandbox"]);
        check("console/src/app.tsx", &["browser"]);
        check("LICENSE", &[]);
    }

    #[test]
    fn suites_have_different_names() {
        let names: BTreeSet<_> = SUITES.iter().map(|suite| suite.name).collect();
        assert_eq!(names.len(), SUITES.len());
    }

    #[test]
    fn paths_of_suites_exist() {
        let paths = SUITES.iter().flat_map(|suite| suite.paths);
        let missing: Vec<_> = paths.filter(|path| !xtask_support::root().join(path).exists()).collect();
        assert_eq!(missing, Vec::<&&str>::new());
    }
}
