//! The results of the suite as a table: a row per scenario, a column per requirement set.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

/// All scenarios of all requirement sets.
#[derive(Default)]
pub(super) struct ConformanceReport {
    sets: Vec<&'static str>,
    scenarios: BTreeMap<String, BTreeMap<&'static str, CheckCount>>,
    failures: BTreeSet<String>,
}

/// Numbers of checks. The suite counts neither skipped checks nor remarks.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CheckCount {
    pub(super) passed: usize,
    pub(super) failed: usize,
}

impl CheckCount {
    pub(super) fn add(&mut self, check: &Value) {
        match check["status"].as_str() {
            Some("SUCCESS") => self.passed += 1,
            Some("FAILURE") => self.failed += 1,
            _ => {}
        }
    }
}

/// Reads the results of the suite: a folder per scenario, with its checks.
pub(super) fn read_checks(results: &Path) -> anyhow::Result<Vec<(String, Vec<Value>)>> {
    let folders = std::fs::read_dir(results).with_context(|| format!("read {}", results.display()))?;
    let read = |folder: std::io::Result<std::fs::DirEntry>| {
        let folder = folder.context("read the results")?;
        let name = folder.file_name().to_string_lossy().into_owned();
        // A scenario that did not complete wrote no checks.
        let checks = match std::fs::read_to_string(folder.path().join("checks.json")) {
            Ok(checks) => {
                serde_json::from_str(&checks).with_context(|| format!("read the checks of {name}"))?
            }
            Err(_) => vec![json!({ "id": "*", "status": "FAILURE", "errorMessage": "did not complete" })],
        };
        Ok((scenario(&name).to_owned(), checks))
    };
    folders.map(read).collect()
}

impl ConformanceReport {
    /// Reads the results of the suite.
    pub(super) fn add(&mut self, set: &'static str, results: &Path) -> anyhow::Result<()> {
        self.sets.push(set);
        for (scenario, checks) in read_checks(results)? {
            self.count(set, &scenario, &checks);
        }
        Ok(())
    }

    fn count(&mut self, set: &'static str, scenario: &str, checks: &[Value]) {
        let mut count = CheckCount::default();
        for check in checks {
            count.add(check);
            if text(check, "status") == "FAILURE" {
                let (id, reason) = (text(check, "id"), text(check, "errorMessage"));
                self.failures.insert(format!("{set} {scenario}:{id} {reason}"));
            }
        }
        self.scenarios.entry(scenario.to_owned()).or_default().insert(set, count);
    }

    fn total(&self, set: &str) -> CheckCount {
        let counts = self.scenarios.values().filter_map(|sets| sets.get(set));
        counts.fold(CheckCount::default(), |sum, count| CheckCount {
            passed: sum.passed + count.passed,
            failed: sum.failed + count.failed,
        })
    }

    fn write_row(
        &self,
        out: &mut fmt::Formatter<'_>,
        name: &str,
        cell: impl Fn(&str) -> String,
    ) -> fmt::Result {
        write!(out, "{name:<46}")?;
        for set in &self.sets {
            write!(out, "{:>12}", cell(set))?;
        }
        writeln!(out)
    }
}

impl fmt::Display for ConformanceReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_row(out, "scenario (checks passed/failed)", str::to_owned)?;
        for (scenario, counts) in &self.scenarios {
            self.write_row(out, scenario, |set| counts.get(set).map_or("-".into(), CheckCount::to_string))?;
        }
        self.write_row(out, "total", |set| self.total(set).to_string())?;
        self.failures.iter().try_for_each(|failure| writeln!(out, "failed: {failure}"))
    }
}

impl fmt::Display for CheckCount {
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

pub(super) fn text<'a>(check: &'a Value, member: &str) -> &'a str {
    check[member].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_is_parsed_from_the_folder() {
        assert_eq!(scenario("server-tools-list-2026-11-21T07-29-07-990Z"), "tools-list");
        assert_eq!(scenario("server-server-stateless-2026-11-21T07-29-07-990Z"), "server-stateless");
        assert_eq!(scenario("notes"), "notes");
    }

    #[test]
    fn passed_and_failed_checks_are_counted() {
        let checks = json!([
            { "id": "a", "status": "SUCCESS" },
            { "id": "b", "status": "FAILURE", "errorMessage": "no" },
            { "id": "c", "status": "SKIPPED" },
        ]);
        let mut report = ConformanceReport { sets: vec!["one", "two"], ..ConformanceReport::default() };
        report.count("one", "ping", checks.as_array().unwrap());
        let lines: Vec<_> = report.to_string().lines().map(squeeze).collect();
        let expected = [
            "scenario (checks passed/failed) one two",
            "ping 1/1 -",
            "total 1/1 0/0",
            "failed: one ping:b no",
        ];
        assert_eq!(lines, expected);
    }

    fn squeeze(line: &str) -> String {
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
