//! The official conformance suite, against our servers: the gateway in front of a fixture server, and the fixture that
//! is written with the SDK.
//!
//! Nothing is built twice. The example of the SDK is one of the targets that a build of the whole workspace makes, as
//! the gateway is; a build of one package alone has other features, and would make both anew. So [`check`] takes what
//! was built last, and [`run`] builds first.

mod client;
mod drive;
mod report;

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::builds::built;
use crate::peers::Peers;
use crate::process::{self, Process};
use report::Report;

pub(crate) use drive::{DriveArgs, drive};

/// The frozen requirement sets: one for the sessions of the legacy era, one for the stateless era.
const REQUIREMENT_SETS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Which server is put to the test; without a choice, the gateway in front of the fixture server.
#[derive(clap::Args)]
#[group(multiple = false)]
pub(crate) struct Args {
    /// Test the server at this URL
    #[arg(long)]
    url: Option<String>,
    /// Test the fixture server that is an example of the SDK; nothing is expected to fail
    #[arg(long)]
    sdk: bool,
    /// Test the fixture server itself, without the gateway; nothing is expected to fail
    #[arg(long)]
    direct: bool,
    /// Test the gateway as the client of the suite's servers; nothing is expected to fail
    #[arg(long)]
    client: bool,
}

/// What is put to the test.
#[derive(Clone, Copy)]
pub(crate) enum Subject<'a> {
    /// The gateway, in front of the fixture server.
    Gateway,
    /// The example of the SDK.
    Sdk,
    /// The fixture server.
    Fixture,
    /// The gateway, as a client.
    Client,
    /// What is at this URL.
    Url(&'a str),
}

impl Args {
    fn subject(&self) -> Subject<'_> {
        match self {
            Self { url: Some(url), .. } => Subject::Url(url),
            Self { sdk: true, .. } => Subject::Sdk,
            Self { direct: true, .. } => Subject::Fixture,
            Self { client: true, .. } => Subject::Client,
            Self { .. } => Subject::Gateway,
        }
    }
}

/// Builds what takes part, and runs the suite.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let subject = args.subject();
    let package: &[&str] = match subject {
        Subject::Gateway => &[
            "--package",
            "toolyard",
            "--package",
            "toolyard-sdk",
            "--bin",
            "toolyard",
            "--example",
            "conformance",
        ],
        Subject::Sdk => &["--package", "toolyard-sdk", "--example", "conformance"],
        Subject::Client => &["--package", "toolyard"],
        Subject::Fixture | Subject::Url(_) => &[],
    };
    if !package.is_empty() {
        process::run(process::cargo().args(["build", "--quiet"]).args(package))?;
    }
    check(subject)
}

/// Runs the suite with what was built last.
pub(crate) fn check(subject: Subject<'_>) -> anyhow::Result<()> {
    let peers = match subject {
        Subject::Fixture => Peers::prepare()?,
        Subject::Gateway | Subject::Sdk | Subject::Client | Subject::Url(_) => Peers::installed()?,
    };
    let folder = match subject {
        Subject::Gateway => "gateway",
        Subject::Sdk => "sdk",
        Subject::Fixture => "fixture",
        Subject::Client => "client",
        Subject::Url(_) => "url",
    };
    let work = crate::root().join("target/conformance").join(folder);
    // What an earlier run left would be counted again.
    let _ = std::fs::remove_dir_all(&work);
    std::fs::create_dir_all(&work).with_context(|| format!("create {}", work.display()))?;

    let fixture = || Server::start(&peers.fixture_server(), &[], &work.join("fixture.log"));
    let example = || Server::start(&built("examples/conformance")?, &[], &work.join("sdk.log"));
    match subject {
        Subject::Gateway => {
            let example = example()?;
            let gateway = start_gateway(&work, &example.url)?;
            test(&peers, &work, &gateway.url, Expect::Listed)
        }
        Subject::Sdk => test(&peers, &work, &example()?.url, Expect::NoFailure),
        Subject::Fixture => test(&peers, &work, &fixture()?.url, Expect::NoFailure),
        Subject::Client => client::check(&peers, &work),
        Subject::Url(url) => test(&peers, &work, url, Expect::Listed),
    }
}

/// An MCP server, running.
struct Server {
    url: String,
    _process: Process,
}

impl Server {
    fn start(program: &Path, args: &[&OsStr], log: &Path) -> anyhow::Result<Self> {
        let stderr = File::create(log).with_context(|| format!("write {}", log.display()))?;
        let mut process = Process::launch(program, args, stderr.into())?;
        let address = process
            .printed_address()
            .with_context(|| format!("{}: see {}", program.display(), log.display()))?;
        Ok(Self { url: format!("http://{address}/mcp"), _process: process })
    }
}

/// What may fail.
#[derive(Clone, Copy)]
enum Expect {
    /// What `fixtures/conformance` lists, and all of that.
    Listed,
    NoFailure,
}

fn start_gateway(work: &Path, upstream: &str) -> anyhow::Result<Server> {
    let manifest = work.join("registry.yaml");
    std::fs::write(&manifest, registry(upstream)).with_context(|| format!("write {}", manifest.display()))?;
    let args = ["serve", "--listen", "127.0.0.1:0", "-f"].map(OsStr::new);
    let args = [&args[..], &[manifest.as_os_str()]].concat();
    Server::start(&built("toolyard")?, &args, &work.join("gateway.log"))
}

/// The first list waits for the server for as long as a busy machine may take.
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

fn test(peers: &Peers, work: &Path, url: &str, expect: Expect) -> anyhow::Result<()> {
    let mut report = Report::default();
    let mut unmet = Vec::new();
    for set in REQUIREMENT_SETS {
        let results = work.join(set);
        let verdict = suite(peers, set, url, expect, &results)?;
        report.add(set, &results)?;
        if !verdict.met {
            unmet.push(format!("{set}: {}", verdict.remarks));
        }
    }
    println!("{report}");
    if !unmet.is_empty() {
        bail!("the suite did not end as expected\n{}", unmet.join("\n"));
    }
    Ok(())
}

/// What the suite itself makes of a run.
struct Verdict {
    met: bool,
    /// The end of its output: which failures were not expected, and which expected ones did not happen.
    remarks: String,
}

fn suite(peers: &Peers, set: &str, url: &str, expect: Expect, results: &Path) -> anyhow::Result<Verdict> {
    let mut suite = Command::new(peers.node());
    suite.arg(peers.conformance_suite()).args(["server", "--url", url, "--requirements", set]);
    suite.arg("--output-dir").arg(results);
    if let Expect::Listed = expect {
        let listed = format!("fixtures/conformance/expected-failures-{set}.yaml");
        suite.arg("--expected-failures").arg(crate::root().join(listed));
    }
    verdict(&mut suite)
}

fn verdict(suite: &mut Command) -> anyhow::Result<Verdict> {
    let output = suite.output().context("start the conformance suite")?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    // Before its totals it lists what the report shows; without them it did not get that far.
    let totals = ["\nTotal: ", "\nTest Results:"].iter().find_map(|words| said.find(words));
    let remarks = totals.map_or(&*said, |totals| &said[totals..]).trim();
    Ok(Verdict { met: output.status.success(), remarks: remarks.to_owned() })
}
