//! A hosted function in each language, called through `Gateway::invoke`, compared with a process for each call. The
//! calls are made by `crates/toolyard-server/examples/bench_functions.rs`, one cell after the other.

use std::path::Path;

use serde::{Deserialize, Serialize};
use xtask_support::builds::path_or_build;
use xtask_support::measure::{child_memory_shares, cpu_time_with_ended_children};

use super::call_program::CallProgram;
use super::report::{BenchReport, show};
use super::sample::median;
use super::table::{number, table, text};
use super::targets::TargetFactory;
use super::{BenchPlan, PROFILE};

/// The language of a function.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum FunctionLanguage {
    #[serde(rename = "py")]
    Python,
    #[serde(rename = "js")]
    JavaScript,
    #[serde(rename = "lua")]
    Lua,
}

/// The way of running a call.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CallMode {
    /// Through the gateway, in a warm worker.
    Gateway,
    /// In a worker of its own, in a sandbox.
    Worker,
    /// In an interpreter of its own, without a sandbox.
    Interpreter,
}

impl FunctionLanguage {
    const ALL: [FunctionLanguage; 3] =
        [FunctionLanguage::Python, FunctionLanguage::JavaScript, FunctionLanguage::Lua];

    pub(super) fn name(self) -> &'static str {
        match self {
            FunctionLanguage::Python => "python",
            FunctionLanguage::JavaScript => "javascript",
            FunctionLanguage::Lua => "lua",
        }
    }
}

impl CallMode {
    const ALL: [CallMode; 3] = [CallMode::Gateway, CallMode::Worker, CallMode::Interpreter];

    fn name(self) -> &'static str {
        match self {
            CallMode::Gateway => "gateway",
            CallMode::Worker => "worker for each",
            CallMode::Interpreter => "interpreter for each",
        }
    }
}

/// Calls of one kind: the median of each figure over the rounds, and the minimum of all latencies.
#[derive(Serialize)]
pub(super) struct FunctionRow {
    pub language: FunctionLanguage,
    pub way: CallMode,
    pub in_flight: usize,
    pub calls_per_second: f64,
    pub min_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// CPU time of the gateway and its workers per call. `None` for workers that are killed after their call: the
    /// system does not account for them.
    pub cpu_us: Option<f64>,
    /// Memory of an idle worker, if there is one: its process, its supervisor, and the processes that set up its
    /// sandbox.
    pub worker_mib: Option<f64>,
}

/// A request to the program that makes the calls.
#[derive(Clone, Copy, Serialize)]
struct FunctionCell {
    language: FunctionLanguage,
    way: CallMode,
    in_flight: usize,
    seconds: f64,
}

/// Its measurements.
#[derive(Deserialize)]
struct CellMeasurement {
    calls: u32,
    seconds: f64,
    min_us: f64,
    p50_us: f64,
    p99_us: f64,
}

/// One round of a cell.
struct FunctionRound {
    measurement: CellMeasurement,
    cpu_us: Option<f64>,
    worker_mib: Option<f64>,
}

/// Measures all cells, in turns.
pub(super) fn measure(
    plan: &BenchPlan,
    workshop: &TargetFactory,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let target = ["--package", "toolyard-server", "--example", "bench_functions"];
    let program = path_or_build(workshop.functions.as_deref(), &target, PROFILE)?;
    let mut caller = FunctionCaller::start(&program)?;
    let mut cells: Vec<_> = benchmark_cells(plan).into_iter().map(|cell| (cell, Vec::new())).collect();
    for _ in 0..plan.rounds {
        let mut measured = Vec::new();
        for (cell, mut rounds) in cells {
            match caller.measure(cell) {
                Ok(round) => {
                    rounds.push(round);
                    measured.push((cell, rounds));
                }
                // A failed cell has no row, and a caller of its own follows for the others.
                Err(error) => {
                    report.fail(format!("{}, {}", cell.language.name(), cell.way.name()), &error)?;
                    caller = FunctionCaller::start(&program)?;
                }
            }
        }
        cells = measured;
    }
    report.functions.extend(cells.iter().map(|(cell, rounds)| FunctionRow::new(*cell, rounds)));
    show(&report.function_table())
}

/// A process per call is measured with one call in flight only, and only Python has an interpreter as a program.
fn benchmark_cells(plan: &BenchPlan) -> Vec<FunctionCell> {
    let seconds = plan.cell.as_secs_f64();
    let ways =
        CallMode::ALL.into_iter().flat_map(|way| FunctionLanguage::ALL.map(|language| (way, language)));
    let ways =
        ways.filter(|(way, language)| *way != CallMode::Interpreter || *language == FunctionLanguage::Python);
    let loads = |way| if way == CallMode::Gateway { plan.function_loads } else { &[1] };
    ways.flat_map(|(way, language)| {
        loads(way).iter().map(move |in_flight| FunctionCell { language, way, in_flight: *in_flight, seconds })
    })
    .collect()
}

/// The program that makes the calls.
struct FunctionCaller(CallProgram);

impl FunctionCaller {
    fn start(program: &Path) -> anyhow::Result<FunctionCaller> {
        CallProgram::start(program, xtask_support::root().join("fixtures/functions/echo")).map(FunctionCaller)
    }

    fn measure(&mut self, cell: FunctionCell) -> anyhow::Result<FunctionRound> {
        let (measurement, cpu): (CellMeasurement, _) = self.0.measure(&cell, cpu_time_with_ended_children)?;
        let cpu_us = cpu.as_secs_f64() * 1e6 / f64::from(measurement.calls);
        let cpu_us = (cell.way != CallMode::Worker).then_some(cpu_us);
        Ok(FunctionRound { measurement, cpu_us, worker_mib: self.worker_mib(cell) })
    }

    fn worker_mib(&self, cell: FunctionCell) -> Option<f64> {
        let is_worker = |command: &str| match cell.language {
            FunctionLanguage::Python => command.contains("python3"),
            FunctionLanguage::JavaScript => command.contains(r#"["js"]"#),
            FunctionLanguage::Lua => command.contains(r#"["lua"]"#),
        };
        let workers = child_memory_shares(self.0.pid(), is_worker);
        let workers: Vec<f64> = workers.into_iter().map(|kib| kib as f64 / 1024.0).collect();
        (cell.way == CallMode::Gateway && !workers.is_empty()).then(|| median(workers))
    }
}

impl FunctionRow {
    fn new(cell: FunctionCell, rounds: &[FunctionRound]) -> FunctionRow {
        let figure = |figure: fn(&FunctionRound) -> f64| median(rounds.iter().map(figure).collect());
        FunctionRow {
            language: cell.language,
            way: cell.way,
            in_flight: cell.in_flight,
            calls_per_second: figure(|round| f64::from(round.measurement.calls) / round.measurement.seconds),
            min_us: rounds.iter().map(|round| round.measurement.min_us).fold(f64::INFINITY, f64::min),
            p50_us: figure(|round| round.measurement.p50_us),
            p99_us: figure(|round| round.measurement.p99_us),
            cpu_us: rounds.iter().map(|round| round.cpu_us).collect::<Option<_>>().map(median),
            worker_mib: rounds.last().and_then(|round| round.worker_mib),
        }
    }
}

impl BenchReport {
    pub(super) fn function_table(&self) -> String {
        let rows = self.functions.iter().map(|row| {
            vec![
                text(row.language.name()),
                text(row.way.name()),
                number(row.in_flight as f64, 0),
                number(row.calls_per_second, 0),
                number(row.min_us, 0),
                number(row.p50_us, 0),
                number(row.p99_us, 0),
                row.cpu_us.map_or_else(|| text("-"), |cpu_us| number(cpu_us, 1)),
                row.worker_mib.map_or_else(|| text("-"), |mib| number(mib, 1)),
            ]
        });
        let heads =
            ["language", "way", "in flight", "calls/s", "min us", "p50 us", "p99 us", "cpu us", "worker MiB"];
        table("echo as a hosted function (cpu: gateway and workers)", &heads, rows.collect())
    }
}
