//! What was seen, as a page and as a list of what is wrong.

use std::fmt::Write;

use super::goals::{self, memory_allowed};
use super::{Judged, judge::Finding};

/// How many unfaithful operations are shown.
const SHOWN: usize = 40;

/// Several documents together.
#[derive(Default)]
pub(super) struct Sum {
    documents: usize,
    accepted: usize,
    invalid: usize,
    pub(super) operations: usize,
    impossible: usize,
    tools: usize,
    faithful: usize,
    cut: usize,
    cpu_seconds: f64,
    slowest: f64,
    /// The most memory of any, in KiB.
    peak: u64,
    /// How much of the memory that it may take a document has taken at most.
    memory: f64,
}

impl Sum {
    pub(super) fn of<'j>(all: impl Iterator<Item = &'j Judged>) -> Self {
        let mut sum = Self::default();
        for Judged { made, verdict, .. } in all {
            sum.documents += 1;
            sum.accepted += usize::from(made.refused.is_none());
            sum.invalid += usize::from(verdict.invalid.is_some());
            sum.operations += verdict.operations;
            sum.impossible += verdict.impossible.len();
            sum.tools += verdict.tools;
            sum.faithful += verdict.faithful;
            sum.cut += verdict.cut;
            sum.cpu_seconds += made.cpu_seconds;
            sum.slowest = sum.slowest.max(made.cpu_seconds);
            sum.peak = sum.peak.max(made.peak_kib);
            sum.memory = sum.memory.max(made.peak_kib as f64 / memory_allowed(made.bytes) as f64);
        }
        sum
    }

    pub(super) fn tools_percent(&self) -> f64 {
        percent(self.tools, self.operations)
    }

    pub(super) fn faithful_percent(&self) -> f64 {
        percent(self.faithful, self.operations)
    }

    fn row(&self, name: &str) -> String {
        format!(
            "| {name} | {} | {} | {} | {} | {} | {:.2} % | {:.2} % | {} | {:.2} | {} MB |\n",
            self.documents,
            self.accepted,
            self.invalid,
            self.operations,
            self.impossible,
            self.tools_percent(),
            self.faithful_percent(),
            self.cut,
            self.cpu_seconds,
            self.peak >> 10,
        )
    }
}

/// Of nothing, all is as it has to be.
fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 100.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// The page that is kept.
pub(super) fn page(all: &[Judged]) -> String {
    let of = |is_in: fn(&Judged) -> bool| Sum::of(all.iter().filter(|judged| is_in(judged)));
    let graph = of(|judged| judged.document.is_graph());
    let others = of(|judged| !judged.document.is_graph());
    let mut page = include_str!("head.md").to_owned();
    page += &of(|judged| judged.document.is_several_files()).row("several files each");
    page +=
        &of(|judged| !judged.document.is_several_files() && !judged.document.is_graph()).row("one file each");
    page += &others.row("all but Microsoft Graph");
    page += &graph.row("Microsoft Graph");
    page += &peers(&others);
    page += &goals_table(&others, &graph);
    page += "\n## Refused\n\nAs invalid, and rightly so:\n\n";
    for Judged { document, made, verdict } in all {
        if let (Some(refused), Some(invalid)) = (&made.refused, &verdict.invalid) {
            // Where the document was unpacked is nobody's concern.
            let refused = refused.replace(&*document.root.to_string_lossy(), "");
            let _infallible = writeln!(page, "- `{}`{refused} (the judge: {invalid})", document.name);
        }
    }
    page
}

fn peers(others: &Sum) -> String {
    format!(
        "\n## Beside others\n\n\
         Theirs were measured elsewhere and not by this judge: on 300 documents, of which those in one file here are a part, and by less (no types, values, required or size). All are without Microsoft Graph.\n\n\
         | | Toolyard | FastMCP 4.1.2 | npm openapi-mcp-generator 4.0.1 | same, dereferencing | rmcp-openapi 0.32 |\n\
         | --- | --- | --- | --- | --- | --- |\n\
         | documents without exception | {:.0} % | 70 % | 98 % | 91 % | 55 % |\n\
         | operations that become tools | {:.1} % | 77.8 % | 99.7 % | 95.4 % | 48.2 % |\n\
         | faithful tools | {:.1} % | 76.5 % | 39.8 % | 65.8 % | 26.3 % |\n\
         | CPU seconds, all / slowest | {:.1} / {:.1} | 81 / 25 | 9 / 0.8 | 25 / 6 | 8.5 / 3.5 |\n",
        percent(others.accepted, others.documents - others.invalid),
        others.tools_percent(),
        others.faithful_percent(),
        others.cpu_seconds,
        others.slowest,
    )
}

fn goals_table(others: &Sum, graph: &Sum) -> String {
    let mut table = "\n## Goals\n\n| goal | seen | |\n| --- | --- | --- |\n".to_owned();
    let mut row = |goal: String, seen: String, is_met: bool| {
        let met = if is_met { "met" } else { "not met" };
        let _infallible = writeln!(table, "| {goal} | {seen} | {met} |");
    };
    for (name, sum, seconds) in [
        ("all but Microsoft Graph", others, goals::CPU_SECONDS),
        ("Microsoft Graph", graph, goals::CPU_SECONDS_OF_GRAPH),
    ] {
        let (tools, faithful) = (sum.tools_percent(), sum.faithful_percent());
        row(
            format!("{name}: tools, at least {} %", goals::TOOLS),
            format!("{tools:.2} %"),
            tools >= goals::TOOLS,
        );
        row(
            format!("{name}: faithful, at least {} %", goals::FAITHFUL),
            format!("{faithful:.2} %"),
            faithful >= goals::FAITHFUL,
        );
        let seen = format!("{:.2} s", sum.cpu_seconds);
        row(format!("{name}: CPU time, under {seconds} s"), seen, sum.cpu_seconds < seconds);
        let seen = format!("{:.0} % of that at most", 100.0 * sum.memory);
        row(format!("{name}: memory, under 10 times the document and 50 MB"), seen, sum.memory < 1.0);
    }
    table
}

/// The first operations that are not as they have to be, and how often each kind of reason is met.
pub(super) fn findings(all: &[Judged]) -> String {
    let mut text = String::new();
    let found = all.iter().flat_map(|judged| judged.verdict.unfaithful.iter().map(move |it| (judged, it)));
    let found: Vec<(&Judged, &Finding)> = found.collect();
    let mut kinds = std::collections::BTreeMap::<&str, usize>::new();
    for (_, Finding { reasons, .. }) in &found {
        let mut mine: Vec<&str> = reasons.iter().map(|reason| kind(reason)).collect();
        mine.sort_unstable();
        mine.dedup();
        mine.into_iter().for_each(|kind| *kinds.entry(kind).or_default() += 1);
    }
    let _infallible = writeln!(text, "{} operations are not faithful: {kinds:?}", found.len());
    for (judged, Finding { method, path, reasons }) in found.iter().take(SHOWN) {
        let first: Vec<&str> = reasons.iter().take(3).map(String::as_str).collect();
        let _infallible = writeln!(
            text,
            "{}: {method} {path}: {} ({})",
            judged.document.name,
            first.join("; "),
            reasons.len()
        );
    }
    text
}

fn kind(reason: &str) -> &str {
    reason.split_once(':').map_or(reason, |(kind, _)| kind)
}
