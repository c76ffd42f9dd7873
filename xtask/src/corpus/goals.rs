//! What has to be reached.

use anyhow::ensure;

use super::Judged;
use super::report::Sum;

/// At least these parts of all operations, in percent.
pub(super) const TOOLS: f64 = 99.0;
pub(super) const FAITHFUL: f64 = 97.0;

/// At most this CPU time, in seconds: for all documents but the largest, and for that.
pub(super) const CPU_SECONDS: f64 = 5.0;
pub(super) const CPU_SECONDS_OF_GRAPH: f64 = 3.0;

/// At most so much memory for each byte of a document, and so many KiB beside it.
const MEMORY_PER_BYTE: u64 = 10;
const MEMORY_BESIDE: u64 = 50 << 10;

/// The memory that the reading of a document may take, in KiB.
pub(super) fn memory_allowed(bytes: usize) -> u64 {
    MEMORY_PER_BYTE * (bytes as u64 >> 10) + MEMORY_BESIDE
}

/// Fails where documents or operations are not what they have to be. Time and memory are shown, and decide nothing: a machine
/// that does other things too is slow.
pub(super) fn ensure_reached(all: &[Judged]) -> anyhow::Result<()> {
    let wrong: Vec<String> = all.iter().flat_map(wrong).collect();
    ensure!(wrong.is_empty(), "the corpus shows faults:\n{}", wrong.join("\n"));
    for is_graph in [false, true] {
        let sum = Sum::of(all.iter().filter(|judged| judged.document.is_graph() == is_graph));
        ensure!(
            sum.operations == 0 || (sum.tools_percent() >= TOOLS && sum.faithful_percent() >= FAITHFUL),
            "{:.1} % of the operations are tools, and {:.1} % faithful ones: {TOOLS} % and {FAITHFUL} % have to be",
            sum.tools_percent(),
            sum.faithful_percent()
        );
    }
    Ok(())
}

fn wrong(judged: &Judged) -> Vec<String> {
    let named = |wrong: &String| format!("{}: {wrong}", judged.document.name);
    judged.verdict.wrong.iter().map(named).collect()
}
