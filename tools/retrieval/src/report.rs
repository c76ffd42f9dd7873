//! The results as a page.

use std::fmt::Write;
use std::time::Duration;

use toolyard_rank::{RankingWeights, ToolIndex, VECTOR_WEIGHT};

use super::choice::{self, ChosenWeights};
use super::embedding_endpoint::{HybridFigures, MAX_QUERIES, MAX_TOOLS, WEIGHTS};
use super::figures::{self, RankingFigures, SetFigures};
use super::goals::{self, MeasuredGoal};
use super::interval::MeanInterval;
use super::rankers::RankerComparison;
use super::sets::RetrievalSet;
use super::timing::{RetrievalTiming, TOOLS};

/// The rankers that are compared.
const COLUMNS: [fn(&RankerComparison) -> &SetFigures; 4] =
    [|it| &it.rockbot, |it| &it.plain, |it| &it.tuned, |it| &it.ours];

fn comparison_row(set: &RetrievalSet, compared: &RankerComparison) -> String {
    let cells = COLUMNS.map(|column| format_figures(&column(compared).all)).join(" | ");
    let gain = compared.ours.all.ndcg_at_10 - compared.tuned.all.ndcg_at_10;
    format!("| {} | {} | {} | {cells} | {gain:+.2} |\n", set.name, set.tools.len(), set.queries.len())
}

/// The set of the repository, by kind of query.
pub(super) fn recorded(set: &RetrievalSet, compared: &RankerComparison) -> String {
    let mut page = "\n## Queries over recorded servers\n\n\
        The queries in `fixtures/retrieval` were written by a person who saw the tools and not the ranker, and are used for no choice.\n\n\
        | set | tools | queries | Bm25Ranker | BM25 plain | BM25 tuned | ours | lead over tuned |\n\
        | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    page += &comparison_row(set, compared);
    for (kind, ours) in &compared.ours.kinds {
        let cells =
            COLUMNS.map(|column| column(compared).kinds.get(kind).map(format_figures).unwrap_or_default());
        let tuned = compared.tuned.kinds.get(kind).map_or(0.0, |figures| figures.ndcg_at_10);
        let gain = ours.ndcg_at_10 - tuned;
        let _infallible =
            writeln!(page, "| {kind} | | {} | {} | {gain:+.2} |", ours.queries, cells.join(" | "));
    }
    page
}

/// The rankers on each set, and their means.
pub(super) fn comparison(all: &[(String, RankerComparison)], sets: &[RetrievalSet]) -> String {
    let mut page =
        "| set | tools | queries | Bm25Ranker | BM25 plain | BM25 tuned | ours | lead over tuned |\n\
        | --- | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    for ((_, compared), set) in all.iter().zip(sets) {
        page += &comparison_row(set, compared);
    }
    let mean = |of: fn(&RankingFigures) -> f64, column: fn(&RankerComparison) -> &SetFigures| {
        figures::mean(all.iter().map(|(_, compared)| of(&column(compared).all)))
    };
    let means = COLUMNS.map(|column| {
        let [five, ten, ndcg]: [fn(&RankingFigures) -> f64; 3] =
            [|it| it.recall_at_5, |it| it.recall_at_10, |it| it.ndcg_at_10];
        format!("{:.1} / {:.1} / {:.2}", mean(five, column), mean(ten, column), mean(ndcg, column))
    });
    let tools: usize = sets.iter().map(|set| set.tools.len()).sum();
    let queries: usize = sets.iter().map(|set| set.queries.len()).sum();
    let lead = goals::lead(all);
    let _infallible =
        writeln!(page, "| **mean** | {tools} | {queries} | {} | {lead:+.2} |", means.join(" | "));
    page
}

fn format_figures(figures: &RankingFigures) -> String {
    let RankingFigures { recall_at_5, recall_at_10, ndcg_at_10, .. } = figures;
    format!("{recall_at_5:.1} / {recall_at_10:.1} / {ndcg_at_10:.2}")
}

/// The share of the queries, all in English, whose result advises to use English.
pub(super) fn doubtful(indexed: &[(&RetrievalSet, ToolIndex)]) -> String {
    let count = |(set, index): &(&RetrievalSet, ToolIndex)| {
        set.queries.iter().filter(|query| index.may_be_foreign(&query.text)).count()
    };
    let (doubtful, queries): (usize, usize) =
        (indexed.iter().map(count).sum(), indexed.iter().map(|(set, _)| set.queries.len()).sum());
    format!(
        "\nFewer than half of the words of {doubtful} of these {queries} queries are words of tools, without an English stop word: their results advise to \
        use English.\n"
    )
}

/// The ranking with embeddings. The last set, whose queries are used for no choice, is not part of the mean.
pub(super) fn hybrid(model: &str, all: &[HybridFigures]) -> String {
    let mut page = format!(
        "\n## With embeddings\n\nnDCG@10 of ours, of the ranking by the vectors of `{model}`, and of both fused by rank, by the weight of the vectors; the built-in \
        weight is {VECTOR_WEIGHT}. Of larger sets only {MAX_QUERIES} queries and {MAX_TOOLS} tools are measured, among them all that the queries need. In the last \
        column, the weight is that with the best mean on the other sets, without the recorded servers.\n\n"
    );
    let weights = WEIGHTS.map(|weight| format!("fused, {weight}"));
    let _infallible = writeln!(page, "| set | tools | ours | vectors | {} | chosen |", weights.join(" | "));
    page += &format!("{}|\n", "| --- ".repeat(WEIGHTS.len() + 5));
    let shared = &all[..all.len().saturating_sub(1)];
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for figures in all {
        let others = || shared.iter().filter(|other| other.name != figures.name);
        let mean = |weight: &usize| others().map(|other| other.fused[*weight].all.ndcg_at_10).sum::<f64>();
        let best = (0..WEIGHTS.len()).max_by(|one, other| mean(one).total_cmp(&mean(other)));
        let chosen = &figures.fused[best.unwrap_or_default()];
        let columns = [&figures.words, &figures.vectors].into_iter().chain(&figures.fused).chain([chosen]);
        rows.push(columns.map(|figures| figures.all.ndcg_at_10).collect());
    }
    let columns = 0..WEIGHTS.len() + 3;
    let mean = columns.map(|column| figures::mean(rows[..shared.len()].iter().map(|row| row[column])));
    let mean: Vec<f64> = mean.collect();
    let names = all.iter().map(|figures| (figures.name.as_str(), figures.tools.to_string()));
    let named = names.zip(&rows).map(|((name, tools), row)| (name, tools, row));
    let mut lines: Vec<_> = named.collect();
    lines.insert(shared.len(), ("**mean**", String::new(), &mean));
    for (name, tools, row) in lines {
        let cells: Vec<String> = row.iter().map(|value| format!("{value:.2}")).collect();
        let _infallible = writeln!(page, "| {name} | {tools} | {} |", cells.join(" | "));
    }
    page
}

pub(super) fn timing(timing: &RetrievalTiming) -> String {
    let RetrievalTiming { servers, queries, build, change, median, slow } = timing;
    format!(
        "\n## Time\n\nOver {TOOLS} tools of {servers} recorded servers, with {queries} queries of the sets, on one thread:\n\n\
         | | |\n| --- | --- |\n\
         | index of all tools | {} |\n\
         | adding or replacing a server, median | {} |\n\
         | query, median | {} |\n\
         | query, 99th percentile | {} |\n",
        millis(*build),
        millis(*change),
        millis(*median),
        millis(*slow),
    )
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}

pub(super) fn goals<'g>(goals: impl Iterator<Item = &'g MeasuredGoal>) -> String {
    let mut table = "\n## Goals\n\n| goal | actual | |\n| --- | --- | --- |\n".to_owned();
    for MeasuredGoal { goal, actual, is_met } in goals {
        let met = if *is_met { "met" } else { "not met" };
        let _infallible = writeln!(table, "| {goal} | {actual} | {met} |");
    }
    table
}

/// The points that typing errors cost on each set.
pub(super) fn typos(sets: &[RetrievalSet], tuned: &[f64], ours: &[f64]) -> String {
    let mut table = "\n## Typing errors\n\n\
        Loss of nDCG@10, on at most 200 queries of each set, if a word that the wanted tool has in its name, description or parameters has a wrong letter or \
        two swapped ones:\n\n"
        .to_owned();
    table += &set_header("ranker", sets.iter().map(|set| set.name.as_str()));
    table += &set_row("BM25 tuned", tuned);
    table += &set_row("ours", ours);
    table
}

/// The lead on each variant of the sets.
pub(super) fn variants(sets: &[RetrievalSet], variants: &[(&str, Vec<f64>)]) -> String {
    let mut table = "\n## Other catalogs and other words\n\n\
        Lead over tuned BM25 in points of nDCG@10, on at most 200 queries of each set, with changes that a program makes. The story and the requests are the \
        same for all sets.\n\n"
        .to_owned();
    table += &set_header("sets", sets.iter().map(|set| set.name.as_str()));
    for (name, leads) in variants {
        table += &set_row(name, leads);
    }
    table
}

/// The head of a table with a column for each set.
fn set_header<'n>(first: &str, names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    format!("| {first} | {} | mean |\n{}|\n", names.join(" | "), "| --- ".repeat(names.len() + 2))
}

fn set_row(first: &str, values: &[f64]) -> String {
    let mean = figures::mean(values.iter().copied());
    let cells: Vec<String> = values.iter().chain([&mean]).map(|value| format!("{value:+.2}")).collect();
    format!("| {first} | {} |\n", cells.join(" | "))
}

/// The loss without each step.
pub(super) fn steps(ours: &[(String, RankerComparison)], without: &[(&str, Vec<SetFigures>)]) -> String {
    let mut table = "\n## Value of each step\n\nDifference of nDCG@10 without one step:\n\n".to_owned();
    table += &set_header("without", ours.iter().map(|(name, _)| name.as_str()));
    for (step, reached) in without {
        let differences = ours.iter().zip(reached);
        let differences: Vec<f64> = differences
            .map(|((_, ours), without)| without.all.ndcg_at_10 - ours.ours.all.ndcg_at_10)
            .collect();
        table += &set_row(step, &differences);
    }
    table
}

/// The results on sets that the steps and weights were not chosen on.
pub(super) fn held_out(chosen: &ChosenWeights, all: &[(String, RankerComparison)]) -> String {
    let mut table = "\n## Leave one set out\n\n\
        A program chooses each weight on the other sets, as they are and in three of the variants above, with the middle values of the other weights. A value \
        replaces the middle one if it gains 0.15 points, also the value that leaves a step out. nDCG@10 on the set that is left out, with confidence \
        intervals of 95 %: that of a set is for other queries over the same tools, that of the mean for other sets.\n\n\
        | set | tuned BM25 | built-in weights | chosen | lead | chosen without the tables | lead |\n\
        | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    let mut rows: Vec<(&str, [f64; 4], MeanInterval)> = Vec::new();
    for ((name, RankerComparison { tuned, ours, .. }), held) in all.iter().zip(&chosen.held_out) {
        let ndcg = [tuned, ours, &held.chosen].map(|figures| figures.all.ndcg_at_10);
        let lead = MeanInterval::of_differences(&held.chosen.ndcg, &tuned.ndcg);
        rows.push((name, [ndcg[0], ndcg[1], ndcg[2], held.without_rows], lead));
    }
    let mean = std::array::from_fn(|column| figures::mean(rows.iter().map(|(_, values, _)| values[column])));
    let leads: Vec<f64> = rows.iter().map(|(_, _, lead)| lead.mean).collect();
    rows.push(("**mean**", mean, MeanInterval::of(&leads)));
    for (name, [tuned, ours, chosen, without], MeanInterval { mean, margin }) in rows {
        let _infallible = writeln!(
            table,
            "| {name} | {tuned:.2} | {ours:.2} | {chosen:.2} | {mean:+.2} ± {margin:.2} | {without:.2} | {:+.2} |",
            without - tuned
        );
    }
    table += "\nThe tables are synonyms, abbreviations and filler words. The built-in weights are those that the program chooses on all sets. The weights by \
        the set that is left out:\n\n";
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let _infallible = writeln!(table, "| weight | built-in | chosen on all | {} |", names.join(" | "));
    table += &format!("{}|\n", "| --- ".repeat(names.len() + 3));
    for choice in &choice::CHOICES {
        let value = |ranking: &RankingWeights| (choice.weight)(&mut ranking.clone()).to_string();
        let built_in = RankingWeights::default();
        let rankings = [&built_in, &chosen.on_all].into_iter();
        let rankings = rankings.chain(chosen.held_out.iter().map(|held| &held.weights));
        let cells: Vec<String> = rankings.map(value).collect();
        let _infallible = writeln!(table, "| {} | {} |", choice.name, cells.join(" | "));
    }
    table
}

/// Weights, beside the built-in ones.
pub(super) fn weights(chosen: &RankingWeights) -> String {
    let mut table = "| weight | built-in | chosen |\n| --- | --- | --- |\n".to_owned();
    for choice in &choice::CHOICES {
        let [built_in, chosen] =
            [RankingWeights::default(), chosen.clone()].map(|mut ranking| *(choice.weight)(&mut ranking));
        let _infallible = writeln!(table, "| {} | {built_in} | {chosen} |", choice.name);
    }
    table
}
