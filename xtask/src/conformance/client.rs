//! The client scenarios of the suite, with the gateway as the client. A scenario is a server that checks its requests.

use std::path::Path;
use std::process::Command;

use anyhow::anyhow;
use xtask_support::builds;
use xtask_support::peers::PeerSoftware;

use super::report::ConformanceReport;
use super::{SuiteVerdict, verdict};

/// A scenario, and its requirement sets.
const SCENARIOS: [(&str, &[&str]); 11] = [
    ("initialize", &["2025-11-25"]),
    ("tools_call", &["2025-11-25", "2026-07-28"]),
    ("elicitation-sep1034-client-defaults", &["2025-11-25"]),
    ("sse-retry", &["2025-11-25"]),
    ("json-schema-2020-12-preservation", &["2025-11-25", "2026-07-28"]),
    ("request-metadata", &["2026-07-28"]),
    ("http-standard-headers", &["2026-07-28"]),
    ("http-custom-headers", &["2026-07-28"]),
    ("http-invalid-tool-headers", &["2026-07-28"]),
    ("sep-2322-client-request-state", &["2026-07-28"]),
    ("json-schema-ref-no-deref", &["2026-07-28"]),
];

/// Runs all scenarios, with a user of the gateway that has a session and with one that has none. No failures are
/// expected.
pub(super) fn check(peers: &PeerSoftware, work: &Path) -> anyhow::Result<String> {
    let run_users = |session| move || run_scenarios(peers, work, session);
    let (with, without) = std::thread::scope(|scope| {
        let with = scope.spawn(run_users(true));
        let without = run_users(false)();
        (with.join(), without)
    });
    let with = with.map_err(|_| anyhow!("a thread of the suite panicked"))??;
    let without = without?;
    let unmet = [with.unmet, without.unmet].concat();
    super::report_unless(&unmet, with.report + "\n" + &without.report)
}

/// The results with one kind of user.
struct ScenarioResults {
    report: String,
    unmet: Vec<String>,
}

/// Runs the scenarios with such a user.
fn run_scenarios(peers: &PeerSoftware, work: &Path, session: bool) -> anyhow::Result<ScenarioResults> {
    let usage = if session { "with a session" } else { "without a session" };
    let (mut report, mut unmet) = (ConformanceReport::default(), Vec::new());
    for set in super::REQUIREMENT_SETS {
        let results = work.join(usage).join(set);
        for (scenario, sets) in SCENARIOS {
            if !sets.contains(&set) {
                continue;
            }
            let verdict = run(peers, scenario, set, session, &results)?;
            if !verdict.met {
                unmet.push(format!("{set}, {usage}: {scenario}: {}", verdict.remarks));
            }
        }
        report.add(set, &results)?;
    }
    Ok(ScenarioResults { report: format!("The gateway {usage}\n{report}"), unmet })
}

fn run(
    peers: &PeerSoftware,
    scenario: &str,
    set: &str,
    session: bool,
    results: &Path,
) -> anyhow::Result<SuiteVerdict> {
    let xtask = builds::sibling_program("xtask")?;
    let flag = if session { " --session" } else { "" };
    let mut suite = Command::new(peers.node());
    suite.arg(peers.conformance_suite()).args(["client", "--scenario", scenario, "--spec-version", set]);
    suite.args(["--command", &format!("{} drive{flag}", xtask.display())]).arg("--output-dir").arg(results);
    verdict(&mut suite)
}
