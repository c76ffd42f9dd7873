//! `cargo xtask retrieval`: quality and speed of the tool search, on public catalogs and queries.
//!
//! The sets are not part of the repository; `TOOLYARD_CORPORA` names their folder.

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
use toolyard_rank::SearchLexicon;
use xtask_support::process;

use self::rankers::RankerComparison;
use self::timing::RetrievalTiming;

/// Variable with the folder of the sets.
const CORPORA_VARIABLE: &str = "TOOLYARD_CORPORA";

/// Arguments of `cargo xtask retrieval`.
#[derive(clap::Args)]
pub(crate) struct RetrievalArgs {
    /// Write the results to `docs/retrieval.md`, including those of `--ablate`
    #[arg(long)]
    write: bool,
    /// Show the value of each step of the ranking, and the results of constants chosen on other data
    #[arg(long)]
    ablate: bool,
}

/// Measures in an optimised build, if the sets are available.
pub(crate) fn run(args: &RetrievalArgs) -> anyhow::Result<()> {
    let Some(corpora) = corpora()? else { return Ok(()) };
    if cfg!(debug_assertions) {
        return xtask_support::builds::rerun_optimised();
    }
    measure(args, &corpora)
}

/// As [`run`], for `cargo xtask test`.
pub(crate) fn check() -> anyhow::Result<()> {
    match corpora()? {
        Some(_) => process::run(Command::new(xtask_support::builds::build_optimised()?).arg("retrieval")),
        None => Ok(()),
    }
}

/// The folder of the sets. An unset variable skips them with a message; a missing folder is an error.
fn corpora() -> anyhow::Result<Option<PathBuf>> {
    let Some(folder) = std::env::var_os(CORPORA_VARIABLE).filter(|folder| !folder.is_empty()) else {
        println!("skipped retrieval: {CORPORA_VARIABLE} is not set");
        return Ok(None);
    };
    let folder = PathBuf::from(folder);
    let sets = folder.join("retrieval");
    ensure!(sets.is_dir(), "{CORPORA_VARIABLE}: no folder {}", sets.display());
    Ok(Some(folder))
}

fn measure(args: &RetrievalArgs, corpora: &Path) -> anyhow::Result<()> {
    let sets = sets::read_sets(&corpora.join("retrieval"))?;
    let lexicon = Arc::new(SearchLexicon::english());
    let indexed: Vec<_> = sets.iter().map(|set| (set, rankers::index(set, &lexicon))).collect();
    let compared =
        indexed.iter().map(|(set, index)| (set.name.clone(), RankerComparison::measure(set, index)));
    let all: Vec<(String, RankerComparison)> = compared.collect();
    let timing = RetrievalTiming::measure(corpora, &sets, &lexicon)?;
    let tools: Vec<usize> = sets.iter().map(|set| set.tools.len()).collect();
    let queries: Vec<usize> = sets.iter().map(|set| set.queries.len()).collect();
    let mut page = include_str!("retrieval/head.md").to_owned();
    page += &report::comparison(&all, &tools, &queries);
    page += &report::timing(&timing);
    page += &report::goals(&all, &timing);
    if args.ablate || args.write {
        page += &report::steps(&all, &ablation::without_steps(&indexed));
        page += &report::held_out(&ablation::held_out(&indexed), &all);
    }
    println!("{page}");
    if args.write {
        std::fs::write(xtask_support::root().join("docs/retrieval.md"), &page).context("write the page")?;
    }
    goals::ensure_met(&all)
}
