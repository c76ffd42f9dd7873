//! The suites of the second tier, `cargo xtask test --full`: each is one entry of [`SUITES`].

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use xtask_support::builds::sibling_program;
use xtask_support::process;

use super::preparation::PreparedMachine;
use crate::conformance::{self, ConformanceSubject};
use crate::tool::XtaskTool;
use crate::{book, console, fuzz};

/// A suite. It runs alone, and takes ten minutes at most on two processors, without its preparation.
pub(super) struct TestSuite {
    pub(super) name: &'static str,
    /// Paths in the repository, as prefixes, whose changes concern the suite.
    pub(super) paths: &'static [&'static str],
    pub(super) needs: SuiteNeeds,
    pub(super) run: SuiteRun,
}

/// Preparations for a suite. Each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SuiteNeeds {
    /// Nothing but cargo.
    Cargo,
    /// The packages of the system.
    System,
    /// Servers and clients from npm, PyPI and Debian, and a build of the workspace.
    Peers,
    /// The API server of Kubernetes.
    Kubernetes,
}

/// The work of a suite.
pub(super) enum SuiteRun {
    /// The tests that a filter of nextest selects.
    Tests(&'static str),
    /// A command.
    Command(fn(&PreparedMachine) -> anyhow::Result<()>),
}

use SuiteNeeds::{Cargo, Kubernetes, Peers, System};
use SuiteRun::{Command as Run, Tests};

/// Paths of the gateway itself.
const GATEWAY: &[&str] =
    &["crates/toolyard/", "crates/toolyard-server/", "crates/toolyard-mcp/", "crates/toolyard-core/"];

/// All suites, in the order in which they run.
#[rustfmt::skip]
pub(super) const SUITES: &[TestSuite] = &[
    TestSuite { name: "binary", paths: GATEWAY, needs: Peers, run: Tests(
        "package(toolyard) & not (test(/^(documentation|bus|bus_kills|bus_large_results|bus_processes|openapi|schemathesis|rest_clients|real_servers|eras|faulty_servers|outbound|troubleshooting|web|functions|sdk_examples|dedicated_connections|memory_owners|fastmcp_results|large_results|widgets)::/))") },
    TestSuite { name: "peers", paths: GATEWAY, needs: Peers, run: Tests(
        "package(toolyard) & test(/^(real_servers|eras|faulty_servers|outbound|troubleshooting|fastmcp_results|widgets)::/)") },
    TestSuite { name: "clients", paths: GATEWAY, needs: Peers, run: Tests(
        "package(toolyard) & test(/^(dedicated_connections|memory_owners|large_results|rest_clients)::/)") },
    TestSuite { name: "server", paths: &["crates/toolyard-server/", "crates/toolyard-net/"], needs: Peers, run: Tests(
        "package(toolyard-server) & test(/^(recovery|clusters|load|floods|budget|grpc)::|_python_|::python_|postgresql|^a2a::(agents_are_found|running_task|task_of_an_agent)/)") },
    TestSuite { name: "sdk", paths: &["crates/toolyard-sdk/"], needs: Peers, run: Tests(
        "package(toolyard-sdk) & test(/^ui::/) | package(toolyard) & test(/^sdk_examples::/)") },
    TestSuite { name: "openapi", paths: &["crates/toolyard-openapi/", "crates/toolyard-backends/", "schema/"], needs: Peers, run: Tests(
        "package(toolyard) & test(/^(openapi|schemathesis)::/)") },
    TestSuite { name: "grpc", paths: &["crates/toolyard-grpc/"], needs: Peers, run: Tests(
        "package(toolyard-grpc) & kind(test) | package(toolyard-server) & test(/^grpc::/)") },
    TestSuite { name: "sandbox", paths: &["crates/toolyard-sandbox/", "crates/toolyard-process/"], needs: Peers, run: Tests(
        "package(toolyard-sandbox) & kind(test)") },
    TestSuite { name: "functions", paths: &["crates/toolyard-functions/", "crates/toolyard-code/"], needs: Peers, run: Tests(
        "package(toolyard-functions) & kind(test) | package(toolyard) & test(/^functions::/)") },
    TestSuite { name: "store", paths: &["crates/toolyard-store/", "crates/toolyard-server/src/keys"], needs: Peers, run: Tests(
        "package(toolyard-store) & kind(test) | package(toolyard-server) & test(/postgresql|^clusters::/)") },
    TestSuite { name: "brokers", paths: &["crates/toolyard-bus/", "crates/toolyard-server/src/bus"], needs: Peers, run: Tests(
        "package(toolyard-bus) & kind(test) | package(toolyard-server) & test(/^(a2a_bus|bus)::/) | package(toolyard) & test(/^(bus|bus_kills|bus_large_results|bus_processes)::/)") },
    TestSuite { name: "web", paths: &["crates/toolyard-web/"], needs: Peers, run: Tests("package(toolyard) & test(/^web::/)") },
    TestSuite { name: "operator", paths: &["crates/toolyard-operator/", "deploy/"], needs: Peers, run: Tests(
        "package(toolyard-operator) & kind(test) & not test(/^cluster::/)") },
    TestSuite { name: "cluster", paths: &["crates/toolyard-operator/", "deploy/"], needs: Kubernetes, run: Tests(
        "package(toolyard-operator) & test(/^cluster::/)") },
    TestSuite { name: "docs", paths: &["docs/", "README.md", "examples/"], needs: Peers, run: Tests(
        "package(toolyard) & test(/^documentation::/)") },
    TestSuite { name: "tools", paths: &["tools/", "xtask/"], needs: Peers, run: Tests("package(/^xtask-/) - package(xtask-dist)") },
    TestSuite { name: "dist", paths: &["tools/dist/"], needs: Peers, run: Tests("package(xtask-dist) & not test(/^debian_root::/)") },
    TestSuite { name: "debian", paths: &["tools/dist/"], needs: Peers, run: Tests("package(xtask-dist) & test(/^debian_root::/)") },
    TestSuite { name: "tiers", paths: &[".config/", "xtask/src/test/"], needs: Peers, run: Run(tiers) },
    TestSuite { name: "doc-tests", paths: &["crates/toolyard-sdk/", "crates/toolyard-core/"], needs: Peers, run: Run(doc_tests) },
    TestSuite { name: "corpus", paths: &["crates/toolyard-openapi/"], needs: Peers, run: Run(|_| XtaskTool::Corpus.check::<&str>(&[])) },
    TestSuite { name: "retrieval", paths: &["crates/toolyard-rank/"], needs: Peers, run: Run(|_| XtaskTool::Retrieval.check::<&str>(&[])) },
    TestSuite { name: "pages", paths: &["crates/toolyard-web/src/page"], needs: Peers, run: Run(|_| XtaskTool::Pages.check::<&str>(&[])) },
    TestSuite { name: "matrix", paths: &["crates/toolyard-mcp/"], needs: Peers, run: Run(|_| XtaskTool::Matrix.check(&["--check"])) },
    TestSuite { name: "conformance", paths: &["crates/toolyard-mcp/"], needs: Peers, run: Run(|_| conforms(ConformanceSubject::Gateway)) },
    TestSuite { name: "conformance-sdk", paths: &["crates/toolyard-sdk/"], needs: Peers, run: Run(|_| conforms(ConformanceSubject::Sdk)) },
    TestSuite { name: "conformance-client", paths: &["crates/toolyard-mcp/src/client"], needs: Peers, run: Run(|_| conforms(ConformanceSubject::Client)) },
    TestSuite { name: "conformance-foreign", paths: &["crates/toolyard-mcp/"], needs: Peers, run: Run(|_| conforms(ConformanceSubject::Foreign)) },
    TestSuite { name: "browser", paths: &["console/", "crates/toolyard-server/src/frontends"], needs: Peers, run: Run(browser) },
    TestSuite { name: "fuzz", paths: &["fuzz/"], needs: System, run: Run(|_| fuzz::check()) },
    TestSuite { name: "arena", paths: &["tools/arena/"], needs: Peers, run: Run(|_| arena()) },
    TestSuite { name: "instructions", paths: &["tools/bench/"], needs: Peers, run: Run(|_| instructions()) },
    TestSuite { name: "book", paths: &["docs/"], needs: Cargo, run: Run(|_| book()) },
    TestSuite { name: "packages", paths: &["crates/toolyard-sdk/Cargo.toml"], needs: Cargo, run: Run(|_| packages()) },
    TestSuite { name: "licences", paths: &["Cargo.lock", "deny.toml"], needs: Cargo, run: Run(|_| licences()) },
];

/// Fails if a test belongs neither to the gate nor to a suite.
fn tiers(machine: &PreparedMachine) -> anyhow::Result<()> {
    let filter = |suite: &'static TestSuite| match suite.run {
        Tests(filter) => Some(format!("({filter})")),
        Run(_) => None,
    };
    let suites = SUITES.iter().filter_map(filter).collect::<Vec<_>>().join(" | ");
    // The gate leaves these packages out.
    let not_in_gate = "(not default() | package(/^xtask-/))";
    let mut cargo = machine.cargo();
    cargo.args(["nextest", "list", "--profile", "gate", "--ignore-default-filter", "--workspace"]);
    cargo.args(["--message-format", "oneline", "--filterset", &format!("{not_in_gate} - ({suites})")]);
    let output = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("start cargo")?;
    ensure!(output.status.success(), "the tests cannot be listed");
    let tests = String::from_utf8_lossy(&output.stdout);
    ensure!(tests.trim().is_empty(), "tests of no tier:\n{tests}");
    Ok(())
}

fn doc_tests(machine: &PreparedMachine) -> anyhow::Result<()> {
    process::run(machine.cargo().args(["test", "--doc", "--workspace"]))
}

fn conforms(subject: ConformanceSubject<'_>) -> anyhow::Result<()> {
    println!("{}", conformance::check(subject)?);
    Ok(())
}

fn browser(_: &PreparedMachine) -> anyhow::Result<()> {
    println!("{}", console::check()?);
    Ok(())
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

/// Builds the documentation of the crates without a warning, and that for users.
fn book() -> anyhow::Result<()> {
    let mut doc = process::cargo();
    process::run(
        doc.args(["doc", "--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "-Dwarnings"),
    )?;
    book::build()
}

/// Packs the crates that authors of tools link. That each builds from its package alone is looked at before a release, by
/// the same command without `--no-verify`.
fn packages() -> anyhow::Result<()> {
    let mut cargo = process::cargo();
    cargo.args(["package", "--no-verify"]);
    for package in ["core", "net", "process", "mcp", "sdk"] {
        cargo.arg("--package").arg(format!("toolyard-{package}"));
    }
    process::run(&mut cargo)
}

/// Checks licences, duplicates and sources of dependencies.
fn licences() -> anyhow::Result<()> {
    if !process::is_successful("cargo", &["deny", "--version"]) {
        // A debug build takes half the time to make, and answers as fast as anyone needs.
        let install = ["install", "--debug", "--locked", "cargo-deny", "--version", "0.20.2"];
        process::run(process::cargo().args(install))?;
    }
    process::run(
        Command::new("cargo")
            .current_dir(xtask_support::root())
            .args(["deny", "check", "licenses", "bans", "sources"]),
    )
}
