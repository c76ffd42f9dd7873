//! Goals for the cost of the gateway and of the SDK. The bench reports whether they are met, and never fails for one.

use serde::Serialize;
use xtask_client::McpEra;

use super::bus;
use super::functions::{CallMode, FunctionLanguage, FunctionRow};
use super::growth::GrowthKind;
use super::instructions::{CountedServer, InstructionRow};
use super::messages::{LargePart, MessageRow, SIZES};
use super::openapi::{self, WayRow};
use super::report::{BenchReport, CallRow, CostRatios, LibraryRow, SessionRow};
use super::targets::{McpLibrary, TargetKind};

/// A limit and its measurement.
#[derive(Serialize)]
pub(super) struct BenchGoal {
    pub what: String,
    /// `None` if the run did not measure it.
    pub measured: Option<f64>,
    pub limit: f64,
    pub bound: GoalBound,
}

/// The direction of the limit, and whether the limit itself meets the goal.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GoalBound {
    AtMost,
    Below,
    AtLeast,
}

impl BenchGoal {
    fn at_most(limit: f64, what: impl Into<String>, measured: Option<f64>) -> BenchGoal {
        BenchGoal { what: what.into(), measured, limit, bound: GoalBound::AtMost }
    }

    fn at_least(limit: f64, what: impl Into<String>, measured: Option<f64>) -> BenchGoal {
        BenchGoal { what: what.into(), measured, limit, bound: GoalBound::AtLeast }
    }

    fn below(limit: f64, what: impl Into<String>, measured: Option<f64>) -> BenchGoal {
        BenchGoal { what: what.into(), measured, limit, bound: GoalBound::Below }
    }

    /// The limit, in a few characters.
    pub(super) fn expectation(&self) -> String {
        match self.bound {
            GoalBound::AtMost => format!("<= {:.1}", self.limit),
            GoalBound::Below => format!("< {:.1}", self.limit),
            GoalBound::AtLeast => format!(">= {:.1}", self.limit),
        }
    }

    /// `met`, `not met` or `not measured`.
    pub(super) fn verdict(&self) -> &'static str {
        let is_met = |measured: f64| match self.bound {
            GoalBound::AtMost => measured <= self.limit,
            GoalBound::Below => measured < self.limit,
            GoalBound::AtLeast => measured >= self.limit,
        };
        match self.measured.map(is_met) {
            Some(true) => "met",
            Some(false) => "not met",
            None => "not measured",
        }
    }
}

/// Compares the figures with the goals.
pub(super) fn evaluate(report: &BenchReport) -> Vec<BenchGoal> {
    let mut goals = Vec::new();
    for era in [McpEra::Legacy, McpEra::Modern] {
        goals.extend(gateway_goals(report, era));
    }
    for era in [McpEra::Legacy, McpEra::Modern] {
        goals.extend(count_goals(report, era));
    }
    goals.extend(upstream_goals(report));
    goals.extend([bus::RABBITMQ, bus::NATS].map(|way| {
        let is_match = |row: &&WayRow| row.way == way && row.in_flight == 1;
        let row = report.bus.iter().find(is_match);
        let ratio = row.and_then(|row| row.cost.ratios.as_ref()).map(|ratios| ratios.p50);
        BenchGoal::at_most(1.5, format!("p50:bare request, call over {way}, 1 in flight"), ratio)
    }));
    goals.extend(size_goals(report));
    goals.extend(sdk_goals(report));
    goals.extend(
        [
            (FunctionLanguage::Lua, 150.0),
            (FunctionLanguage::JavaScript, 250.0),
            (FunctionLanguage::Python, 60.0),
        ]
        .map(|(language, limit)| {
            let p50 = function(report, language).map(|row| row.p50_us);
            BenchGoal::at_most(limit, format!("function in {}, p50 us, 1 in flight", language.name()), p50)
        }),
    );
    goals
}

/// Ratios to nginx.
fn gateway_goals(report: &BenchReport, era: McpEra) -> Vec<BenchGoal> {
    let mut goals = Vec::new();
    let limits = [(TargetKind::Gateway, 3.0), (TargetKind::Unaudited, 2.2), (TargetKind::Operated, 4.5)];
    let ratio = |limit, figure: &str, kind: TargetKind, in_flight: usize, of: fn(&CostRatios) -> f64| {
        let what = format!("{figure}:nginx, {}, {}, {in_flight} in flight", kind.name(), era.name());
        BenchGoal::at_most(limit, what, ratios(report, kind, era, in_flight).map(of))
    };
    for (kind, limit) in limits {
        goals.extend([16, 64].map(|in_flight| ratio(limit, "cpu", kind, in_flight, |ratios| ratios.cpu)));
    }
    goals.push(ratio(1.5, "p50", TargetKind::Gateway, 1, |ratios| ratios.p50));
    goals.push(ratio(2.0, "p99", TargetKind::Gateway, 16, |ratios| ratios.p99));
    goals
}

/// Instructions of a call.
fn count_goals(report: &BenchReport, era: McpEra) -> Vec<BenchGoal> {
    let counted = |server: CountedServer| {
        let is_match = |row: &&InstructionRow| (row.server, row.era) == (server, era);
        report.instructions.iter().find(is_match).map(|row| row.instructions)
    };
    let count = |server: CountedServer, limit| {
        let what = format!("instructions/1000, {}, {}", server.name(), era.name());
        BenchGoal::at_most(limit, what, counted(server).map(|instructions| instructions / 1e3))
    };
    let ratio = |server: CountedServer, limit| {
        let ratio = counted(server).zip(counted(CountedServer::Unaudited)).map(|(own, base)| own / base);
        BenchGoal::at_most(limit, format!("instructions:unaudited, {}, {}", server.name(), era.name()), ratio)
    };
    vec![
        count(CountedServer::Gateway, 105.0),
        count(CountedServer::Unaudited, 90.0),
        ratio(CountedServer::OpenApi, 1.0),
        ratio(CountedServer::Sdk, 1.0),
    ]
}

/// Other upstreams than an MCP server over HTTP.
fn upstream_goals(report: &BenchReport) -> Vec<BenchGoal> {
    let loads = [16, 64].into_iter();
    loads
        .flat_map(|in_flight| {
            let cpu = |way: &str| {
                let is_match = |row: &&WayRow| row.way == way && row.in_flight == in_flight;
                report.openapi.iter().find(is_match).map(|row| row.cost.cpu_us)
            };
            let mcp = cpu(openapi::MCP);
            [(openapi::OPERATION, 1.0), (openapi::STDIO, 1.3)].map(|(way, limit)| {
                let ratio = cpu(way).zip(mcp).map(|(own, mcp)| own / mcp);
                BenchGoal::at_most(
                    limit,
                    format!("cpu:{}, {way}, {in_flight} in flight", openapi::MCP),
                    ratio,
                )
            })
        })
        .collect()
}

/// Memory, start, growth and large messages.
fn size_goals(report: &BenchReport) -> Vec<BenchGoal> {
    let idle = report.memory.iter().find(|row| row.target == TargetKind::Gateway).map(|row| row.idle_mib);
    let start = report.start.as_ref().map(|start| start.median_ms);
    let descriptors = report.descriptors.as_ref().map(|times| times.median_ms);
    let last = report.soak.last().map(|point| point.resident_mib);
    let largest = |ratios: Vec<f64>| ratios.into_iter().reduce(f64::max);
    let of_kind = |kind| report.growth.iter().filter(move |row| row.kind == kind).map(|row| row.ratio);
    let mut goals = vec![
        BenchGoal::below(15.0, "idle memory, MiB", idle),
        BenchGoal::below(10.0, "exec to the first list, median ms", start),
        BenchGoal::at_most(1000.0, "descriptors to tools, median ms", descriptors),
        BenchGoal::at_most(48.0, "memory after all audited calls, MiB", last),
    ];
    goals.extend([GrowthKind::Tools, GrowthKind::Sessions, GrowthKind::Keys].map(|kind| {
        let what = format!("growth of a call with the number of {}, ratio", kind.name());
        BenchGoal::at_most(1.1, what, largest(of_kind(kind).collect()))
    }));
    goals.extend(LargePart::ALL.into_iter().flat_map(|part| SIZES.map(|bytes| (part, bytes))).map(
        |(part, bytes)| {
            let is_match =
                |row: &&MessageRow| (row.target, row.part, row.bytes) == (TargetKind::Gateway, part, bytes);
            let ratios = report.messages.iter().find(is_match).and_then(|row| row.cost.ratios.as_ref());
            let what = format!("cpu:nginx, {}, {bytes} bytes", part.name());
            BenchGoal::at_most(2.0, what, ratios.map(|ratios| ratios.cpu))
        },
    ));
    goals
}

/// A tool on the SDK is at least as cheap as the same tool on rmcp.
fn sdk_goals(report: &BenchReport) -> Vec<BenchGoal> {
    let mut goals = Vec::new();
    for era in [McpEra::Legacy, McpEra::Modern] {
        for in_flight in [16, 64] {
            let ratios = sdk(report, era, in_flight);
            let load = format!("{}, {in_flight} in flight", era.name());
            let calls = ratios.map(|ratios| ratios.calls_per_second);
            goals.push(BenchGoal::at_least(1.0, format!("sdk, calls:rmcp, {load}"), calls));
            goals.push(BenchGoal::at_most(
                1.0,
                format!("sdk, cpu:rmcp, {load}"),
                ratios.map(|ratios| ratios.cpu),
            ));
        }
        let ratio = sdk(report, era, 1).map(|ratios| ratios.p50);
        goals.push(BenchGoal::at_most(1.0, format!("sdk, p50:rmcp, {}, 1 in flight", era.name()), ratio));
    }
    for streams in [false, true] {
        let is_match = |row: &&SessionRow| row.library == McpLibrary::Sdk && row.streams == streams;
        let ratio = report.sessions.iter().find(is_match).and_then(|row| row.ratio);
        let what = if streams { "an idle session with a stream" } else { "an idle session" };
        goals.push(BenchGoal::at_most(1.0, format!("sdk, memory:rmcp, {what}"), ratio));
    }
    goals
}

fn ratios(report: &BenchReport, kind: TargetKind, era: McpEra, in_flight: usize) -> Option<&CostRatios> {
    let is_match = |row: &&CallRow| row.target == kind && row.era == era && row.in_flight == in_flight;
    report.calls.iter().find(is_match)?.cost.ratios.as_ref()
}

fn sdk(report: &BenchReport, era: McpEra, in_flight: usize) -> Option<&CostRatios> {
    let is_match =
        |row: &&LibraryRow| row.library == McpLibrary::Sdk && row.era == era && row.in_flight == in_flight;
    report.libraries.iter().find(is_match)?.cost.ratios.as_ref()
}

fn function(report: &BenchReport, language: FunctionLanguage) -> Option<&FunctionRow> {
    let is_match =
        |row: &&FunctionRow| (row.language, row.way, row.in_flight) == (language, CallMode::Gateway, 1);
    report.functions.iter().find(is_match)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_of_a_goal() {
        let verdict = |goal: BenchGoal| goal.verdict();
        assert_eq!(verdict(BenchGoal::at_most(3.0, "x", Some(3.0))), "met");
        assert_eq!(verdict(BenchGoal::below(3.0, "x", Some(3.0))), "not met");
        assert_eq!(verdict(BenchGoal::at_least(3.0, "x", Some(3.0))), "met");
        assert_eq!(verdict(BenchGoal::at_least(3.0, "x", Some(2.9))), "not met");
        assert_eq!(verdict(BenchGoal::below(3.0, "x", None)), "not measured");
    }
}
