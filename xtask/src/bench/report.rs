//! The figures, as rows that are printed and written as JSON. Nothing is measured here.

use std::io::Write;
use std::time::Duration;

use serde::Serialize;

use super::difference::{AddedRow, LayerRow, OperationRow};
use super::functions::FunctionRow;
use super::goals::Goal;
use super::instructions::InstructionRow;
use super::load::Load;
use super::openapi::OpenApiRow;
use super::sample::{Rounds, Sample, median};
use super::table::{Cell, number, table, text};
use super::targets::{Kind, Library};
use crate::client::Era;

/// All that a run of the bench saw. Each figure is the median over the rounds.
#[derive(Serialize)]
pub(super) struct Report {
    pub cpus: usize,
    pub rounds: usize,
    pub seconds_per_cell: f64,
    pub calls: Vec<CallRow>,
    pub added: Vec<AddedRow>,
    pub memory: Vec<MemoryRow>,
    pub lists: Vec<ListRow>,
    pub layers: Vec<LayerRow>,
    pub operation: Vec<OperationRow>,
    pub openapi: Vec<OpenApiRow>,
    pub instructions: Vec<InstructionRow>,
    pub start: Option<Start>,
    pub libraries: Vec<LibraryRow>,
    pub sessions: Vec<SessionRow>,
    pub functions: Vec<FunctionRow>,
    pub goals: Vec<Goal>,
}

/// `tools/call` through one target.
#[derive(Serialize)]
pub(super) struct CallRow {
    pub target: Kind,
    pub era: Era,
    pub in_flight: usize,
    pub cost: Cost,
}

/// What one request costs.
#[derive(Serialize)]
pub(super) struct Cost {
    pub calls_per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub cpu_us: f64,
    /// Nothing where what this is compared with was not measured.
    pub ratios: Option<Ratios>,
}

/// The cost as ratios to what it is compared with, nginx or rmcp: the medians of the ratios within each round.
#[derive(Serialize)]
pub(super) struct Ratios {
    pub calls_per_second: f64,
    pub p50: f64,
    pub cpu: f64,
}

/// The memory of one target: when it had just been started, and the most it took while calls were measured.
#[derive(Serialize)]
pub(super) struct MemoryRow {
    pub target: Kind,
    pub idle_mib: f64,
    pub peak_mib: f64,
}

/// `tools/list` through one target.
#[derive(Serialize)]
pub(super) struct ListRow {
    pub target: Kind,
    pub tools: usize,
    pub bytes: usize,
    pub cost: Cost,
}

/// From exec to the first list that holds the upstream's tools.
#[derive(Serialize)]
pub(super) struct Start {
    pub runs: usize,
    pub min_ms: f64,
    pub median_ms: f64,
}

/// `tools/call` of the trivial tool on one library; ratios are to rmcp.
#[derive(Serialize)]
pub(super) struct LibraryRow {
    pub library: Library,
    pub era: Era,
    pub in_flight: usize,
    pub cost: Cost,
}

/// What sessions that nobody uses cost on one library.
#[derive(Serialize)]
pub(super) struct SessionRow {
    pub library: Library,
    /// Whether each session has a connection with an open stream, or none at all.
    pub streams: bool,
    pub sessions: usize,
    /// The memory of the process before the first of them.
    pub before_mib: f64,
    /// The growth of the process with all of them, for each.
    pub session_kib: f64,
    /// The growth as a ratio to that of rmcp in the same round. Nothing where rmcp did not grow.
    pub ratio: Option<f64>,
}

impl Report {
    pub(super) fn new(rounds: usize, cell: Duration) -> Report {
        Report {
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            rounds,
            seconds_per_cell: cell.as_secs_f64(),
            calls: Vec::new(),
            added: Vec::new(),
            memory: Vec::new(),
            lists: Vec::new(),
            layers: Vec::new(),
            operation: Vec::new(),
            openapi: Vec::new(),
            instructions: Vec::new(),
            start: None,
            libraries: Vec::new(),
            sessions: Vec::new(),
            functions: Vec::new(),
            goals: Vec::new(),
        }
    }

    /// Calls, what operating adds to them, then memory.
    pub(super) fn call_table(&self) -> String {
        let rows = self.calls.iter().map(|row| {
            let cells = [text(row.era.name()), number(row.in_flight as f64, 0), text(row.target.name())];
            cells.into_iter().chain(row.cost.cells()).collect()
        });
        let calls = table(
            "tools/call (direct: the upstream itself, without a proxy; its CPU time is its own)",
            &[&["era", "in flight", "target"], &COST_HEADS[..]].concat(),
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
        let heads = [&["tools", "bytes", "target"], &COST_HEADS[..]].concat();
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
        let costs = ["calls/s", "p50 us", "p99 us", "cpu us", "cpu:rmcp", "p50:rmcp", "calls:rmcp"];
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
        let heads = ["sessions", "stream", "library", "before MiB", "KiB a session", "memory:rmcp"];
        calls + &table("memory of idle sessions, resident", &heads, rows.collect())
    }

    pub(super) fn goal_table(&self) -> String {
        let rows = self.goals.iter().map(|goal| {
            let measured = goal.measured.map_or(text("-"), |measured| number(measured, 2));
            vec![text(&goal.what), measured, text(&goal.wanted()), text(goal.verdict())]
        });
        table("goals", &["goal", "measured", "wanted", ""], rows.collect())
    }
}

const COST_HEADS: [&str; 6] = ["calls/s", "p50 us", "p99 us", "cpu us", "cpu:nginx", "p50:nginx"];

impl Cost {
    pub(super) fn new(rounds: &Rounds, base: Option<&Rounds>) -> Cost {
        Cost {
            calls_per_second: rounds.median(|sample| sample.calls_per_second),
            p50_us: rounds.median(|sample| sample.p50_us),
            p99_us: rounds.median(|sample| sample.p99_us),
            cpu_us: rounds.median(|sample| sample.cpu_us),
            ratios: base.map(|base| Ratios::new(rounds, base)),
        }
    }

    pub(super) fn cells(&self) -> Vec<Cell> {
        vec![
            number(self.calls_per_second, 0),
            number(self.p50_us, 0),
            number(self.p99_us, 0),
            number(self.cpu_us, 1),
            self.ratio(|ratios| ratios.cpu),
            self.ratio(|ratios| ratios.p50),
        ]
    }

    fn ratio(&self, of: impl Fn(&Ratios) -> f64) -> Cell {
        ratio(self.ratios.as_ref().map(of))
    }
}

fn ratio(ratio: Option<f64>) -> Cell {
    ratio.map_or(text("-"), |ratio| number(ratio, 2))
}

impl Ratios {
    fn new(rounds: &Rounds, base: &Rounds) -> Ratios {
        let ratio =
            |figure: fn(&Sample) -> f64| median(rounds.beside(base, |own, base| figure(own) / figure(base)));
        Ratios {
            calls_per_second: ratio(|sample| sample.calls_per_second),
            p50: ratio(|sample| sample.p50_us),
            cpu: ratio(|sample| sample.cpu_us),
        }
    }
}

impl CallRow {
    pub(super) fn new(target: Kind, load: &Load, rounds: &Rounds, nginx: Option<&Rounds>) -> CallRow {
        CallRow { target, era: load.era, in_flight: load.in_flight, cost: Cost::new(rounds, nginx) }
    }
}

/// Prints to standard output.
pub(super) fn show(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}
