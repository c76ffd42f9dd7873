//! The goals of the corpus.

use anyhow::ensure;

use super::JudgedDocument;
use super::report::{self, CorpusSummary};

/// Minimum shares of all operations, in percent.
pub(super) const TOOLS: f64 = 99.0;
pub(super) const FAITHFUL: f64 = 97.0;

/// Minimum share of texts and examples that tools keep, in percent.
pub(super) const TEXTS: f64 = 99.0;

/// Maximum CPU time in seconds: for all documents but the largest, and for the largest.
pub(super) const CPU_SECONDS: f64 = 5.0;
pub(super) const CPU_SECONDS_OF_GRAPH: f64 = 3.0;

/// Maximum memory per byte of a document, and additional KiB.
const MEMORY_PER_BYTE: u64 = 10;
const MEMORY_BESIDE: u64 = 50 << 10;

/// Maximum memory for reading a document, in KiB.
pub(super) fn memory_limit(bytes: usize) -> u64 {
    MEMORY_PER_BYTE * (bytes as u64 >> 10) + MEMORY_BESIDE
}

/// Errors if documents or operations miss their goals. Time and memory are reported only, as a busy machine is slow.
pub(super) fn ensure_met(all: &[JudgedDocument]) -> anyhow::Result<()> {
    let wrong: Vec<String> = all.iter().flat_map(faults_of).collect();
    ensure!(wrong.is_empty(), "faults in the corpus:\n{}", wrong.join("\n"));
    let uncallable: Vec<String> = all.iter().flat_map(uncallable_tools).collect();
    ensure!(uncallable.is_empty(), "tools that cannot be called:\n{}", uncallable.join("\n"));
    for is_graph in [false, true] {
        let sum = CorpusSummary::of(all.iter().filter(|judged| judged.document.is_graph() == is_graph));
        ensure!(
            sum.operations == 0 || (sum.tools_percent() >= TOOLS && sum.faithful_percent() >= FAITHFUL),
            "{:.1} % of the operations are tools and {:.1} % are faithful tools; the goals are {TOOLS} % and {FAITHFUL} %",
            sum.tools_percent(),
            sum.faithful_percent()
        );
        let texts = sum.texts_percent();
        ensure!(texts >= TEXTS, "tools keep {texts:.1} % of the texts; the goal is {TEXTS} %");
    }
    Ok(())
}

fn faults_of(judged: &JudgedDocument) -> Vec<String> {
    let named = |wrong: &String| format!("{}: {wrong}", judged.document.name);
    judged.verdict.wrong.iter().map(named).collect()
}

fn uncallable_tools(judged: &JudgedDocument) -> impl Iterator<Item = String> {
    report::uncallable(judged).map(|finding| {
        format!(
            "{}: {} {}: {}",
            judged.document.name,
            finding.method,
            finding.path,
            finding.reasons.join("; ")
        )
    })
}
