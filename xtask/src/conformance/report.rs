//! The suite's results as a table: a scenario a line, a requirement set a column.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

/// All scenarios of all requirement sets.
#[derive(Default)]
pub(super) struct Report {
    sets: Vec<&'static str>,
    scenarios: BTreeMap<String, BTreeMap<&'static str, Count>>,
    failures: BTreeSet<String>,
}

#[derive(Clone, Copy, Default)]
struct Count {
    passed: usize,
    failed: usize,
}

impl Report {
    /// Reads what the suite wrote: a folder a scenario, with its checks.
    pub(super) fn add(&mut self, set: &'static str, results: &Path) -> anyhow::Result<()> {
        self.sets.push(set);
        let folders = std::fs::read_dir(results).with_context(|| format!("read {}", results.display()))?;
        for folder in folders {
            let folder = folder.context("read the results")?;
            let name = folder.file_name().to_string_lossy().into_owned();
            // A scenario that came to no end wrote no checks.
            let checks = match std::fs::read_to_string(folder.path().join("checks.json")) {
                Ok(checks) => {
                    serde_json::from_str(&checks).with_context(|| format!("read the checks of {name}"))?
                }
                Err(_) => vec![json!({ "id": "*", "status": "FAILURE", "errorMessage": "came to no end" })],
            };
            self.count(set, scenario(&name), &checks);
        }
        Ok(())
    }

    fn count(&mut self, set: &'static str, scenario: &str, checks: &[Value]) {
        let mut count = Count::default();
        for check in checks {
            match check["status"].as_str() {
                Some("SUCCESS") => count.passed += 1,
                Some("FAILURE") => {
                    count.failed += 1;
                    let (id, reason) = (text(check, "id"), text(check, "errorMessage"));
                    self.failures.insert(format!("{set} {scenario}:{id} {reason}"));
                }
                // The suite counts neither what it skipped nor what it only remarks on.
                _ => {}
            }
        }
        self.scenarios.entry(scenario.to_owned()).or_default().insert(set, count);
    }

    fn total(&self, set: &str) -> Count {
        let counts = self.scenarios.values().filter_map(|sets| sets.get(set));
        counts.fold(Count::default(), |sum, count| Count {
            passed: sum.passed + count.passed,
            failed: sum.failed + count.failed,
        })
    }

    fn line(&self, out: &mut fmt::Formatter<'_>, name: &str, cell: impl Fn(&str) -> String) -> fmt::Result {
        write!(out, "{name:<46}")?;
        for set in &self.sets {
            write!(out, "{:>12}", cell(set))?;
        }
        writeln!(out)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.line(out, "scenario (checks passed/failed)", str::to_owned)?;
        for (scenario, counts) in &self.scenarios {
            self.line(out, scenario, |set| counts.get(set).map_or("-".into(), Count::to_string))?;
        }
        self.line(out, "total", |set| self.total(set).to_string())?;
        self.failures.iter().try_for_each(|failure| writeln!(out, "failed: {failure}"))
    }
}

impl fmt::Display for Count {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.passed, self.failed)
    }
}

/// `server-tools-list-2026-11-21T07-29-07-990Z` holds the checks of `tools-list`.
fn scenario(folder: &str) -> &str {
    let name = folder.strip_prefix("server-").unwrap_or(folder);
    let time = "-2026-11-21T07-29-07-990Z".len();
    name.len().checked_sub(time).and_then(|end| name.get(..end)).unwrap_or(name)
}

fn text<'a>(check: &'a Value, member: &str) -> &'a str {
    check[member].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_scenario_of_a_folder() {
        assert_eq!(scenario("server-tools-list-2026-11-21T07-29-07-990Z"), "tools-list");
        assert_eq!(scenario("server-server-stateless-2026-11-21T07-29-07-990Z"), "server-stateless");
        assert_eq!(scenario("notes"), "notes");
    }

    #[test]
    fn counts_what_passed_and_what_failed() {
        let checks = json!([
            { "id": "a", "status": "SUCCESS" },
            { "id": "b", "status": "FAILURE", "errorMessage": "no" },
            { "id": "c", "status": "SKIPPED" },
        ]);
        let mut report = Report { sets: vec!["one", "two"], ..Report::default() };
        report.count("one", "ping", checks.as_array().unwrap());
        let lines: Vec<_> = report.to_string().lines().map(squeezed).collect();
        let expected = [
            "scenario (checks passed/failed) one two",
            "ping 1/1 -",
            "total 1/1 0/0",
            "failed: one ping:b no",
        ];
        assert_eq!(lines, expected);
    }

    fn squeezed(line: &str) -> String {
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
