//! The suite's client scenarios, with the gateway as the client: a scenario is a server that looks at what it is sent.

use std::path::Path;
use std::process::Command;

use anyhow::{anyhow, bail};

use super::report::Report;
use super::{Verdict, verdict};
use crate::builds;
use crate::peers::Peers;

/// A scenario, and the requirement sets that it is of.
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

/// Runs all of them, with somebody who uses the gateway in a session, and with one who does not. Nothing is expected to
/// fail.
pub(super) fn check(peers: &Peers, work: &Path) -> anyhow::Result<()> {
    let used = |session| move || scenarios(peers, work, session);
    let (with, without) = std::thread::scope(|scope| {
        let with = scope.spawn(used(true));
        let without = used(false)();
        (with.join(), without)
    });
    let with = with.map_err(|_| anyhow!("a thread of the suite panicked"))?;
    let unmet = [with?, without?].concat();
    if !unmet.is_empty() {
        bail!("the suite did not end as expected\n{}", unmet.join("\n"));
    }
    Ok(())
}

/// Runs them with such a user, and says what was not met.
fn scenarios(peers: &Peers, work: &Path, session: bool) -> anyhow::Result<Vec<String>> {
    let users = if session { "used in a session" } else { "used without a session" };
    let (mut report, mut unmet) = (Report::default(), Vec::new());
    for set in super::REQUIREMENT_SETS {
        let results = work.join(users).join(set);
        for (scenario, sets) in SCENARIOS {
            if !sets.contains(&set) {
                continue;
            }
            let verdict = run(peers, scenario, set, session, &results)?;
            if !verdict.met {
                unmet.push(format!("{set}, {users}: {scenario}: {}", verdict.remarks));
            }
        }
        report.add(set, &results)?;
    }
    println!("The gateway, {users}\n{report}");
    Ok(unmet)
}

fn run(peers: &Peers, scenario: &str, set: &str, session: bool, results: &Path) -> anyhow::Result<Verdict> {
    let own = builds::built("xtask")?;
    let flag = if session { " --session" } else { "" };
    let mut suite = Command::new(peers.node());
    suite.arg(peers.conformance_suite()).args(["client", "--scenario", scenario, "--spec-version", set]);
    suite.args(["--command", &format!("{} drive{flag}", own.display())]).arg("--output-dir").arg(results);
    verdict(&mut suite)
}
