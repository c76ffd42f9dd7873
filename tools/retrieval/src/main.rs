//! `cargo xtask retrieval`: quality and speed of the tool search, on public catalogs and queries.
//!
//! The sets are not part of the repository; `TOOLYARD_CORPORA` names their folder.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a developer's tool: it starts other programs and prints to the terminal"
)]

mod ablation;
mod baseline;
mod figures;
mod goals;
mod rankers;
mod report;
mod sets;
mod timing;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::Parser;
use toolyard_rank::SearchLexicon;
use xtask_support::CORPORA_VARIABLE;

use self::rankers::RankerComparison;
use self::timing::RetrievalTiming;

/// Measure the tool search on public catalogs and queries
#[derive(Parser)]
#[command(bin_name = "cargo xtask retrieval")]
struct RetrievalArgs {
    /// Write the results to `docs/retrieval.md`, including those of `--ablate`
    #[arg(long)]
    write: bool,
    /// Show the value of each step of the ranking, and the results of constants chosen on other data
    #[arg(long)]
    ablate: bool,
}

/// Measures if the sets are available.
fn main() -> anyhow::Result<()> {
    let args = RetrievalArgs::parse();
    ensure!(
        !(args.write && cfg!(debug_assertions)),
        "times of a debug build mean nothing: run `cargo xtask retrieval --write`"
    );
    match xtask_support::corpora("retrieval")? {
        Some(corpora) => measure(&args, &corpora),
        None => {
            println!("skipped retrieval: {CORPORA_VARIABLE} is not set");
            Ok(())
        }
    }
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
        std::fs::write(xtask_support::root().join("docs/retrieval.md"), &page).context("write the page")?;
    }
    goals::ensure_met(&all)
}
