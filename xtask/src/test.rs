//! `cargo xtask test`, the README's second command, and `cargo xtask test --rest`.
//!
//! The first is for everyone: it needs under 20 minutes on a machine that has nothing but a Rust toolchain. The second
//! has the suites whose peer is compiled from source (the API server of Kubernetes) or that run for minutes by
//! design (fuzzing, the arena, roots of Debian for the files of a release, counting instructions). `.ci/run` calls both.

use std::ffi::OsStr;
use std::process::Command;

use xtask_support::builds::sibling_program;
use xtask_support::peers::PeerSoftware;
use xtask_support::process;

use crate::conformance::{self, ConformanceSubject};
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

/// Arguments of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct XtaskTestArgs {
    /// Run only the suites that the plain command leaves out: Kubernetes, roots of Debian, fuzzing, the arena, and the
    /// instructions of a call
    #[arg(long)]
    rest: bool,
}

/// Runs the stages, and prints their times even if one of them fails.
pub(crate) fn run(args: &XtaskTestArgs) -> anyhow::Result<()> {
    let mut stages = if args.rest { StageTimes::new(8) } else { StageTimes::new(12) };
    let outcome = if args.rest { run_rest(&mut stages) } else { run_main(&mut stages) };
    println!("\n{stages}");
    outcome
}

fn run_main(stages: &mut StageTimes) -> anyhow::Result<()> {
    let peers = prepare(stages, KubernetesApiServer::Skip)?;
    stages.run("tests", || {
        let outcome = nextest(&peers, &format!("not ({CLUSTER_TESTS}) and not ({DEBIAN_TESTS})"));
        let printed = slowest_tests::print(SLOWEST);
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
        ParallelStage { name: "conformance of the gateway", run: &conformance(ConformanceSubject::Gateway) },
        ParallelStage { name: "conformance of the SDK", run: &conformance(ConformanceSubject::Sdk) },
        ParallelStage { name: "conformance of other SDKs", run: &conformance(ConformanceSubject::Foreign) },
        ParallelStage { name: "conformance of the client", run: &conformance(ConformanceSubject::Client) },
    ])
}

fn run_rest(stages: &mut StageTimes) -> anyhow::Result<()> {
    let peers = prepare(stages, KubernetesApiServer::Install)?;
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
fn prepare(stages: &mut StageTimes, kubernetes: KubernetesApiServer) -> anyhow::Result<PeerSoftware> {
    stages.run("system packages", system::install)?;
    let peers = stages.run("peers", || peers::prepare(kubernetes))?;
    stages.run("build", || process::run(cargo(&peers).args(["build", "--workspace", "--all-targets"])))?;
    Ok(peers)
}

fn nextest(peers: &PeerSoftware, filter: &str) -> anyhow::Result<()> {
    // One run names every failing test.
    let arguments = ["nextest", "run", "--workspace", "--no-fail-fast", "--filterset", filter];
    // The output of a failed test ends with its message, not with a backtrace.
    process::run(cargo(peers).args(arguments).env("RUST_BACKTRACE", "0"))
}

/// Returns a cargo whose tests find the peers.
fn cargo(peers: &PeerSoftware) -> Command {
    let mut cargo = process::cargo();
    cargo.env("TOOLYARD_PEERS", peers.folder());
    cargo
}
