//! What the gateway should cost at most. The bench says whether it does, and fails over nothing here.

use serde::Serialize;

use super::client::Era;
use super::report::{CallRow, Cost, Report};
use super::targets::Kind;

/// A limit, and what was measured.
#[derive(Serialize)]
pub(super) struct Goal {
    pub what: String,
    /// Nothing where the run left the measurement out.
    pub measured: Option<f64>,
    pub limit: f64,
    pub bound: Bound,
}

/// Whether the limit itself is still good.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bound {
    AtMost,
    Below,
}

impl Goal {
    fn at_most(limit: f64, what: impl Into<String>, measured: Option<f64>) -> Goal {
        Goal { what: what.into(), measured, limit, bound: Bound::AtMost }
    }

    fn below(limit: f64, what: impl Into<String>, measured: Option<f64>) -> Goal {
        Goal { what: what.into(), measured, limit, bound: Bound::Below }
    }

    /// What is wanted, in a few characters.
    pub(super) fn wanted(&self) -> String {
        match self.bound {
            Bound::AtMost => format!("<= {:.1}", self.limit),
            Bound::Below => format!("< {:.1}", self.limit),
        }
    }

    /// Whether the goal was met, in a few words.
    pub(super) fn verdict(&self) -> &'static str {
        let holds = |measured: f64| match self.bound {
            Bound::AtMost => measured <= self.limit,
            Bound::Below => measured < self.limit,
        };
        match self.measured.map(holds) {
            Some(true) => "met",
            Some(false) => "not met",
            None => "not measured",
        }
    }
}

/// Holds the figures of the gateway against its goals.
pub(super) fn judge(report: &Report) -> Vec<Goal> {
    let mut goals = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        for in_flight in [16, 64] {
            let ratio = cost(report, era, in_flight).and_then(|cost| cost.cpu_to_nginx);
            goals.push(Goal::at_most(
                3.0,
                format!("cpu:nginx, {}, {in_flight} in flight", era.name()),
                ratio,
            ));
        }
        let ratio = cost(report, era, 1).and_then(|cost| cost.p50_to_nginx);
        goals.push(Goal::at_most(2.0, format!("p50:nginx, {}, 1 in flight", era.name()), ratio));
    }
    let memory = report.memory.iter().find(|row| row.target == Kind::Gateway);
    goals.push(Goal::below(25.0, "idle memory, MiB", memory.map(|row| row.idle_mib)));
    let start = report.start.as_ref().map(|start| start.median_ms);
    goals.push(Goal::below(50.0, "exec to the first list, median ms", start));
    goals
}

fn cost(report: &Report, era: Era, in_flight: usize) -> Option<&Cost> {
    let wanted = |row: &&CallRow| row.target == Kind::Gateway && row.era == era && row.in_flight == in_flight;
    report.calls.iter().find(wanted).map(|row| &row.cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_met_or_not_or_not_measured() {
        let verdict = |goal: Goal| goal.verdict();
        assert_eq!(verdict(Goal::at_most(3.0, "x", Some(3.0))), "met");
        assert_eq!(verdict(Goal::below(3.0, "x", Some(3.0))), "not met");
        assert_eq!(verdict(Goal::below(3.0, "x", None)), "not measured");
    }
}
