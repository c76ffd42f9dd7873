//! A hosted function in each language, called through `Gateway::invoke`, beside a process for each call. Who calls is
//! `crates/toolyard-server/examples/bench_functions.rs`, which is asked for one cell after the other.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::Plan;
use super::report::{Report, show};
use super::sample::median;
use super::table::{number, table, text};
use super::targets::Workshop;
use crate::builds::named_or_built;
use crate::measure::{cpu_time_with_the_ended, shares_of_memory};
use crate::process::Process;

/// What a function is written in.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Language {
    #[serde(rename = "py")]
    Python,
    #[serde(rename = "js")]
    JavaScript,
    #[serde(rename = "lua")]
    Lua,
}

/// How a call is made.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Way {
    /// Through the gateway, in a worker that is warm.
    Gateway,
    /// In a worker that is started for it, in its cell.
    Worker,
    /// In an interpreter that is started for it, without walls.
    Interpreter,
}

impl Language {
    const ALL: [Language; 3] = [Language::Python, Language::JavaScript, Language::Lua];

    pub(super) fn name(self) -> &'static str {
        match self {
            Language::Python => "python",
            Language::JavaScript => "javascript",
            Language::Lua => "lua",
        }
    }
}

impl Way {
    const ALL: [Way; 3] = [Way::Gateway, Way::Worker, Way::Interpreter];

    fn name(self) -> &'static str {
        match self {
            Way::Gateway => "gateway",
            Way::Worker => "worker for each",
            Way::Interpreter => "interpreter for each",
        }
    }
}

/// Calls of one kind: the median of each figure over the rounds, and the least of all latencies.
#[derive(Serialize)]
pub(super) struct FunctionRow {
    pub language: Language,
    pub way: Way,
    pub in_flight: usize,
    pub calls_per_second: f64,
    pub min_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// CPU time of the gateway and of its workers, for one call; nothing for workers that are killed after their call: the
    /// system forgets what they have used.
    pub cpu_us: Option<f64>,
    /// Memory of a worker that is there when calls are over, where any is: of its process, its supervisor, and those that
    /// put up its walls.
    pub worker_mib: Option<f64>,
}

/// What the caller is asked for.
#[derive(Clone, Copy, Serialize)]
struct Cell {
    language: Language,
    way: Way,
    in_flight: usize,
    seconds: f64,
}

/// What it has seen.
#[derive(Deserialize)]
struct Seen {
    calls: u32,
    seconds: f64,
    min_us: f64,
    p50_us: f64,
    p99_us: f64,
}

/// One round of a cell.
struct Round {
    seen: Seen,
    cpu_us: Option<f64>,
    worker_mib: Option<f64>,
}

/// Measures all cells, in turns.
pub(super) fn measure(plan: &Plan, workshop: &Workshop, report: &mut Report) -> anyhow::Result<()> {
    let target = ["--package", "toolyard-server", "--example", "bench_functions"];
    let mut caller = Caller::start(&named_or_built(workshop.functions.as_deref(), &target)?)?;
    let cells = cells(plan);
    let mut rounds: Vec<Vec<Round>> = cells.iter().map(|_| Vec::new()).collect();
    for _ in 0..plan.rounds {
        for (cell, rounds) in cells.iter().zip(&mut rounds) {
            let round = caller.measure(*cell);
            rounds.push(round.with_context(|| format!("{}, {}", cell.language.name(), cell.way.name()))?);
        }
    }
    report.functions.extend(cells.iter().zip(&rounds).map(|(cell, rounds)| FunctionRow::new(*cell, rounds)));
    show(&report.function_table())
}

/// A process for each call is measured with one in flight alone, and the interpreter of one language only is a program.
fn cells(plan: &Plan) -> Vec<Cell> {
    let seconds = plan.cell.as_secs_f64();
    let ways = Way::ALL.into_iter().flat_map(|way| Language::ALL.map(|language| (way, language)));
    let ways = ways.filter(|(way, language)| *way != Way::Interpreter || *language == Language::Python);
    let loads = |way| if way == Way::Gateway { plan.function_loads } else { &[1] };
    ways.flat_map(|(way, language)| {
        loads(way).iter().map(move |in_flight| Cell { language, way, in_flight: *in_flight, seconds })
    })
    .collect()
}

/// The program that makes the calls.
struct Caller {
    process: Process,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Caller {
    fn start(program: &std::path::Path) -> anyhow::Result<Caller> {
        let folder = crate::root().join("fixtures/functions/echo");
        let (process, stdin, stdout) = Process::converse(program, &[folder.as_os_str()], Stdio::inherit())?;
        Ok(Caller { process, stdin, lines: BufReader::new(stdout).lines() })
    }

    fn measure(&mut self, cell: Cell) -> anyhow::Result<Round> {
        let ready = self.ask(&serde_json::to_string(&cell)?)?;
        ensure!(ready == "ready", "it says {ready}");
        let before = cpu_time_with_the_ended(self.process.pid());
        let seen: Seen = serde_json::from_str(&self.ask("go")?)?;
        let cpu = cpu_time_with_the_ended(self.process.pid()).saturating_sub(before);
        let cpu_us = cpu.as_secs_f64() * 1e6 / f64::from(seen.calls);
        let cpu_us = (cell.way != Way::Worker).then_some(cpu_us);
        Ok(Round { seen, cpu_us, worker_mib: self.worker_mib(cell) })
    }

    /// Says a line, and reads one.
    fn ask(&mut self, line: &str) -> anyhow::Result<String> {
        writeln!(self.stdin, "{line}")?;
        self.lines.next().context("what calls functions has ended")?.context("read what it says")
    }

    fn worker_mib(&self, cell: Cell) -> Option<f64> {
        let is_worker = |command: &str| match cell.language {
            Language::Python => command.contains("python3"),
            Language::JavaScript => command.contains(r#"["js"]"#),
            Language::Lua => command.contains(r#"["lua"]"#),
        };
        let workers = shares_of_memory(self.process.pid(), is_worker);
        let workers: Vec<f64> = workers.into_iter().map(|kib| kib as f64 / 1024.0).collect();
        (cell.way == Way::Gateway && !workers.is_empty()).then(|| median(workers))
    }
}

impl FunctionRow {
    fn new(cell: Cell, rounds: &[Round]) -> FunctionRow {
        let figure = |figure: fn(&Round) -> f64| median(rounds.iter().map(figure).collect());
        FunctionRow {
            language: cell.language,
            way: cell.way,
            in_flight: cell.in_flight,
            calls_per_second: figure(|round| f64::from(round.seen.calls) / round.seen.seconds),
            min_us: rounds.iter().map(|round| round.seen.min_us).fold(f64::INFINITY, f64::min),
            p50_us: figure(|round| round.seen.p50_us),
            p99_us: figure(|round| round.seen.p99_us),
            cpu_us: rounds.iter().map(|round| round.cpu_us).collect::<Option<_>>().map(median),
            worker_mib: rounds.last().and_then(|round| round.worker_mib),
        }
    }
}

impl Report {
    fn function_table(&self) -> String {
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
        table("echo as a hosted function (cpu: of the gateway and of its workers)", &heads, rows.collect())
    }
}
