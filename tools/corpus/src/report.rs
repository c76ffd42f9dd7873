//! The results as a page, and the faults as a list.

use std::fmt::Write;

use super::JudgedDocument;
use super::goals::{self, memory_limit};
use super::judge::{JudgeFinding, JudgeVerdict};

/// Maximum number of unfaithful operations that are printed.
const MAX_FINDINGS: usize = 40;

/// Maximum number of documents whose first broken example is listed.
const MAX_BROKEN_EXAMPLES: usize = 8;

/// Causes of known exceptions, which are in the documents: a part of a document's name, of a reason, and the cause.
const CAUSES: [(&str, &str, &str); 4] = [
    ("malicious", "unsatisfiable", "the path is an attack on generators of code"),
    ("peertube", "unsatisfiable", "the body is a list, but a multipart form has named parts only"),
    ("Xero", "the body is no object", "the schema has properties and no type, and its example is a list"),
    ("", "has the name of a parameter", "an undeclared member cannot have an argument of this name"),
];

/// The sum of several documents.
#[derive(Default)]
pub(super) struct CorpusSummary {
    documents: usize,
    accepted: usize,
    invalid: usize,
    pub(super) operations: usize,
    impossible: usize,
    tools: usize,
    faithful: usize,
    satisfiable: usize,
    legal: usize,
    examples: usize,
    carried: usize,
    broken: usize,
    texts: usize,
    lost_texts: usize,
    tokens: usize,
    uncallable: usize,
    cut: usize,
    cpu_seconds: f64,
    slowest: f64,
    /// Peak memory of any document, in KiB.
    peak: u64,
    /// Maximum share of the memory limit that a document used.
    memory: f64,
}

impl CorpusSummary {
    pub(super) fn of<'j>(all: impl Iterator<Item = &'j JudgedDocument>) -> Self {
        let mut sum = Self::default();
        for judged @ JudgedDocument { summary: made, verdict, .. } in all {
            sum.documents += 1;
            sum.accepted += usize::from(made.refused.is_none());
            sum.invalid += usize::from(verdict.invalid.is_some());
            sum.operations += verdict.operations;
            sum.impossible += verdict.impossible.len();
            sum.tools += verdict.tools;
            sum.faithful += verdict.faithful;
            sum.satisfiable += verdict.satisfiable;
            sum.legal += verdict.legal;
            sum.examples += verdict.examples;
            sum.carried += verdict.carried;
            sum.broken += reasons(&verdict.broken_examples).count();
            sum.texts += verdict.texts;
            sum.lost_texts += reasons(&verdict.lost_texts).count();
            sum.tokens += made.tokens;
            sum.uncallable += uncallable(judged).count();
            sum.cut += verdict.cut;
            sum.cpu_seconds += made.cpu_seconds;
            sum.slowest = sum.slowest.max(made.cpu_seconds);
            sum.peak = sum.peak.max(made.peak_kib);
            sum.memory = sum.memory.max(made.peak_kib as f64 / memory_limit(made.bytes) as f64);
        }
        sum
    }

    pub(super) fn tools_percent(&self) -> f64 {
        percent(self.tools, self.operations)
    }

    pub(super) fn faithful_percent(&self) -> f64 {
        percent(self.faithful, self.operations)
    }

    pub(super) fn examples_percent(&self) -> f64 {
        percent(self.carried, self.examples)
    }

    pub(super) fn texts_percent(&self) -> f64 {
        percent(self.texts - self.lost_texts, self.texts)
    }

    fn row(&self, name: &str) -> String {
        format!(
            "| {name} | {} | {} | {} | {} | {} | {:.2} % | {:.2} % | {:.2} % | {} | {:.2} % | {} | {:.2} % | {} | {} | {:.2} % | {} | {} | {:.2} | {} MB |\n",
            self.documents,
            self.accepted,
            self.invalid,
            self.operations,
            self.impossible,
            self.tools_percent(),
            self.faithful_percent(),
            percent(self.satisfiable, self.tools),
            self.uncallable,
            percent(self.legal, self.tools),
            self.examples,
            self.examples_percent(),
            self.broken,
            self.texts,
            self.texts_percent(),
            self.tokens,
            self.cut,
            self.cpu_seconds,
            self.peak >> 10,
        )
    }
}

/// A share of nothing is 100 %.
fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 100.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// The page of the documentation.
pub(super) fn page(all: &[JudgedDocument]) -> String {
    let of =
        |is_in: fn(&JudgedDocument) -> bool| CorpusSummary::of(all.iter().filter(|judged| is_in(judged)));
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
    page += &findings_list("Tools that cannot be called", all, |verdict| &verdict.unusable);
    page += &findings_list("Texts that are lost", all, |verdict| &verdict.lost_texts);
    page += &findings_list("Examples that are not accepted", all, |verdict| &verdict.refused_examples);
    page += &broken_examples(all);
    page += "\n## Refused documents\n\nInvalid documents, rightly refused:\n\n";
    for JudgedDocument { document, summary: made, verdict } in all {
        if let (Some(refused), Some(invalid)) = (&made.refused, &verdict.invalid) {
            // Omit the folder of the unpacked document.
            let refused = refused.replace(&*document.root.to_string_lossy(), "");
            let _infallible = writeln!(page, "- `{}`{refused} (the judge: {invalid})", document.name);
        }
    }
    page
}

/// Lists the findings of one kind, if there are any.
fn findings_list(title: &str, all: &[JudgedDocument], of: fn(&JudgeVerdict) -> &Vec<JudgeFinding>) -> String {
    let text: String = findings_of(all, of).collect();
    match text.is_empty() {
        true => text,
        false => format!("\n## {title}\n\n{text}"),
    }
}

/// Lists the first examples that break their own documents, one of each document.
fn broken_examples(all: &[JudgedDocument]) -> String {
    let broken: Vec<&JudgedDocument> =
        all.iter().filter(|judged| !judged.verdict.broken_examples.is_empty()).collect();
    let number: usize = broken.iter().map(|judged| reasons(&judged.verdict.broken_examples).count()).sum();
    if number == 0 {
        return String::new();
    }
    let first = broken.iter().take(MAX_BROKEN_EXAMPLES);
    let first = first
        .filter_map(|judged| findings_of(std::slice::from_ref(*judged), |it| &it.broken_examples).next());
    format!(
        "\n## Examples that break their own documents\n\n{number} in {} documents, such as:\n\n{}",
        broken.len(),
        first.collect::<String>()
    )
}

/// One line for each finding.
fn findings_of<'j>(
    all: impl IntoIterator<Item = &'j JudgedDocument>,
    of: fn(&JudgeVerdict) -> &Vec<JudgeFinding>,
) -> impl Iterator<Item = String> {
    all.into_iter().flat_map(move |judged| {
        of(&judged.verdict).iter().map(|JudgeFinding { method, path, reasons }| {
            let reasons: Vec<String> = reasons.iter().map(|reason| shortened(reason)).collect();
            let (name, path) = (&judged.document.name, shortened(path));
            // Texts of documents may have links.
            let texts = reasons.join("; ").replace('[', "\\[");
            format!("- `{name}`: `{method} {path}`: {texts}{}\n", cause(name, &reasons))
        })
    })
}

/// The known cause of a finding, in parentheses.
fn cause(document: &str, reasons: &[String]) -> String {
    let is_of = |(name, kind, _): &&(&str, &str, &str)| {
        document.contains(name) && reasons.iter().any(|reason| reason.contains(kind))
    };
    CAUSES.iter().find(is_of).map(|(_, _, cause)| format!(" ({cause})")).unwrap_or_default()
}

/// The tools that no arguments satisfy, though their documents are not known to make them impossible.
pub(super) fn uncallable(judged: &JudgedDocument) -> impl Iterator<Item = &JudgeFinding> {
    let is_unknown = |finding: &&JudgeFinding| {
        let mut reasons = finding.reasons.iter();
        reasons.any(|reason| reason.starts_with("unsatisfiable"))
            && cause(&judged.document.name, &finding.reasons).is_empty()
    };
    judged.verdict.unusable.iter().filter(is_unknown)
}

/// All reasons of these findings.
fn reasons(findings: &[JudgeFinding]) -> impl Iterator<Item = &String> {
    findings.iter().flat_map(|finding| &finding.reasons)
}

/// The beginning of a text, in one line. Paths of some documents are programs.
fn shortened(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(120).collect()
}

fn peers(others: &CorpusSummary) -> String {
    format!(
        "\n## Comparison with other converters\n\n\
         The others were measured elsewhere, on 300 documents that include the single-file ones here, and by a less strict judge (no types, values, required or size). All figures are without Microsoft Graph.\n\n\
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

fn goals_table(others: &CorpusSummary, graph: &CorpusSummary) -> String {
    let mut table = "\n## Goals\n\n| goal | actual | |\n| --- | --- | --- |\n".to_owned();
    let mut row = |goal: String, actual: String, is_met: bool| {
        let met = if is_met { "met" } else { "not met" };
        let _infallible = writeln!(table, "| {goal} | {actual} | {met} |");
    };
    for (name, sum, seconds) in [
        ("all but Microsoft Graph", others, goals::CPU_SECONDS),
        ("Microsoft Graph", graph, goals::CPU_SECONDS_OF_GRAPH),
    ] {
        let (tools, faithful) = (sum.tools_percent(), sum.faithful_percent());
        row(
            format!("{name}: texts kept, at least {} %", goals::TEXTS),
            format!("{:.2} %", sum.texts_percent()),
            sum.texts_percent() >= goals::TEXTS,
        );
        row(
            format!("{name}: no tool that cannot be called"),
            sum.uncallable.to_string(),
            sum.uncallable == 0,
        );
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
        let actual = format!("{:.2} s", sum.cpu_seconds);
        row(format!("{name}: CPU time, under {seconds} s"), actual, sum.cpu_seconds < seconds);
        let actual = format!("{:.0} % of the limit", 100.0 * sum.memory);
        row(format!("{name}: memory, under 10 times the document and 50 MB"), actual, sum.memory < 1.0);
    }
    table
}

/// The first unfaithful operations, and the number of operations with each kind of fault.
pub(super) fn findings(all: &[JudgedDocument]) -> String {
    let mut text = String::new();
    let unfaithful =
        all.iter().flat_map(|judged| judged.verdict.unfaithful.iter().map(move |it| (judged, it)));
    let unfaithful: Vec<(&JudgedDocument, &JudgeFinding)> = unfaithful.collect();
    let mut kinds = std::collections::BTreeMap::<&str, usize>::new();
    for (_, JudgeFinding { reasons, .. }) in &unfaithful {
        let mut mine: Vec<&str> = reasons.iter().map(|reason| kind(reason)).collect();
        mine.sort_unstable();
        mine.dedup();
        mine.into_iter().for_each(|kind| *kinds.entry(kind).or_default() += 1);
    }
    let _infallible = writeln!(text, "{} unfaithful operations: {kinds:?}", unfaithful.len());
    for (judged, JudgeFinding { method, path, reasons }) in unfaithful.iter().take(MAX_FINDINGS) {
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
