//! `cargo xtask test`, the README's second command, and `cargo xtask test --full`.
//!
//! The first is the gate's: `.ci/run` calls it, and it needs nothing but a Rust toolchain and a few system packages. The
//! second has everything: foreign servers and clients, conformance, the API server of Kubernetes, roots of Debian,
//! fuzzing, the arena, and the instructions of a call.

use std::ffi::OsStr;
use std::process::Command;

use xtask_support::builds::sibling_program;
use xtask_support::peers::PeerSoftware;
use xtask_support::process;

use crate::conformance::{self, ConformanceSubject};
use crate::console;
use crate::fuzz;

use crate::peers::{self, KubernetesApiServer};
use crate::slowest_tests;
use crate::stages::{ParallelStage, StageTimes};
use crate::system;
use crate::tool::XtaskTool;

/// Selects the tests that start an API server of Kubernetes, in nextest's filter language.
const CLUSTER_TESTS: &str = "package(toolyard-operator) & test(cluster::)";

/// Selects the tests of release files that make a root of Debian from its packages.
const DEBIAN_TESTS: &str = "package(xtask-dist) & test(debian_root::)";

/// Number of tests that are printed as the slowest of a run.
const SLOWEST: usize = 20;

/// The packages that the gate leaves unbuilt: their tests need foreign software.
const NOT_IN_GATE: [&str; 2] = ["toolyard", "xtask-*"];

/// Arguments of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct XtaskTestArgs {
    /// Run everything, with the foreign software that it needs: more than an hour
    #[arg(long)]
    full: bool,
}

/// Runs the stages, and prints their times even if one of them fails.
pub(crate) fn run(args: &XtaskTestArgs) -> anyhow::Result<()> {
    let mut stages = if args.full { StageTimes::new(18) } else { StageTimes::new(2) };
    let outcome = if args.full { run_full(&mut stages) } else { run_gate(&mut stages) };
    println!("\n{stages}");
    outcome
}

/// Runs what `.ci/run` requires of every change.
fn run_gate(stages: &mut StageTimes) -> anyhow::Result<()> {
    stages.run("system packages", system::install_for_gate)?;
    stages.run("tests", || {
        let mut cargo = process::cargo();
        cargo.args(["nextest", "run", "--locked", "--profile", "gate", "--workspace", "--all-features"]);
        for package in NOT_IN_GATE {
            cargo.args(["--exclude", package]);
        }
        let outcome = process::run(cargo.env("RUST_BACKTRACE", "0"));
        outcome.and(slowest_tests::print("gate", SLOWEST))
    })
}

fn run_full(stages: &mut StageTimes) -> anyhow::Result<()> {
    let peers = prepare(stages)?;
    stages.run("tests", || {
        let outcome = nextest(&peers, &format!("not ({CLUSTER_TESTS}) and not ({DEBIAN_TESTS})"));
        let printed = slowest_tests::print("full", SLOWEST);
        outcome.and(printed)
    })?;
    stages.run("doc tests", || process::run(cargo(&peers).args(["test", "--doc", "--workspace"])))?;
    // Some of these wait for other programs most of the time, others keep one processor busy. The system chooses all
    // ports, and the time limits hold on a machine with several times this load.
    let conformance = |subject| move || conformance::check(subject);
    let matrix = || XtaskTool::Matrix.check(&["--check"]).map(|()| String::new());
    stages.run_parallel(&[
        ParallelStage { name: "OpenAPI corpus", run: &|| XtaskTool::Corpus.output() },
        ParallelStage { name: "retrieval", run: &|| XtaskTool::Retrieval.output() },
        ParallelStage { name: "feature matrix", run: &matrix },
        ParallelStage { name: "console in a browser", run: &console::check },
        ParallelStage { name: "conformance of the gateway", run: &conformance(ConformanceSubject::Gateway) },
        ParallelStage { name: "conformance of the SDK", run: &conformance(ConformanceSubject::Sdk) },
        ParallelStage { name: "conformance of other SDKs", run: &conformance(ConformanceSubject::Foreign) },
        ParallelStage { name: "conformance of the client", run: &conformance(ConformanceSubject::Client) },
    ])?;
    stages.run("tests with Kubernetes", || nextest(&peers, CLUSTER_TESTS))?;
    stages.run("release files", || nextest(&peers, DEBIAN_TESTS))?;
    stages.run("fuzzing", fuzz::check)?;
    stages.run("arena", arena)?;
    stages.run("instructions", instructions)
}

/// Compares the instructions and allocations of a call with the recorded ones, with the programs of the latest build.
fn instructions() -> anyhow::Result<()> {
    let (gateway, sdk) = (sibling_program("toolyard")?, sibling_program("examples/bench_echo")?);
    let words = ["--only", "instructions", "--check", "--gateway"].map(OsStr::new);
    let programs = [gateway.as_os_str(), OsStr::new("--sdk-echo"), sdk.as_os_str()];
    XtaskTool::Bench.check(&[&words[..], &programs].concat())
}

/// Runs all scenarios of the arena for a short time, with the gateway of the latest build.
fn arena() -> anyhow::Result<()> {
    let gateway = sibling_program("toolyard")?;
    let size = ["--short", "--calls", "100", "--seconds", "2", "--gateway"].map(OsStr::new);
    XtaskTool::Arena.check(&[&size[..], &[gateway.as_os_str()]].concat())
}

/// Installs what the machine lacks, and builds the workspace.
fn prepare(stages: &mut StageTimes) -> anyhow::Result<PeerSoftware> {
    stages.run("system packages", system::install)?;
    let peers = stages.run("peers", || peers::prepare(KubernetesApiServer::Install))?;
    stages.run("build", || process::run(cargo(&peers).args(["build", "--workspace", "--all-targets"])))?;
    Ok(peers)
}

fn nextest(peers: &PeerSoftware, filter: &str) -> anyhow::Result<()> {
    // One run names every failing test.
    let arguments =
        ["nextest", "run", "--profile", "full", "--workspace", "--no-fail-fast", "--filterset", filter];
    // The output of a failed test ends with its message, not with a backtrace.
    process::run(cargo(peers).args(arguments).env("RUST_BACKTRACE", "0"))
}

/// Returns a cargo whose tests find the peers.
fn cargo(peers: &PeerSoftware) -> Command {
    let mut cargo = process::cargo();
    cargo.env("TOOLYARD_PEERS", peers.folder());
    cargo
}
