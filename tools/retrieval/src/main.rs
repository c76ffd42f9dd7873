//! `cargo xtask retrieval`: quality and speed of the tool search, on public catalogs and queries.
//!
//! The sets are not part of the repository; `TOOLYARD_CORPORA` names their folder. `TOOLYARD_EMBEDDING_URL`,
//! `TOOLYARD_EMBEDDING_MODEL` and `TOOLYARD_EMBEDDING_KEY` add the figures of the hybrid with an embeddings endpoint.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a developer's tool: it starts other programs and prints to the terminal"
)]

mod ablation;
mod baseline;
mod choice;
mod embedding_endpoint;
mod figures;
mod goals;
mod interval;
mod rankers;
mod report;
mod sets;
mod timing;
mod typos;
mod variants;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::Parser;
use toolyard_rank::{RankingWeights, SearchLexicon};
use xtask_support::CORPORA_VARIABLE;

use self::embedding_endpoint::EmbeddingEndpoint;
use self::rankers::RankerComparison;
use self::sets::RetrievalSet;
use self::timing::RetrievalTiming;
use self::typos::TypoQueries;
use self::variants::SetVariant;

/// Number of queries of a set in each variant.
const VARIANT_QUERIES: usize = 200;

/// Measure the tool search on public catalogs and queries
#[derive(Parser)]
#[command(bin_name = "cargo xtask retrieval")]
struct RetrievalArgs {
    /// Write the results to `docs/retrieval.md`, including those of `--ablate`
    #[arg(long)]
    write: bool,
    /// Show the value of each step of the ranking, and the results of steps and weights chosen on other sets
    #[arg(long)]
    ablate: bool,
    /// Choose the weights on all sets and print them
    #[arg(long)]
    choose: bool,
    /// Measure the time only
    #[arg(long)]
    time: bool,
    /// Compare the ranking with this weight (`name=value`), or without any step (`plain`), with tuned BM25
    #[arg(long, value_name = "WEIGHT")]
    set: Vec<String>,
}

fn main() -> ExitCode {
    xtask_support::exit_code(execute())
}

/// Measures if the sets are available.
fn execute() -> anyhow::Result<()> {
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
    if args.time {
        println!("{}", report::timing(&RetrievalTiming::measure(corpora, &sets, &lexicon)?));
        return Ok(());
    }
    if args.choose {
        println!("{}", report::weights(&choice::choose_on_all(&sets, &lexicon)));
        return Ok(());
    }
    if !args.set.is_empty() {
        let ranking = choice::changed(&args.set)?;
        println!("{}", report::variants(&sets, &compare_variants(&sets, &lexicon, &ranking)));
        return Ok(());
    }
    let indexed: Vec<_> = sets.iter().map(|set| (set, rankers::index(set, &lexicon))).collect();
    let compared =
        indexed.iter().map(|(set, index)| (set.name.clone(), RankerComparison::measure(set, index)));
    let all: Vec<(String, RankerComparison)> = compared.collect();
    let recorded = sets::read_recorded_set(
        &xtask_support::root().join("fixtures/retrieval"),
        &corpora.join("mcp/servers.jsonl.gz"),
    )?;
    let recorded_figures = RankerComparison::measure(&recorded, &rankers::index(&recorded, &lexicon));
    let hybrid = match EmbeddingEndpoint::configured()? {
        Some(endpoint) => {
            let measured = sets.iter().chain([&recorded]).map(|set| endpoint.measure(set, &lexicon));
            Some((endpoint.model.clone(), measured.collect::<anyhow::Result<Vec<_>>>()?))
        }
        None => None,
    };
    let timing = RetrievalTiming::measure(corpora, &sets, &lexicon)?;
    let variants = compare_variants(&sets, &lexicon, &RankingWeights::default());
    let [tuned_losses, losses] = typo_losses(&sets, &lexicon);
    let chosen = (args.ablate || args.write).then(|| choice::leave_one_out(&indexed, &lexicon));
    let goals = goals::quality(&all, chosen.as_ref(), &losses);
    let mut page = include_str!("head.md").to_owned();
    page += &report::comparison(&all, &sets);
    page += &report::doubtful(&indexed);
    page += &report::recorded(&recorded, &recorded_figures);
    if let Some((model, figures)) = &hybrid {
        page += &report::hybrid(model, figures);
    }
    page += &report::timing(&timing);
    page += &report::goals(goals.iter().chain(&goals::speed(&timing)));
    page += &report::variants(&sets, &variants);
    page += &report::typos(&sets, &tuned_losses, &losses);
    if let Some(chosen) = &chosen {
        page += &report::held_out(chosen, &all);
        page += &report::steps(&all, &ablation::without_steps(&indexed));
    }
    println!("{page}");
    if args.write {
        std::fs::write(xtask_support::root().join("docs/retrieval.md"), &page).context("write the page")?;
    }
    goals::ensure_met(&goals)
}

/// The loss by typing errors on each set, of tuned BM25 and of our ranker.
fn typo_losses(sets: &[RetrievalSet], lexicon: &Arc<SearchLexicon>) -> [Vec<f64>; 2] {
    let queries: Vec<TypoQueries> = sets.iter().map(TypoQueries::new).collect();
    let ours = |queries: &TypoQueries| {
        let index = rankers::index(&queries.without, lexicon);
        queries.loss(|set| rankers::ours(set, &index))
    };
    [queries.iter().map(|queries| queries.loss(rankers::tuned)).collect(), queries.iter().map(ours).collect()]
}

/// The lead of a ranking over tuned BM25 on each variant of the sets, by set.
fn compare_variants(
    sets: &[RetrievalSet],
    lexicon: &Arc<SearchLexicon>,
    ranking: &RankingWeights,
) -> Vec<(&'static str, Vec<f64>)> {
    let lead = |variant: &SetVariant, set: &RetrievalSet| {
        let changed = variant.apply(set, VARIANT_QUERIES);
        let index = rankers::index(&changed, lexicon).with_ranking(ranking.clone());
        rankers::ours(&changed, &index).all.ndcg_at_10 - rankers::tuned(&changed).all.ndcg_at_10
    };
    let leads = |variant: &SetVariant| (variant.name, sets.iter().map(|set| lead(variant, set)).collect());
    variants::VARIANTS.iter().map(leads).collect()
}
