//! The page `docs/benchmarks.md` and its plots: the tables between markers are those of the latest runs.

use std::path::PathBuf;

use anyhow::Context;
use xtask_client::McpEra;

use super::plot::{self, BarGroup};
use super::report::BenchReport;
use super::targets::TargetKind;

/// The end of every block.
const END: &str = "<!-- bench: end -->";

/// Targets in the plot.
const PLOTTED: [TargetKind; 5] =
    [TargetKind::Nginx, TargetKind::Hop, TargetKind::Gateway, TargetKind::Unaudited, TargetKind::Operated];

/// Writes the tables and plots of everything that was measured; the others stay.
pub(super) fn write(report: &BenchReport) -> anyhow::Result<()> {
    let page = docs("benchmarks.md");
    let mut text = std::fs::read_to_string(&page).with_context(|| format!("read {}", page.display()))?;
    for (name, block) in blocks(report) {
        if let Some(block) = block {
            text = replace(&text, name, &block)?;
        }
    }
    std::fs::write(&page, text).with_context(|| format!("write {}", page.display()))?;
    let plots = [("benchmarks-cpu.svg", cpu_plot(report)), ("benchmarks-memory.svg", memory_plot(report))];
    for (name, plot) in plots {
        if let Some(plot) = plot {
            std::fs::write(docs(name), plot).with_context(|| format!("write {name}"))?;
        }
    }
    Ok(())
}

fn docs(name: &str) -> PathBuf {
    xtask_support::root().join("docs").join(name)
}

/// The blocks of the page, and their contents; `None` for what the run did not measure.
fn blocks(report: &BenchReport) -> Vec<(&'static str, Option<String>)> {
    let block = |is_measured: bool, table: String| is_measured.then(|| format!("```text\n{table}```"));
    vec![
        ("run", report.calls.first().map(|_| report.run_line())),
        ("calls", block(!report.calls.is_empty(), report.call_table())),
        ("lists", block(!report.lists.is_empty(), report.list_table())),
        ("layers", block(!report.layers.is_empty(), report.layer_table())),
        ("start", block(report.start.is_some(), report.start_table())),
        ("instructions", block(!report.instructions.is_empty(), report.instruction_table())),
        ("growth", block(!report.growth.is_empty(), report.growth_table())),
        ("messages", block(!report.messages.is_empty(), report.message_table())),
        ("memory", block(!report.soak.is_empty(), report.soak_table())),
        ("openapi", block(!report.openapi.is_empty(), report.openapi_table())),
        ("grpc", block(!report.grpc.is_empty(), report.grpc_table())),
        ("bus", block(!report.bus.is_empty(), report.bus_table())),
        ("replicas", block(!report.replicas.is_empty(), report.replica_table())),
        ("operation", block(!report.operation.is_empty(), report.operation_table())),
        ("sdk", block(!report.libraries.is_empty(), report.library_table())),
        ("functions", block(!report.functions.is_empty(), report.function_table())),
        ("goals", block(!report.calls.is_empty(), report.goal_table())),
    ]
}

/// Replaces the block of a name.
fn replace(page: &str, name: &str, block: &str) -> anyhow::Result<String> {
    let begin = format!("<!-- bench: {name} -->\n");
    let (before, rest) = page.split_once(&begin).with_context(|| format!("no block `{name}` in the page"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("no end of the block `{name}`"))?;
    Ok(format!("{before}{begin}{block}\n{END}{after}"))
}

/// CPU time of a call: a group for each load, a bar for each target.
fn cpu_plot(report: &BenchReport) -> Option<String> {
    let loads = [McpEra::Legacy, McpEra::Modern].into_iter().flat_map(|era| [(era, 16), (era, 64)]);
    let cpu = |target: TargetKind, (era, in_flight): (McpEra, usize)| {
        let is_match =
            |row: &&super::report::CallRow| (row.target, row.era, row.in_flight) == (target, era, in_flight);
        report.calls.iter().find(is_match).map(|row| row.cost.cpu_us)
    };
    let group = |load: (McpEra, usize)| {
        let values = PLOTTED.iter().map(|target| cpu(*target, load)).collect::<Option<Vec<_>>>()?;
        Some(BarGroup { label: format!("{}, {} in flight", load.0.name(), load.1), values })
    };
    let groups = loads.map(group).collect::<Option<Vec<_>>>()?;
    Some(plot::bars("CPU time of a call, in microseconds", &PLOTTED.map(TargetKind::name), &groups))
}

/// Resident memory over audited calls.
fn memory_plot(report: &BenchReport) -> Option<String> {
    let points: Vec<_> = report.soak.iter().map(|point| (point.calls as f64, point.resident_mib)).collect();
    (points.len() > 1)
        .then(|| plot::line("Resident memory of the gateway over audited calls, in MiB", "calls", &points))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn block_is_replaced_between_its_markers() {
        let page = "a\n<!-- bench: x -->\nold\n<!-- bench: end -->\nb\n";
        assert_eq!(replace(page, "x", "new").unwrap(), page.replace("old", "new"));
        assert_eq!(replace(page, "y", "new").unwrap_err().to_string(), "no block `y` in the page");
    }

    #[test]
    fn page_has_all_blocks_and_plots() {
        let page = std::fs::read_to_string(docs("benchmarks.md")).unwrap();
        let report = BenchReport::new(1, Duration::from_secs(1));
        for (name, _) in blocks(&report) {
            replace(&page, name, "").unwrap();
        }
        for plot in ["(benchmarks-cpu.svg)", "(benchmarks-memory.svg)"] {
            assert!(page.contains(plot), "{plot} is not in the page");
        }
    }

    #[test]
    fn nothing_is_written_of_what_was_not_measured() {
        let report = BenchReport::new(1, Duration::from_secs(1));
        assert!(blocks(&report).iter().all(|(_, block)| block.is_none()));
        assert!(cpu_plot(&report).is_none() && memory_plot(&report).is_none());
    }
}
