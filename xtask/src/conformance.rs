//! The official conformance suite, run against our servers: the gateway in front of a fixture server, and the fixture
//! written with the SDK. [`foreign`] compares fixture servers on other SDKs with the gateway in front of them.
//!
//! Nothing is built twice. A build of the whole workspace includes the gateway and the example of the SDK; a build of
//! one package has other features and would rebuild both. Therefore [`check`] uses the latest build, and [`run`]
//! builds first.

mod client;
mod drive;
mod foreign;
mod report;

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use xtask_support::builds::sibling_program;
use xtask_support::peers::PeerSoftware;
use xtask_support::process::{self, LaunchedProcess};

use crate::peers::{self, KubernetesApiServer};
use report::ConformanceReport;

pub(crate) use drive::{DriveArgs, drive};

/// The frozen requirement sets: one for the sessions of the legacy era, one for the stateless era.
const REQUIREMENT_SETS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// The server under test; by default, the gateway in front of the fixture server.
#[derive(clap::Args)]
#[group(multiple = false)]
pub(crate) struct ConformanceArgs {
    /// Test the server at this URL
    #[arg(long)]
    url: Option<String>,
    /// Test the fixture server on the SDK; no failures are expected
    #[arg(long)]
    sdk: bool,
    /// Test the fixture server without the gateway; no failures are expected
    #[arg(long)]
    direct: bool,
    /// Test the gateway as the client of the suite's servers; no failures are expected
    #[arg(long)]
    client: bool,
    /// Test fixture servers on the SDKs of others, directly and through the gateway; the results have to be equal
    #[arg(long)]
    foreign: bool,
}

/// The subject of a test.
#[derive(Clone, Copy)]
pub(crate) enum ConformanceSubject<'a> {
    /// The gateway, in front of the fixture server.
    Gateway,
    /// The example of the SDK.
    Sdk,
    /// The fixture server.
    Fixture,
    /// The gateway, as a client.
    Client,
    /// The gateway in front of fixture servers on the SDKs of others, compared with those servers.
    Foreign,
    /// The server at this URL.
    Url(&'a str),
}

impl ConformanceArgs {
    fn subject(&self) -> ConformanceSubject<'_> {
        match self {
            Self { url: Some(url), .. } => ConformanceSubject::Url(url),
            Self { sdk: true, .. } => ConformanceSubject::Sdk,
            Self { direct: true, .. } => ConformanceSubject::Fixture,
            Self { client: true, .. } => ConformanceSubject::Client,
            Self { foreign: true, .. } => ConformanceSubject::Foreign,
            Self { .. } => ConformanceSubject::Gateway,
        }
    }
}

/// Builds the programs and runs the suite.
pub(crate) fn run(args: &ConformanceArgs) -> anyhow::Result<()> {
    let subject = args.subject();
    let package: &[&str] = match subject {
        ConformanceSubject::Gateway | ConformanceSubject::Foreign => &[
            "--package",
            "toolyard",
            "--package",
            "toolyard-sdk",
            "--bin",
            "toolyard",
            "--example",
            "conformance",
        ],
        ConformanceSubject::Sdk => &["--package", "toolyard-sdk", "--example", "conformance"],
        ConformanceSubject::Client => &[
            "--package",
            "toolyard",
            "--package",
            "xtask-matrix",
            "--bin",
            "toolyard",
            "--bin",
            "xtask-matrix",
        ],
        ConformanceSubject::Fixture | ConformanceSubject::Url(_) => &[],
    };
    if !package.is_empty() {
        process::run(process::cargo().args(["build", "--quiet"]).args(package))?;
    }
    println!("{}", check(subject)?);
    Ok(())
}

/// Runs the suite through the gateway of the latest build, if the suite is installed or can be.
pub(crate) fn run_in_gate() -> anyhow::Result<()> {
    let Some(peers) = peers::conformance_suite()? else {
        println!("skipped the conformance suite, which needs npm and its registry");
        return Ok(());
    };
    let outcome = check_with(&peers, ConformanceSubject::Gateway).or_else(|error| {
        println!("{error:#}\nthe conformance suite is repeated");
        check_with(&peers, ConformanceSubject::Gateway)
    });
    println!("{}", outcome?);
    Ok(())
}

/// Runs the suite with the latest build, and returns its report.
pub(crate) fn check(subject: ConformanceSubject<'_>) -> anyhow::Result<String> {
    let peers = match subject {
        ConformanceSubject::Fixture | ConformanceSubject::Foreign => {
            peers::prepare(KubernetesApiServer::Skip)?
        }
        ConformanceSubject::Gateway
        | ConformanceSubject::Sdk
        | ConformanceSubject::Client
        | ConformanceSubject::Url(_) => PeerSoftware::installed()?,
    };
    check_with(&peers, subject)
}

fn check_with(peers: &PeerSoftware, subject: ConformanceSubject<'_>) -> anyhow::Result<String> {
    let folder = match subject {
        ConformanceSubject::Gateway => "gateway",
        ConformanceSubject::Sdk => "sdk",
        ConformanceSubject::Fixture => "fixture",
        ConformanceSubject::Client => "client",
        ConformanceSubject::Foreign => "foreign",
        ConformanceSubject::Url(_) => "url",
    };
    let work = xtask_support::root().join("target/conformance").join(folder);
    // The report would count results of an earlier run.
    let _ = std::fs::remove_dir_all(&work);
    std::fs::create_dir_all(&work).with_context(|| format!("create {}", work.display()))?;

    let fixture = || ServerProcess::start(&peers.fixture_server(), &[], &work.join("fixture.log"));
    let example =
        || ServerProcess::start(&sibling_program("examples/conformance")?, &[], &work.join("sdk.log"));
    match subject {
        ConformanceSubject::Gateway => {
            let example = example()?;
            let gateway = start_gateway(&work, &example.url)?;
            run_requirement_sets(peers, &work, &gateway.url, ExpectedFailures::Listed)
        }
        ConformanceSubject::Sdk => {
            run_requirement_sets(peers, &work, &example()?.url, ExpectedFailures::NoFailure)
        }
        ConformanceSubject::Fixture => {
            run_requirement_sets(peers, &work, &fixture()?.url, ExpectedFailures::NoFailure)
        }
        ConformanceSubject::Client => client::check(peers, &work),
        ConformanceSubject::Foreign => foreign::check(peers, &work),
        ConformanceSubject::Url(url) => run_requirement_sets(peers, &work, url, ExpectedFailures::Listed),
    }
}

/// A running MCP server.
struct ServerProcess {
    url: String,
    _process: LaunchedProcess,
}

impl ServerProcess {
    fn start(program: &Path, args: &[&OsStr], log: &Path) -> anyhow::Result<Self> {
        let stderr = File::create(log).with_context(|| format!("write {}", log.display()))?;
        let mut process = LaunchedProcess::launch(program, args, stderr.into())?;
        let address = process
            .printed_address()
            .with_context(|| format!("{}: see {}", program.display(), log.display()))?;
        Ok(Self { url: format!("http://{address}/mcp"), _process: process })
    }
}

/// The failures that are expected.
#[derive(Clone, Copy)]
enum ExpectedFailures {
    /// Exactly those in `fixtures/conformance`.
    Listed,
    NoFailure,
}

fn start_gateway(work: &Path, upstream: &str) -> anyhow::Result<ServerProcess> {
    let manifest = work.join("registry.yaml");
    std::fs::write(&manifest, registry(upstream)).with_context(|| format!("write {}", manifest.display()))?;
    let args = ["serve", "--listen", "127.0.0.1:0", "-f"].map(OsStr::new);
    let args = [&args[..], &[manifest.as_os_str()]].concat();
    ServerProcess::start(&sibling_program("toolyard")?, &args, &work.join("gateway.log"))
}

/// The gateway waits for the server's first list for as long as a busy machine may take.
fn registry(upstream: &str) -> String {
    format!(
        "apiVersion: toolyard.dev/v1alpha1
kind: Toolyard
spec:
  timeouts:
    firstList: 20s
---
apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata:
  name: conformance
spec:
  handlers:
    - name: fixture
      type: mcp
      mcpConfig:
        transport: streamable-http
        endpoint: {upstream}
"
    )
}

fn run_requirement_sets(
    peers: &PeerSoftware,
    work: &Path,
    url: &str,
    expect: ExpectedFailures,
) -> anyhow::Result<String> {
    let mut report = ConformanceReport::default();
    let mut unmet = Vec::new();
    for set in REQUIREMENT_SETS {
        let results = work.join(set);
        let verdict = run_suite(peers, set, url, expect, &results)?;
        report.add(set, &results)?;
        if !verdict.met {
            unmet.push(format!("{set}: {}", verdict.remarks));
        }
    }
    report_unless(&unmet, report.to_string())
}

/// Returns the report, or an error with it and the verdicts that are not met.
fn report_unless(unmet: &[String], report: String) -> anyhow::Result<String> {
    ensure!(unmet.is_empty(), "{report}\nunexpected results of the suite\n{}", unmet.join("\n"));
    Ok(report)
}

/// The verdict of the suite.
struct SuiteVerdict {
    met: bool,
    /// The end of its output: unexpected failures, and expected failures that did not occur.
    remarks: String,
}

fn run_suite(
    peers: &PeerSoftware,
    set: &str,
    url: &str,
    expect: ExpectedFailures,
    results: &Path,
) -> anyhow::Result<SuiteVerdict> {
    let mut suite = Command::new(peers.node());
    suite.arg(peers.conformance_suite()).args(["server", "--url", url, "--requirements", set]);
    suite.arg("--output-dir").arg(results);
    if let ExpectedFailures::Listed = expect {
        let file = format!("fixtures/conformance/expected-failures-{set}.yaml");
        suite.arg("--expected-failures").arg(xtask_support::root().join(file));
    }
    verdict(&mut suite)
}

fn verdict(suite: &mut Command) -> anyhow::Result<SuiteVerdict> {
    let output = suite.output().context("start the conformance suite")?;
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    // The output before the totals repeats the report. Without totals the suite did not complete.
    let totals = ["\nTotal: ", "\nTest Results:"].iter().find_map(|words| text.find(words));
    let summary = totals.map_or(&*text, |totals| &text[totals..]).trim();
    Ok(SuiteVerdict { met: output.status.success(), remarks: summary.to_owned() })
}
