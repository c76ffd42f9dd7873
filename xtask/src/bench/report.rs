//! The figures, as rows that are printed and written as JSON. Nothing is measured here.

use std::io::Write;
use std::time::Duration;

use serde::Serialize;

use super::client::Era;
use super::goals::Goal;
use super::load::Load;
use super::sample::{Rounds, median};
use super::table::{Cell, number, table, text};
use super::targets::Kind;

/// All that a run of the bench saw. Each figure is the median over the rounds.
#[derive(Serialize)]
pub(super) struct Report {
    pub cpus: usize,
    pub rounds: usize,
    pub seconds_per_cell: f64,
    pub calls: Vec<CallRow>,
    pub memory: Vec<MemoryRow>,
    pub lists: Vec<ListRow>,
    pub layers: Vec<LayerRow>,
    pub start: Option<Start>,
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

/// What one request costs. A ratio is the median of the ratios to nginx within each round.
#[derive(Serialize)]
pub(super) struct Cost {
    pub calls_per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub cpu_us: f64,
    pub cpu_to_nginx: Option<f64>,
    pub p50_to_nginx: Option<f64>,
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

/// What a call costs without one layer of the gateway, and how much less that is: the median over the rounds, the
/// least and the most. Where the last two lie far apart the machine was too busy to tell.
#[derive(Serialize)]
pub(super) struct LayerRow {
    pub without: &'static str,
    pub cpu_us: f64,
    pub saved_us: f64,
    pub saved_least_us: f64,
    pub saved_most_us: f64,
}

/// From exec to the first list that holds the upstream's tools.
#[derive(Serialize)]
pub(super) struct Start {
    pub runs: usize,
    pub min_ms: f64,
    pub median_ms: f64,
}

impl Report {
    pub(super) fn new(rounds: usize, cell: Duration) -> Report {
        Report {
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            rounds,
            seconds_per_cell: cell.as_secs_f64(),
            calls: Vec::new(),
            memory: Vec::new(),
            lists: Vec::new(),
            layers: Vec::new(),
            start: None,
            goals: Vec::new(),
        }
    }

    /// Calls, then memory.
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
        calls + &table("memory, MiB resident", &["target", "idle", "peak"], rows.collect())
    }

    pub(super) fn list_table(&self) -> String {
        let rows = self.lists.iter().map(|row| {
            let cells = [number(row.tools as f64, 0), number(row.bytes as f64, 0), text(row.target.name())];
            cells.into_iter().chain(row.cost.cells()).collect()
        });
        let heads = [&["tools", "bytes", "target"], &COST_HEADS[..]].concat();
        table("tools/list, modern, 1 in flight", &heads, rows.collect())
    }

    pub(super) fn layer_table(&self) -> String {
        let rows = self.layers.iter();
        let rows = rows.map(|row| {
            let figures = [row.cpu_us, row.saved_us, row.saved_least_us, row.saved_most_us];
            std::iter::once(text(row.without)).chain(figures.map(|figure| number(figure, 1))).collect()
        });
        let heads = ["without", "cpu us", "saved us", "least", "most"];
        table("a layer's cost, modern, 16 in flight", &heads, rows.collect())
    }

    pub(super) fn start_table(&self) -> String {
        let rows = self.start.iter();
        let rows = rows.map(|start| {
            vec![number(start.runs as f64, 0), number(start.min_ms, 1), number(start.median_ms, 1)]
        });
        table("from exec to the first list", &["runs", "min ms", "median ms"], rows.collect())
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
    pub(super) fn new(rounds: &Rounds, nginx: Option<&Rounds>) -> Cost {
        Cost {
            calls_per_second: rounds.median(|sample| sample.calls_per_second),
            p50_us: rounds.median(|sample| sample.p50_us),
            p99_us: rounds.median(|sample| sample.p99_us),
            cpu_us: rounds.median(|sample| sample.cpu_us),
            cpu_to_nginx: nginx
                .map(|nginx| median(rounds.beside(nginx, |own, nginx| own.cpu_us / nginx.cpu_us))),
            p50_to_nginx: nginx
                .map(|nginx| median(rounds.beside(nginx, |own, nginx| own.p50_us / nginx.p50_us))),
        }
    }

    fn cells(&self) -> Vec<Cell> {
        let ratio = |ratio: Option<f64>| ratio.map_or(text("-"), |ratio| number(ratio, 2));
        vec![
            number(self.calls_per_second, 0),
            number(self.p50_us, 0),
            number(self.p99_us, 0),
            number(self.cpu_us, 1),
            ratio(self.cpu_to_nginx),
            ratio(self.p50_to_nginx),
        ]
    }
}

impl CallRow {
    pub(super) fn new(target: Kind, load: &Load, rounds: &Rounds, nginx: Option<&Rounds>) -> CallRow {
        CallRow { target, era: load.era, in_flight: load.in_flight, cost: Cost::new(rounds, nginx) }
    }
}

impl LayerRow {
    pub(super) fn new(without: &'static str, whole: &Rounds, reduced: &Rounds) -> LayerRow {
        let saved = whole.beside(reduced, |whole, reduced| whole.cpu_us - reduced.cpu_us);
        LayerRow {
            without,
            cpu_us: reduced.median(|sample| sample.cpu_us),
            saved_least_us: saved.iter().copied().fold(f64::INFINITY, f64::min),
            saved_most_us: saved.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            saved_us: median(saved),
        }
    }
}

/// Prints to standard output.
pub(super) fn show(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}
