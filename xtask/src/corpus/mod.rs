//! `cargo xtask corpus`: real OpenAPI documents become tools, and a judge that shares nothing with the converter says
//! which of these are faithful.
//!
//! The documents are not part of the repository: they lie where `TOOLYARD_CORPORA` says. Each one is converted in a process
//! of its own, so that its memory is its own, and one that ends the process costs no other. The judge
//! (`fixtures/openapi-judge`) is written in Python, reads the documents itself, and shows that it notices faults.

mod convert;
mod documents;
mod goals;
mod judge;
mod report;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use self::convert::Made;
use self::documents::{Corpus, Document};
use self::judge::Verdict;
use crate::process;

/// Where the documents are.
const VARIABLE: &str = "TOOLYARD_CORPORA";

/// What `cargo xtask corpus` takes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write the table to `docs/openapi-corpus.md`
    #[arg(long)]
    write: bool,
    /// Only documents whose name contains this
    #[arg(long, value_name = "NAME", conflicts_with = "write")]
    only: Option<String>,
    /// Keep what is made of each document in this folder, as JSON lines
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    #[command(subcommand)]
    part: Option<Part>,
}

/// What runs as a process of its own.
#[derive(clap::Subcommand)]
enum Part {
    /// Convert one document
    #[command(hide = true)]
    Convert { root: PathBuf, made: PathBuf },
}

/// A document, what was made of it, and what the judge says of that.
struct Judged {
    document: Document,
    made: Made,
    verdict: Verdict,
}

/// Converts and judges in an optimised build, if the documents are there.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(Part::Convert { root, made }) = &args.part {
        return convert::run(root, made);
    }
    let Some(corpora) = corpora()? else { return Ok(()) };
    if cfg!(debug_assertions) {
        return crate::builds::rerun_optimised();
    }
    judged(args, &corpora)
}

/// The same, as a part of all tests.
pub(crate) fn check() -> anyhow::Result<()> {
    match corpora()? {
        Some(_) => process::run(Command::new(crate::builds::optimised()?).arg("corpus")),
        None => Ok(()),
    }
}

/// Where the documents are. Not to have them is no failure, but it is said; to name a folder that is not there is one.
fn corpora() -> anyhow::Result<Option<PathBuf>> {
    let Some(folder) = std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty()) else {
        println!("no document was read: {VARIABLE} does not say where they are");
        return Ok(None);
    };
    let folder = Path::new(&folder).join("openapi");
    ensure!(folder.is_dir(), "{VARIABLE}: there is no folder {}", folder.display());
    Ok(Some(folder))
}

fn judged(args: &Args, corpora: &Path) -> anyhow::Result<()> {
    let corpus = Corpus::unpack(corpora)?;
    let documents = corpus.documents(args.only.as_deref().unwrap_or_default())?;
    ensure!(!documents.is_empty(), "no document is called so");
    let folder = tempfile::TempDir::new().context("make a folder")?;
    let folder = args.keep.as_deref().unwrap_or(folder.path());
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let lines = |number: usize| folder.join(format!("{number:03}.jsonl"));
    let mut made = Vec::with_capacity(documents.len());
    for (number, document) in documents.iter().enumerate() {
        made.push(convert::in_a_process(document, &lines(number))?);
    }
    let verdicts = judge::ask(&documents, &(0..documents.len()).map(lines).collect::<Vec<_>>(), folder)?;
    ensure!(verdicts.len() == documents.len(), "the judge has to speak of each document");
    let all = documents.into_iter().zip(made).zip(verdicts);
    let all: Vec<Judged> =
        all.map(|((document, made), verdict)| Judged { document, made, verdict }).collect();
    let page = report::page(&all);
    println!("{page}\n{}", report::findings(&all));
    if args.write {
        std::fs::write(crate::root().join("docs/openapi-corpus.md"), &page).context("write the table")?;
    }
    goals::ensure_reached(&all)
}
