//! Fixture servers on the SDKs of others, tested directly and through the gateway: each check has to have the same result.
//! `fixtures/conformance/foreign.json` lists the exceptions, each with the sentence of the specification behind it.

mod exceptions;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;

use anyhow::{anyhow, ensure};
use serde_json::Value;
use xtask_support::peers::PeerSoftware;

use super::report::{self, CheckCount};
use super::{ExpectedFailures, REQUIREMENT_SETS, ServerProcess};
use exceptions::ForeignExpectations;

/// A fixture server.
#[derive(Clone, Copy)]
struct ForeignServer {
    name: &'static str,
    start: fn(&PeerSoftware, &Path) -> anyhow::Result<ServerProcess>,
}

const SERVERS: [ForeignServer; 3] = [
    ForeignServer { name: "typescript", start: start_typescript },
    ForeignServer { name: "python", start: start_python },
    ForeignServer { name: "rmcp", start: start_rmcp },
];

/// The counts of each check, by scenario and check ID, as `ping:wire-schema-valid`.
type CheckCounts = BTreeMap<String, CheckCount>;

/// The results of a server with one requirement set.
struct Comparison {
    server: &'static str,
    set: &'static str,
    directly: CheckCounts,
    through: CheckCounts,
}

/// Tests all servers side by side, and returns a table of the counts.
pub(super) fn check(peers: &PeerSoftware, work: &Path) -> anyhow::Result<String> {
    let expectations = ForeignExpectations::read()?;
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads = SERVERS.map(|server| scope.spawn(move || compare(server, peers, work)));
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let mut comparisons = Vec::new();
    for result in results {
        comparisons.extend(result.map_err(|_| anyhow!("a thread of the suite panicked"))??);
    }
    let faults = expectations.faults(&comparisons);
    let table = table(&comparisons);
    ensure!(
        faults.is_empty(),
        "{table}\nresults that differ from fixtures/conformance/foreign.json\n{}",
        faults.join("\n")
    );
    Ok(table)
}

/// Runs both requirement sets against a server and against a gateway in front of it.
fn compare(server: ForeignServer, peers: &PeerSoftware, work: &Path) -> anyhow::Result<Vec<Comparison>> {
    let work = work.join(server.name);
    std::fs::create_dir_all(&work)?;
    let fixture = (server.start)(peers, &work)?;
    let gateway = super::start_gateway(&work, &fixture.url)?;
    let mut comparisons = Vec::new();
    for set in REQUIREMENT_SETS {
        let run = |way: &str, url: &str| {
            let results = work.join(way).join(set);
            super::run_suite(peers, set, url, ExpectedFailures::NoFailure, &results)?;
            count(&results)
        };
        let (directly, through) = (run("directly", &fixture.url)?, run("through", &gateway.url)?);
        comparisons.push(Comparison { server: server.name, set, directly, through });
    }
    Ok(comparisons)
}

fn count(results: &Path) -> anyhow::Result<CheckCounts> {
    let mut counts = CheckCounts::new();
    for (scenario, checks) in report::read_checks(results)? {
        for check in &checks {
            counts.entry(check_name(&scenario, check)).or_default().add(check);
        }
    }
    Ok(counts)
}

fn check_name(scenario: &str, check: &Value) -> String {
    format!("{scenario}:{}", report::text(check, "id"))
}

/// The fixture of the SDK is in no package; this one is ours.
fn start_typescript(peers: &PeerSoftware, work: &Path) -> anyhow::Result<ServerProcess> {
    let program = xtask_support::root().join("fixtures/conformance/typescript-server.mjs");
    let args = [program.as_os_str(), peers.folder().as_os_str()];
    ServerProcess::start(&peers.node(), &args, &work.join("fixture.log"))
}

/// The SDK's own fixture, from its source distribution. It prints its address on its standard error.
fn start_python(peers: &PeerSoftware, work: &Path) -> anyhow::Result<ServerProcess> {
    let script = r#"PYTHONPATH="$1" exec "$0" -m mcp_everything_server --port 0 2>&1"#;
    let sources = peers.python_sdk_sources().join("examples/servers/everything-server");
    let python = peers.python();
    let args = [OsStr::new("-c"), OsStr::new(script), python.as_os_str(), sources.as_os_str()];
    ServerProcess::start(Path::new("sh"), &args, &work.join("fixture.log"))
}

/// The fixture of the SDK is in no package; this one is ours.
fn start_rmcp(peers: &PeerSoftware, work: &Path) -> anyhow::Result<ServerProcess> {
    ServerProcess::start(&peers.fixture_server(), &[], &work.join("fixture.log"))
}

/// A row per server and requirement set: the checks that passed and failed, and the number of those that differ.
fn table(comparisons: &[Comparison]) -> String {
    let mut table = format!(
        "{:<14}{:<14}{:>12}{:>12}{:>12}\n",
        "server", "requirements", "directly", "through", "different"
    );
    for comparison in comparisons {
        let Comparison { server, set, directly, through } = comparison;
        let (directly, through) = (total(directly).to_string(), total(through).to_string());
        let different = exceptions::differences(comparison).len();
        let _ = writeln!(table, "{server:<14}{set:<14}{directly:>12}{through:>12}{different:>12}");
    }
    table
}

fn total(counts: &CheckCounts) -> CheckCount {
    counts.values().fold(CheckCount::default(), |sum, count| CheckCount {
        passed: sum.passed + count.passed,
        failed: sum.failed + count.failed,
    })
}
