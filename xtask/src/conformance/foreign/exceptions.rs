//! The expected results, and the exceptions from equality.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use serde::Deserialize;

use super::{Comparison, total};

/// The content of `fixtures/conformance/foreign.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ForeignExpectations {
    /// Number of checks that pass directly, by server and requirement set.
    passed: BTreeMap<String, BTreeMap<String, usize>>,
    exceptions: Vec<ConformanceException>,
}

/// Checks that have another result through the gateway than directly.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConformanceException {
    servers: Vec<String>,
    sets: Vec<String>,
    /// `scenario:check`, or a scenario with all of its checks.
    checks: Vec<String>,
    /// Reason for the difference.
    #[expect(dead_code, reason = "for readers of the file")]
    reason: String,
    /// Revision, page and section of the specification.
    #[expect(dead_code, reason = "for readers of the file")]
    section: String,
    /// The sentence of the specification that demands or allows the result.
    #[expect(dead_code, reason = "for readers of the file")]
    sentence: String,
}

impl ForeignExpectations {
    pub(super) fn read() -> anyhow::Result<Self> {
        let path = xtask_support::root().join("fixtures/conformance/foreign.json");
        let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("read {}", path.display()))
    }

    /// Returns unexpected counts, differences without an exception, and exceptions without a difference.
    pub(super) fn faults(&self, comparisons: &[Comparison]) -> Vec<String> {
        let mut faults = Vec::new();
        let mut used = BTreeSet::new();
        for comparison in comparisons {
            faults.extend(self.unexpected_count(comparison));
            for (check, difference) in differences(comparison) {
                match self.exception(comparison, &check) {
                    Some(exception) => _ = used.insert(exception),
                    None => faults.push(format!("{} {} {difference}", comparison.server, comparison.set)),
                }
            }
        }
        faults.extend(self.unused(&used));
        faults
    }

    /// Without it, servers that do not work would be equal to a gateway that does not work.
    fn unexpected_count(&self, comparison: &Comparison) -> Option<String> {
        let Comparison { server, set, .. } = comparison;
        let expected = self.passed.get(*server).and_then(|sets| sets.get(*set)).copied();
        let passed = total(&comparison.directly).passed;
        (expected != Some(passed)).then(|| {
            format!("{server} {set}: {passed} checks pass directly, {} are expected", expected.unwrap_or(0))
        })
    }

    /// Returns the exception for a check: its index, and the server, set and check that it names.
    fn exception(&self, comparison: &Comparison, check: &str) -> Option<(usize, String, String, String)> {
        let scenario = check.split(':').next();
        self.exceptions.iter().enumerate().find_map(|(index, exception)| {
            let has = |values: &[String], value: &str| values.iter().any(|one| one == value);
            let listed =
                exception.checks.iter().find(|one| *one == check || Some(one.as_str()) == scenario)?;
            (has(&exception.servers, comparison.server) && has(&exception.sets, comparison.set))
                .then(|| (index, comparison.server.to_owned(), comparison.set.to_owned(), listed.clone()))
        })
    }

    fn unused(&self, used: &BTreeSet<(usize, String, String, String)>) -> Vec<String> {
        let mut unused = Vec::new();
        for (index, exception) in self.exceptions.iter().enumerate() {
            for server in &exception.servers {
                for set in &exception.sets {
                    for check in &exception.checks {
                        if !used.contains(&(index, server.clone(), set.clone(), check.clone())) {
                            unused.push(format!("{server} {set} {check}: equal, remove the exception"));
                        }
                    }
                }
            }
        }
        unused
    }
}

/// Returns the checks whose counts differ, with both counts.
pub(super) fn differences(comparison: &Comparison) -> Vec<(String, String)> {
    let Comparison { directly, through, .. } = comparison;
    let checks: BTreeSet<_> = directly.keys().chain(through.keys()).collect();
    let counts = |check: &String| {
        let [directly, through] =
            [directly, through].map(|counts| counts.get(check).copied().unwrap_or_default());
        (directly != through).then(|| format!("{check}: directly {directly}, through the gateway {through}"))
    };
    checks.into_iter().filter_map(|check| Some((check.clone(), counts(check)?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::CheckCounts;
    use super::*;
    use crate::conformance::report::CheckCount;

    const PASSED: CheckCount = CheckCount { passed: 1, failed: 0 };
    const FAILED: CheckCount = CheckCount { passed: 0, failed: 1 };

    fn counts(checks: &[(&str, CheckCount)]) -> CheckCounts {
        checks.iter().map(|(check, count)| ((*check).to_owned(), *count)).collect()
    }

    /// Compares results with one exception for the check `ping:a`, and 1 expected check.
    #[track_caller]
    fn check(directly: &[(&str, CheckCount)], through: &[(&str, CheckCount)], faults: &[&str]) {
        let expectations: ForeignExpectations = serde_json::from_value(json!({
            "passed": { "rmcp": { "2025-11-25": 1 } },
            "exceptions": [{
                "servers": ["rmcp"], "sets": ["2025-11-25"], "checks": ["ping:a"],
                "reason": "", "section": "", "sentence": "",
            }],
        }))
        .unwrap();
        let (directly, through) = (counts(directly), counts(through));
        let comparison = Comparison { server: "rmcp", set: "2025-11-25", directly, through };
        assert_eq!(expectations.faults(&[comparison]), faults);
    }

    #[test]
    fn listed_difference_is_no_fault() {
        check(&[("ping:a", PASSED)], &[("ping:a", FAILED)], &[]);
    }

    #[test]
    fn other_difference_is_a_fault() {
        check(
            &[("ping:a", PASSED), ("ping:b", FAILED)],
            &[("ping:a", FAILED), ("ping:b", PASSED)],
            &["rmcp 2025-11-25 ping:b: directly 0/1, through the gateway 1/0"],
        );
    }

    #[test]
    fn exception_of_an_equal_result_is_a_fault() {
        check(
            &[("ping:a", PASSED)],
            &[("ping:a", PASSED)],
            &["rmcp 2025-11-25 ping:a: equal, remove the exception"],
        );
    }

    #[test]
    fn unexpected_count_is_a_fault() {
        check(
            &[("ping:a", FAILED)],
            &[("ping:a", PASSED)],
            &["rmcp 2025-11-25: 0 checks pass directly, 1 are expected"],
        );
    }
}
