//! `cargo xtask retrieval`: how well tools are found, on catalogs and queries of others, and how fast.
//!
//! The sets are not part of the repository: they lie where `TOOLYARD_CORPORA` says.

mod ablation;
mod baseline;
mod figures;
mod goals;
mod rankers;
mod report;
mod sets;
mod timing;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, ensure};
use toolyard_rank::Lexicon;

use self::rankers::Compared;
use self::timing::Timing;
use crate::process;

/// Where the sets are.
const VARIABLE: &str = "TOOLYARD_CORPORA";

/// What `cargo xtask retrieval` takes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write what is seen to `docs/retrieval.md`, with what `--ablate` sees
    #[arg(long)]
    write: bool,
    /// Show what each step of the ranking is worth, and what constants reach that were chosen on other data
    #[arg(long)]
    ablate: bool,
}

/// Measures in an optimised build, if the sets are there.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Some(corpora) = corpora()? else { return Ok(()) };
    if cfg!(debug_assertions) {
        return crate::builds::rerun_optimised();
    }
    measured(args, &corpora)
}

/// The same, as a part of all tests.
pub(crate) fn check() -> anyhow::Result<()> {
    match corpora()? {
        Some(_) => process::run(Command::new(crate::builds::optimised()?).arg("retrieval")),
        None => Ok(()),
    }
}

/// Where the sets are. Not to have them is no failure, but it is said; to name a folder that is not there is one.
fn corpora() -> anyhow::Result<Option<PathBuf>> {
    let Some(folder) = std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty()) else {
        println!("no query was asked: {VARIABLE} does not say where they are");
        return Ok(None);
    };
    let folder = PathBuf::from(folder);
    let sets = folder.join("retrieval");
    ensure!(sets.is_dir(), "{VARIABLE}: there is no folder {}", sets.display());
    Ok(Some(folder))
}

fn measured(args: &Args, corpora: &Path) -> anyhow::Result<()> {
    let sets = sets::all(&corpora.join("retrieval"))?;
    let lexicon = Arc::new(Lexicon::english());
    let indexed: Vec<_> = sets.iter().map(|set| (set, rankers::index(set, &lexicon))).collect();
    let compared = indexed.iter().map(|(set, index)| (set.name.clone(), Compared::on(set, index)));
    let all: Vec<(String, Compared)> = compared.collect();
    let timing = Timing::of(corpora, &sets, &lexicon)?;
    let tools: Vec<usize> = sets.iter().map(|set| set.tools.len()).collect();
    let queries: Vec<usize> = sets.iter().map(|set| set.queries.len()).collect();
    let mut page = include_str!("head.md").to_owned();
    page += &report::comparison(&all, &tools, &queries);
    page += &report::timing(&timing);
    page += &report::goals(&all, &timing);
    if args.ablate || args.write {
        page += &report::steps(&all, &ablation::without_steps(&indexed));
        page += &report::held_out(&ablation::held_out(&indexed), &all);
    }
    println!("{page}");
    if args.write {
        std::fs::write(crate::root().join("docs/retrieval.md"), &page).context("write the page")?;
    }
    goals::ensure_reached(&all)
}
