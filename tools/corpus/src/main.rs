//! `cargo xtask corpus`: converts real OpenAPI documents to tools, and has an independent judge check which of these
//! are faithful.
//!
//! The documents are not part of the repository; `TOOLYARD_CORPORA` names their folder. Each is converted in a
//! process of its own, which measures its memory and isolates crashes. The judge (`fixtures/openapi-judge`) is
//! written in Python, reads the documents itself, and proves that it detects faults.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a developer's tool: it starts other programs and prints to the terminal"
)]

mod arguments;
mod convert;
mod documents;
mod examples;
mod goals;
mod judge;
mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Parser;
use xtask_support::CORPORA_VARIABLE;

use self::convert::ConversionSummary;
use self::documents::{CorpusDocument, DocumentCorpus};
use self::judge::JudgeVerdict;

/// Server of sample requests: the documents' own may be relative.
const SAMPLE_SERVER: &str = "https://service.example";

/// Convert real OpenAPI documents to tools and judge the result
#[derive(Parser)]
#[command(bin_name = "cargo xtask corpus")]
struct CorpusArgs {
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
    Convert { root: PathBuf, examples: PathBuf, made: PathBuf },
}

/// A document, the summary of its conversion, and the verdict of the judge.
struct JudgedDocument {
    document: CorpusDocument,
    summary: ConversionSummary,
    verdict: JudgeVerdict,
}

fn main() -> ExitCode {
    xtask_support::exit_code(execute())
}

/// Converts and judges if the documents are available.
fn execute() -> anyhow::Result<()> {
    let args = CorpusArgs::parse();
    if let Some(CorpusProcess::Convert { root, examples, made }) = &args.process {
        return convert::run(root, examples, made);
    }
    ensure!(
        !(args.write && cfg!(debug_assertions)),
        "times of a debug build mean nothing: run `cargo xtask corpus --write`"
    );
    match xtask_support::corpora("openapi")? {
        Some(corpora) => convert_and_judge(&args, &corpora.join("openapi")),
        None => {
            println!("skipped the corpus: {CORPORA_VARIABLE} is not set");
            Ok(())
        }
    }
}

fn convert_and_judge(args: &CorpusArgs, corpora: &Path) -> anyhow::Result<()> {
    let corpus = DocumentCorpus::unpack(corpora)?;
    let documents = corpus.documents(args.only.as_deref().unwrap_or_default())?;
    ensure!(!documents.is_empty(), "no matching document");
    let folder = tempfile::TempDir::new().context("create a folder")?;
    let folder = args.keep.as_deref().unwrap_or(folder.path());
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let files = |suffix: &str| -> Vec<PathBuf> {
        (0..documents.len()).map(|number| folder.join(format!("{number:03}{suffix}.jsonl"))).collect()
    };
    let (lines, examples) = (files(""), files("-examples"));
    examples::extract(&documents, &examples, folder)?;
    let mut summaries = Vec::with_capacity(documents.len());
    for ((document, examples), lines) in documents.iter().zip(&examples).zip(&lines) {
        summaries.push(convert::convert_in_process(document, examples, lines)?);
    }
    let verdicts = judge::run_judge(&documents, &lines, folder)?;
    ensure!(verdicts.len() == documents.len(), "the judge has not judged each document");
    let all = documents.into_iter().zip(summaries).zip(verdicts);
    let all: Vec<JudgedDocument> =
        all.map(|((document, made), verdict)| JudgedDocument { document, summary: made, verdict }).collect();
    let page = report::page(&all);
    println!("{page}\n{}", report::findings(&all));
    if args.write {
        std::fs::write(xtask_support::root().join("docs/openapi-corpus.md"), &page)
            .context("write the table")?;
    }
    goals::ensure_met(&all)
}
