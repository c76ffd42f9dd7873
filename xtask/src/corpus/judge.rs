//! The judge, and what it says.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde::Deserialize;
use serde_json::json;

use super::documents::Document;
use crate::peers::Peers;
use crate::process;

/// What the judge says of one document.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Verdict {
    /// Why nothing can be made of it; none where something can.
    pub(super) invalid: Option<String>,
    /// How many operations it describes, without those that it makes impossible.
    pub(super) operations: usize,
    /// Operations that cannot be called as they are described, and why.
    pub(super) impossible: Vec<Finding>,
    /// How many operations became tools.
    pub(super) tools: usize,
    /// How many of the tools are faithful.
    pub(super) faithful: usize,
    /// How many of these say that their schema is cut for size.
    pub(super) cut: usize,
    /// What is wrong with the others.
    pub(super) unfaithful: Vec<Finding>,
    /// What is wrong with the answer as a whole.
    pub(super) wrong: Vec<String>,
}

/// An operation and what is to be said of it.
#[derive(Debug, Deserialize)]
pub(super) struct Finding {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) reasons: Vec<String>,
}

/// Asks the judge, which ends badly if it does not notice faults that are put into what was made.
pub(super) fn ask(documents: &[Document], lines: &[PathBuf], folder: &Path) -> anyhow::Result<Vec<Verdict>> {
    let (cases, verdicts) = (folder.join("cases.json"), folder.join("verdicts.json"));
    let all = documents.iter().zip(lines);
    let all = all.map(|(document, lines)| json!({"document": document.root, "made": lines}));
    std::fs::write(&cases, json!(all.collect::<Vec<_>>()).to_string()).context("write the cases")?;
    let judge = crate::root().join("fixtures/openapi-judge/judge.py");
    process::run(Command::new(Peers::installed()?.python()).arg(judge).arg(&cases).arg(&verdicts))?;
    let text = std::fs::read_to_string(&verdicts).context("read the verdicts")?;
    serde_json::from_str(&text).context("read the verdicts")
}
