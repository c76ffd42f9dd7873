//! What the gateway and the SDK should cost at most. The bench says whether they do, and fails over nothing here.

use serde::Serialize;

use super::functions::{FunctionRow, Language, Way};
use super::report::{CallRow, LibraryRow, Ratios, Report, SessionRow};
use super::targets::{Kind, Library};
use crate::client::Era;

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
    AtLeast,
}

impl Goal {
    fn at_most(limit: f64, what: impl Into<String>, measured: Option<f64>) -> Goal {
        Goal { what: what.into(), measured, limit, bound: Bound::AtMost }
    }

    fn at_least(limit: f64, what: impl Into<String>, measured: Option<f64>) -> Goal {
        Goal { what: what.into(), measured, limit, bound: Bound::AtLeast }
    }

    fn below(limit: f64, what: impl Into<String>, measured: Option<f64>) -> Goal {
        Goal { what: what.into(), measured, limit, bound: Bound::Below }
    }

    /// What is wanted, in a few characters.
    pub(super) fn wanted(&self) -> String {
        match self.bound {
            Bound::AtMost => format!("<= {:.1}", self.limit),
            Bound::Below => format!("< {:.1}", self.limit),
            Bound::AtLeast => format!(">= {:.1}", self.limit),
        }
    }

    /// Whether the goal was met, in a few words.
    pub(super) fn verdict(&self) -> &'static str {
        let holds = |measured: f64| match self.bound {
            Bound::AtMost => measured <= self.limit,
            Bound::Below => measured < self.limit,
            Bound::AtLeast => measured >= self.limit,
        };
        match self.measured.map(holds) {
            Some(true) => "met",
            Some(false) => "not met",
            None => "not measured",
        }
    }
}

/// Holds the figures against the goals.
pub(super) fn judge(report: &Report) -> Vec<Goal> {
    let mut goals = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        for kind in [Kind::Gateway, Kind::Operated] {
            goals.extend(judge_gateway(report, era, kind));
        }
    }
    let memory = report.memory.iter().find(|row| row.target == Kind::Gateway);
    goals.push(Goal::below(25.0, "idle memory, MiB", memory.map(|row| row.idle_mib)));
    let start = report.start.as_ref().map(|start| start.median_ms);
    goals.push(Goal::below(50.0, "exec to the first list, median ms", start));
    goals.extend(judge_sdk(report));
    goals.extend([(Language::Lua, 150.0), (Language::JavaScript, 250.0), (Language::Python, 60.0)].map(
        |(language, limit)| {
            let p50 = function(report, language).map(|row| row.p50_us);
            Goal::at_most(limit, format!("function in {}, p50 us, 1 in flight", language.name()), p50)
        },
    ));
    goals
}

/// The same holds with a key, the audit trail and telemetry as without.
fn judge_gateway(report: &Report, era: Era, kind: Kind) -> Vec<Goal> {
    let ratios = |in_flight| ratios(report, kind, era, in_flight);
    let load = |in_flight: usize| format!("{}, {}, {in_flight} in flight", kind.name(), era.name());
    let cpu = |in_flight| {
        let measured = ratios(in_flight).map(|ratios| ratios.cpu);
        Goal::at_most(3.0, format!("cpu:nginx, {}", load(in_flight)), measured)
    };
    let p50 = ratios(1).map(|ratios| ratios.p50);
    vec![cpu(16), cpu(64), Goal::at_most(2.0, format!("p50:nginx, {}", load(1)), p50)]
}

/// A tool on the SDK is at least as cheap as the same on rmcp.
fn judge_sdk(report: &Report) -> Vec<Goal> {
    let mut goals = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        for in_flight in [16, 64] {
            let ratios = sdk(report, era, in_flight);
            let load = format!("{}, {in_flight} in flight", era.name());
            let calls = ratios.map(|ratios| ratios.calls_per_second);
            goals.push(Goal::at_least(1.0, format!("sdk, calls:rmcp, {load}"), calls));
            goals.push(Goal::at_most(1.0, format!("sdk, cpu:rmcp, {load}"), ratios.map(|ratios| ratios.cpu)));
        }
        let ratio = sdk(report, era, 1).map(|ratios| ratios.p50);
        goals.push(Goal::at_most(1.0, format!("sdk, p50:rmcp, {}, 1 in flight", era.name()), ratio));
    }
    for streams in [false, true] {
        let wanted = |row: &&SessionRow| row.library == Library::Sdk && row.streams == streams;
        let ratio = report.sessions.iter().find(wanted).and_then(|row| row.ratio);
        let what = if streams { "an idle session with a stream" } else { "an idle session" };
        goals.push(Goal::at_most(1.0, format!("sdk, memory:rmcp, {what}"), ratio));
    }
    goals
}

fn ratios(report: &Report, kind: Kind, era: Era, in_flight: usize) -> Option<&Ratios> {
    let wanted = |row: &&CallRow| row.target == kind && row.era == era && row.in_flight == in_flight;
    report.calls.iter().find(wanted)?.cost.ratios.as_ref()
}

fn sdk(report: &Report, era: Era, in_flight: usize) -> Option<&Ratios> {
    let wanted =
        |row: &&LibraryRow| row.library == Library::Sdk && row.era == era && row.in_flight == in_flight;
    report.libraries.iter().find(wanted)?.cost.ratios.as_ref()
}

fn function(report: &Report, language: Language) -> Option<&FunctionRow> {
    let wanted = |row: &&FunctionRow| (row.language, row.way, row.in_flight) == (language, Way::Gateway, 1);
    report.functions.iter().find(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_met_or_not_or_not_measured() {
        let verdict = |goal: Goal| goal.verdict();
        assert_eq!(verdict(Goal::at_most(3.0, "x", Some(3.0))), "met");
        assert_eq!(verdict(Goal::below(3.0, "x", Some(3.0))), "not met");
        assert_eq!(verdict(Goal::at_least(3.0, "x", Some(3.0))), "met");
        assert_eq!(verdict(Goal::at_least(3.0, "x", Some(2.9))), "not met");
        assert_eq!(verdict(Goal::below(3.0, "x", None)), "not measured");
    }
}
