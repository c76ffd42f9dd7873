//! The judge and its verdicts.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde::Deserialize;
use serde_json::json;
use xtask_support::peers::PeerSoftware;
use xtask_support::process;

use super::documents::CorpusDocument;

/// The verdict of the judge on one document.
#[derive(Debug, Default, Deserialize)]
pub(super) struct JudgeVerdict {
    /// Reason why the document is invalid; `None` if it is valid.
    pub(super) invalid: Option<String>,
    /// Number of operations, without impossible ones.
    pub(super) operations: usize,
    /// Operations that cannot be called as described, and the reasons.
    pub(super) impossible: Vec<JudgeFinding>,
    /// Number of operations that became tools.
    pub(super) tools: usize,
    /// Number of faithful tools.
    pub(super) faithful: usize,
    /// Number of faithful tools whose schema is marked as pruned for size.
    pub(super) cut: usize,
    /// Number of tools with an argument that their schema accepts and that is sent.
    pub(super) satisfiable: usize,
    /// Number of tools whose arguments have names that the interfaces of models accept.
    pub(super) legal: usize,
    /// Tools that are not satisfiable or have illegal names of arguments, and the reasons.
    pub(super) unusable: Vec<JudgeFinding>,
    /// Number of judged examples of bodies that their document allows.
    pub(super) examples: usize,
    /// Number of these that the tool accepts and sends as they are.
    pub(super) carried: usize,
    /// The others, and the reasons.
    pub(super) refused_examples: Vec<JudgeFinding>,
    /// Examples that break the schema of their own document, and the place.
    pub(super) broken_examples: Vec<JudgeFinding>,
    /// Number of texts and examples that tools have to keep.
    pub(super) texts: usize,
    /// Those that are lost.
    pub(super) lost_texts: Vec<JudgeFinding>,
    /// The faults of the other tools.
    pub(super) unfaithful: Vec<JudgeFinding>,
    /// Faults of the conversion as a whole.
    pub(super) wrong: Vec<String>,
}

/// An operation with its faults.
#[derive(Debug, Deserialize)]
pub(super) struct JudgeFinding {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) reasons: Vec<String>,
}

/// Runs the judge, which fails if it does not detect the faults that it injects into the results.
pub(super) fn run_judge(
    documents: &[CorpusDocument],
    lines: &[PathBuf],
    folder: &Path,
) -> anyhow::Result<Vec<JudgeVerdict>> {
    let (cases, verdicts) = (folder.join("cases.json"), folder.join("verdicts.json"));
    let all = documents.iter().zip(lines);
    let all = all.map(|(document, lines)| json!({"document": document.root, "made": lines}));
    std::fs::write(&cases, json!(all.collect::<Vec<_>>()).to_string()).context("write the cases")?;
    let judge = xtask_support::root().join("fixtures/openapi-judge/judge.py");
    process::run(Command::new(PeerSoftware::installed()?.python()).arg(judge).arg(&cases).arg(&verdicts))?;
    let text = std::fs::read_to_string(&verdicts).context("read the verdicts")?;
    serde_json::from_str(&text).context("read the verdicts")
}
