//! The figures, as rows that are printed and written as JSON. This module measures nothing.

use std::io::Write;
use std::time::Duration;

use serde::Serialize;
use xtask_client::McpEra;

use super::PROFILE;
use super::difference::{LayerCostRow, OperationCostRow, OperationRow};
use super::functions::FunctionRow;
use super::goals::BenchGoal;
use super::growth::{GrowthRow, ScopeRow};
use super::grpc::DescriptorTimes;
use super::instructions::InstructionRow;
use super::load::BenchLoad;
use super::messages::MessageRow;
use super::openapi::WayRow;
use super::replicas::ReplicaRow;
use super::sample::{LoadSample, SampleRounds, median};
use super::soak::SoakPoint;
use super::table::{TableCell, number, table, text};
use super::targets::{McpLibrary, TargetKind};

/// All figures of a run. Each is the median over the rounds.
#[derive(Serialize)]
pub(super) struct BenchReport {
    pub cpus: usize,
    /// Day of the run, in UTC.
    pub date: String,
    /// Profile of the measured gateway.
    pub profile: String,
    /// Version of the compiler.
    pub rustc: String,
    pub rounds: usize,
    pub seconds_per_cell: f64,
    pub calls: Vec<CallRow>,
    pub added: Vec<OperationCostRow>,
    pub memory: Vec<MemoryRow>,
    pub lists: Vec<ListRow>,
    pub layers: Vec<LayerCostRow>,
    pub operation: Vec<OperationRow>,
    pub openapi: Vec<WayRow>,
    pub grpc: Vec<WayRow>,
    pub descriptors: Option<DescriptorTimes>,
    pub bus: Vec<WayRow>,
    pub replicas: Vec<ReplicaRow>,
    pub messages: Vec<MessageRow>,
    pub growth: Vec<GrowthRow>,
    pub scopes: Vec<ScopeRow>,
    pub soak: Vec<SoakPoint>,
    pub instructions: Vec<InstructionRow>,
    pub start: Option<StartTimes>,
    pub libraries: Vec<LibraryRow>,
    pub sessions: Vec<SessionRow>,
    pub functions: Vec<FunctionRow>,
    pub goals: Vec<BenchGoal>,
    /// Measurements that failed. The figures of others stand.
    pub failures: Vec<BenchFailure>,
}

/// A measurement that failed.
#[derive(Debug, Serialize)]
pub(super) struct BenchFailure {
    /// The measured section, or the cell of one.
    pub measurement: String,
    /// The error and its causes.
    pub error: String,
}

/// `tools/call` through one target.
#[derive(Serialize)]
pub(super) struct CallRow {
    pub target: TargetKind,
    pub era: McpEra,
    pub in_flight: usize,
    pub cost: RequestCost,
}

/// The cost of one request.
#[derive(Serialize)]
pub(super) struct RequestCost {
    pub calls_per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub cpu_us: f64,
    /// `None` if the competitor was not measured.
    pub ratios: Option<CostRatios>,
}

/// Ratios to the competitor, nginx or rmcp: the medians of the ratios within each round.
#[derive(Serialize)]
pub(super) struct CostRatios {
    pub calls_per_second: f64,
    pub p50: f64,
    pub p99: f64,
    pub cpu: f64,
}

/// Memory of one target: after its start, and the peak while calls were measured.
#[derive(Serialize)]
pub(super) struct MemoryRow {
    pub target: TargetKind,
    pub idle_mib: f64,
    pub peak_mib: f64,
}

/// `tools/list` through one target.
#[derive(Serialize)]
pub(super) struct ListRow {
    pub target: TargetKind,
    pub tools: usize,
    pub bytes: usize,
    pub cost: RequestCost,
}

/// Time from exec to the first list with the tools of the upstream.
#[derive(Serialize)]
pub(super) struct StartTimes {
    pub runs: usize,
    pub min_ms: f64,
    pub median_ms: f64,
}

/// `tools/call` of the trivial tool on one library; ratios are to rmcp.
#[derive(Serialize)]
pub(super) struct LibraryRow {
    pub library: McpLibrary,
    pub era: McpEra,
    pub in_flight: usize,
    pub cost: RequestCost,
}

/// The cost of idle sessions on one library.
#[derive(Serialize)]
pub(super) struct SessionRow {
    pub library: McpLibrary,
    /// `true` if each session has a connection with an open stream.
    pub streams: bool,
    pub sessions: usize,
    /// Memory of the process before the first session.
    pub before_mib: f64,
    /// Growth of the process per session.
    pub session_kib: f64,
    /// The growth as a ratio to that of rmcp in the same round; `None` if rmcp did not grow.
    pub ratio: Option<f64>,
}

impl BenchReport {
    pub(super) fn new(rounds: usize, cell: Duration) -> BenchReport {
        BenchReport {
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            date: String::new(),
            profile: PROFILE.name().to_owned(),
            rustc: String::new(),
            rounds,
            seconds_per_cell: cell.as_secs_f64(),
            calls: Vec::new(),
            added: Vec::new(),
            memory: Vec::new(),
            lists: Vec::new(),
            layers: Vec::new(),
            operation: Vec::new(),
            openapi: Vec::new(),
            grpc: Vec::new(),
            descriptors: None,
            bus: Vec::new(),
            replicas: Vec::new(),
            messages: Vec::new(),
            growth: Vec::new(),
            scopes: Vec::new(),
            soak: Vec::new(),
            instructions: Vec::new(),
            start: None,
            libraries: Vec::new(),
            sessions: Vec::new(),
            functions: Vec::new(),
            goals: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// The machine and the size of the run, as a sentence.
    pub(super) fn run_line(&self) -> String {
        let BenchReport { cpus, date, profile, rustc, rounds, seconds_per_cell, .. } = self;
        format!(
            "Measured on {date} with {cpus} processors, which the load generator, the echo server and the process under \
             test share: profile `{profile}`, rustc {rustc}, {rounds} rounds of {seconds_per_cell} s."
        )
    }

    /// Keeps the failure of a measurement, and prints it.
    pub(super) fn fail(&mut self, measurement: String, error: &anyhow::Error) -> anyhow::Result<()> {
        let failure = BenchFailure { measurement, error: format!("{error:#}") };
        show(&format!("failed: {}: {}", failure.measurement, failure.error))?;
        self.failures.push(failure);
        Ok(())
    }

    /// Calls, the cost of operating features, then memory.
    pub(super) fn call_table(&self) -> String {
        let rows = self.calls.iter().map(|row| {
            let cells = [text(row.era.name()), number(row.in_flight as f64, 0), text(row.target.name())];
            cells.into_iter().chain(row.cost.cells()).collect()
        });
        let calls = table(
            "tools/call (direct: the upstream without a proxy, and its own CPU time)",
            &[&["era", "in flight", "target"], &COST_COLUMNS[..]].concat(),
            rows.collect(),
        );
        let rows = self.memory.iter();
        let rows =
            rows.map(|row| vec![text(row.target.name()), number(row.idle_mib, 1), number(row.peak_mib, 1)]);
        calls
            + &self.added_table()
            + &table("memory, MiB resident", &["target", "idle", "peak"], rows.collect())
    }

    pub(super) fn list_table(&self) -> String {
        let rows = self.lists.iter().map(|row| {
            let cells = [number(row.tools as f64, 0), number(row.bytes as f64, 0), text(row.target.name())];
            cells.into_iter().chain(row.cost.cells()).collect()
        });
        let heads = [&["tools", "bytes", "target"], &COST_COLUMNS[..]].concat();
        table("tools/list, modern, 1 in flight", &heads, rows.collect())
    }

    pub(super) fn start_table(&self) -> String {
        let rows = self.start.iter();
        let rows = rows.map(|start| {
            vec![number(start.runs as f64, 0), number(start.min_ms, 1), number(start.median_ms, 1)]
        });
        table("from exec to the first list", &["runs", "min ms", "median ms"], rows.collect())
    }

    /// Calls on each library, then sessions.
    pub(super) fn library_table(&self) -> String {
        let rows = self.libraries.iter().map(|row| {
            let cells = [text(row.era.name()), number(row.in_flight as f64, 0), text(row.library.name())];
            let calls = row.cost.ratio(|ratios| ratios.calls_per_second);
            cells.into_iter().chain(row.cost.cells()).chain([calls]).collect()
        });
        let costs =
            ["calls/s", "p50 us", "p99 us", "cpu us", "cpu:rmcp", "p50:rmcp", "p99:rmcp", "calls:rmcp"];
        let calls = table(
            "tools/call of the same trivial tool on two libraries",
            &[&["era", "in flight", "library"], &costs[..]].concat(),
            rows.collect(),
        );
        let rows = self.sessions.iter().map(|row| {
            let stream = text(if row.streams { "open" } else { "none" });
            let counts = [number(row.sessions as f64, 0), stream, text(row.library.name())];
            let figures = [number(row.before_mib, 1), number(row.session_kib, 2), ratio(row.ratio)];
            counts.into_iter().chain(figures).collect()
        });
        let heads = ["sessions", "stream", "library", "before MiB", "KiB per session", "memory:rmcp"];
        calls + &table("memory of idle sessions, resident", &heads, rows.collect())
    }

    /// The goals of what was measured.
    pub(super) fn goal_table(&self) -> String {
        let rows = self.goals.iter().filter(|goal| goal.measured.is_some()).map(|goal| {
            let measured = goal.measured.map_or(text("-"), |measured| number(measured, 2));
            vec![text(&goal.what), measured, text(&goal.expectation()), text(goal.verdict())]
        });
        table("goals", &["goal", "measured", "limit", ""], rows.collect())
    }
}

pub(super) const COST_COLUMNS: [&str; 7] =
    ["calls/s", "p50 us", "p99 us", "cpu us", "cpu:nginx", "p50:nginx", "p99:nginx"];

impl RequestCost {
    pub(super) fn new(rounds: &SampleRounds, base: Option<&SampleRounds>) -> RequestCost {
        RequestCost {
            calls_per_second: rounds.median(|sample| sample.calls_per_second),
            p50_us: rounds.median(|sample| sample.p50_us),
            p99_us: rounds.median(|sample| sample.p99_us),
            cpu_us: rounds.median(|sample| sample.cpu_us),
            ratios: base.map(|base| CostRatios::new(rounds, base)),
        }
    }

    pub(super) fn cells(&self) -> Vec<TableCell> {
        vec![
            number(self.calls_per_second, 0),
            number(self.p50_us, 0),
            number(self.p99_us, 0),
            number(self.cpu_us, 1),
            self.ratio(|ratios| ratios.cpu),
            self.ratio(|ratios| ratios.p50),
            self.ratio(|ratios| ratios.p99),
        ]
    }

    fn ratio(&self, of: impl Fn(&CostRatios) -> f64) -> TableCell {
        ratio(self.ratios.as_ref().map(of))
    }
}

fn ratio(ratio: Option<f64>) -> TableCell {
    ratio.map_or(text("-"), |ratio| number(ratio, 2))
}

impl CostRatios {
    fn new(rounds: &SampleRounds, base: &SampleRounds) -> CostRatios {
        let ratio = |figure: fn(&LoadSample) -> f64| {
            median(rounds.per_round(base, |own, base| figure(own) / figure(base)))
        };
        CostRatios {
            calls_per_second: ratio(|sample| sample.calls_per_second),
            p50: ratio(|sample| sample.p50_us),
            p99: ratio(|sample| sample.p99_us),
            cpu: ratio(|sample| sample.cpu_us),
        }
    }
}

impl CallRow {
    pub(super) fn new(
        target: TargetKind,
        load: &BenchLoad,
        rounds: &SampleRounds,
        nginx: Option<&SampleRounds>,
    ) -> CallRow {
        CallRow { target, era: load.era, in_flight: load.in_flight, cost: RequestCost::new(rounds, nginx) }
    }
}

/// Prints to standard output.
pub(super) fn show(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}
