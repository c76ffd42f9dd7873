//! `cargo xtask corpus`: converts real OpenAPI documents to tools, and has an independent judge check which of these
//! are faithful.
//!
//! The documents are not part of the repository; `TOOLYARD_CORPORA` names their folder. Each is converted in a
//! process of its own, which measures its memory and isolates crashes. The judge (`fixtures/openapi-judge`) is
//! written in Python, reads the documents itself, and proves that it detects faults.

mod arguments;
mod convert;
mod documents;
mod goals;
mod judge;
mod report;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use self::convert::ConversionSummary;
use self::documents::{CorpusDocument, DocumentCorpus};
use self::judge::JudgeVerdict;
use crate::process;

/// Variable with the folder of the documents.
const CORPORA_VARIABLE: &str = "TOOLYARD_CORPORA";

/// Arguments of `cargo xtask corpus`.
#[derive(clap::Args)]
pub(crate) struct CorpusArgs {
    /// Write the table to `docs/openapi-corpus.md`
    #[arg(long)]
    write: bool,
    /// Convert only documents whose name contains NAME
    #[arg(long, value_name = "NAME", conflicts_with = "write")]
    only: Option<String>,
    /// Keep the converted documents in FOLDER, as JSON lines
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    #[command(subcommand)]
    process: Option<CorpusProcess>,
}

/// Processes that this command starts.
#[derive(clap::Subcommand)]
enum CorpusProcess {
    /// Convert one document
    #[command(hide = true)]
    Convert { root: PathBuf, made: PathBuf },
}

/// A document, the summary of its conversion, and the verdict of the judge.
struct JudgedDocument {
    document: CorpusDocument,
    summary: ConversionSummary,
    verdict: JudgeVerdict,
}

/// Converts and judges in an optimised build, if the documents are available.
pub(crate) fn run(args: &CorpusArgs) -> anyhow::Result<()> {
    if let Some(CorpusProcess::Convert { root, made }) = &args.process {
        return convert::run(root, made);
    }
    let Some(corpora) = corpora()? else { return Ok(()) };
    if cfg!(debug_assertions) {
        return crate::builds::rerun_optimised();
    }
    convert_and_judge(args, &corpora)
}

/// As [`run`], for `cargo xtask test`.
pub(crate) fn check() -> anyhow::Result<()> {
    match corpora()? {
        Some(_) => process::run(Command::new(crate::builds::build_optimised()?).arg("corpus")),
        None => Ok(()),
    }
}

/// The folder of the documents. An unset variable skips the corpus with a message; a missing folder is an error.
fn corpora() -> anyhow::Result<Option<PathBuf>> {
    let Some(folder) = std::env::var_os(CORPORA_VARIABLE).filter(|folder| !folder.is_empty()) else {
        println!("skipped the corpus: {CORPORA_VARIABLE} is not set");
        return Ok(None);
    };
    let folder = Path::new(&folder).join("openapi");
    ensure!(folder.is_dir(), "{CORPORA_VARIABLE}: no folder {}", folder.display());
    Ok(Some(folder))
}

fn convert_and_judge(args: &CorpusArgs, corpora: &Path) -> anyhow::Result<()> {
    let corpus = DocumentCorpus::unpack(corpora)?;
    let documents = corpus.documents(args.only.as_deref().unwrap_or_default())?;
    ensure!(!documents.is_empty(), "no matching document");
    let folder = tempfile::TempDir::new().context("create a folder")?;
    let folder = args.keep.as_deref().unwrap_or(folder.path());
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let lines = |number: usize| folder.join(format!("{number:03}.jsonl"));
    let mut summaries = Vec::with_capacity(documents.len());
    for (number, document) in documents.iter().enumerate() {
        summaries.push(convert::convert_in_process(document, &lines(number))?);
    }
    let verdicts =
        judge::run_judge(&documents, &(0..documents.len()).map(lines).collect::<Vec<_>>(), folder)?;
    ensure!(verdicts.len() == documents.len(), "the judge has not judged each document");
    let all = documents.into_iter().zip(summaries).zip(verdicts);
    let all: Vec<JudgedDocument> =
        all.map(|((document, made), verdict)| JudgedDocument { document, summary: made, verdict }).collect();
    let page = report::page(&all);
    println!("{page}\n{}", report::findings(&all));
    if args.write {
        std::fs::write(crate::root().join("docs/openapi-corpus.md"), &page).context("write the table")?;
    }
    goals::ensure_met(&all)
}
