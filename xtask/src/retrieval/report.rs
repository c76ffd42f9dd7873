//! What was seen, as a page.

use std::fmt::Write;
use std::time::Duration;

use super::ablation::Held;
use super::figures::{self, Figures, Reached};
use super::goals;
use super::rankers::Compared;
use super::timing::{TOOLS, Timing};

/// The rankers on each set, and in the mean.
pub(super) fn comparison(all: &[(String, Compared)], tools: &[usize], queries: &[usize]) -> String {
    let mut page =
        "| set | tools | queries | Bm25Ranker | BM25 plain | BM25 tuned | ours | ours above tuned |\n\
        | --- | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    let columns: [fn(&Compared) -> &Reached; 4] =
        [|it| &it.rockbot, |it| &it.plain, |it| &it.tuned, |it| &it.ours];
    for (((name, compared), tools), queries) in all.iter().zip(tools).zip(queries) {
        let shown = columns.map(|column| shown(&column(compared).all)).join(" | ");
        let gain = compared.ours.all.ndcg_at_10 - compared.tuned.all.ndcg_at_10;
        let _infallible = writeln!(page, "| {name} | {tools} | {queries} | {shown} | {gain:+.2} |");
    }
    let mean = |of: fn(&Figures) -> f64, column: fn(&Compared) -> &Reached| {
        figures::mean(all.iter().map(|(_, compared)| of(&column(compared).all)))
    };
    let means = columns.map(|column| {
        let [five, ten, ndcg]: [fn(&Figures) -> f64; 3] =
            [|it| it.recall_at_5, |it| it.recall_at_10, |it| it.ndcg_at_10];
        format!("{:.1} / {:.1} / {:.2}", mean(five, column), mean(ten, column), mean(ndcg, column))
    });
    let (tools, queries): (usize, usize) = (tools.iter().sum(), queries.iter().sum());
    let lead = goals::lead(all);
    let _infallible =
        writeln!(page, "| **mean** | {tools} | {queries} | {} | {lead:+.2} |", means.join(" | "));
    page
}

fn shown(figures: &Figures) -> String {
    let Figures { recall_at_5, recall_at_10, ndcg_at_10, .. } = figures;
    format!("{recall_at_5:.1} / {recall_at_10:.1} / {ndcg_at_10:.2}")
}

pub(super) fn timing(timing: &Timing) -> String {
    let Timing { servers, queries, build, change, median, slow } = timing;
    format!(
        "\n## Time\n\nOver {TOOLS} tools of {servers} recorded servers, with {queries} queries of the sets, on one thread:\n\n\
         | | |\n| --- | --- |\n\
         | building the index from the texts of all tools | {} |\n\
         | one server more, or its tools anew, the median | {} |\n\
         | a query, the median | {} |\n\
         | a query, the 99th percentile | {} |\n",
        millis(*build),
        millis(*change),
        millis(*median),
        millis(*slow),
    )
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}

pub(super) fn goals(all: &[(String, Compared)], timing: &Timing) -> String {
    let mut table = "\n## Goals\n\n| goal | seen | |\n| --- | --- | --- |\n".to_owned();
    let mut row = |goal: String, seen: String, is_met: bool| {
        let met = if is_met { "met" } else { "not met" };
        let _infallible = writeln!(table, "| {goal} | {seen} | {met} |");
    };
    let (lead, least) = (goals::lead(all), goals::least(all));
    row(
        format!("mean nDCG@10 above that of tuned BM25, at least {:+}", goals::LEAD),
        format!("{lead:+.2}"),
        lead >= goals::LEAD,
    );
    row(format!("on the worst set, at least -{}", goals::LAG), format!("{least:+.2}"), least >= -goals::LAG);
    for (goal, most, time) in [
        ("a query, the median", goals::QUERY_MILLIS, timing.median),
        ("the index", goals::BUILD_MILLIS, timing.build),
    ] {
        let is_met = time.as_secs_f64() * 1000.0 < most;
        row(format!("{TOOLS} tools: {goal}, under {most} ms"), millis(time), is_met);
    }
    table
}

/// What is lost without each step.
pub(super) fn steps(ours: &[(String, Compared)], without: &[(&str, Vec<Reached>)]) -> String {
    let names: Vec<&str> = ours.iter().map(|(name, _)| name.as_str()).collect();
    let mut table = format!(
        "\n## What each step is worth\n\nnDCG@10 without one step, and with all others, beside that with all:\n\n| without | {} | mean |\n",
        names.join(" | ")
    );
    table += &"| --- ".repeat(names.len() + 2);
    table += "|\n";
    for (step, reached) in without {
        let lost = ours.iter().zip(reached);
        let lost: Vec<f64> =
            lost.map(|((_, ours), without)| without.all.ndcg_at_10 - ours.ours.all.ndcg_at_10).collect();
        let mean = figures::mean(lost.iter().copied());
        let shown: Vec<String> = lost.iter().chain([&mean]).map(|lost| format!("{lost:+.2}")).collect();
        let _infallible = writeln!(table, "| {step} | {} |", shown.join(" | "));
    }
    table
}

/// What is reached on data that nothing was chosen on.
pub(super) fn held_out(held: &[Held], all: &[(String, Compared)]) -> String {
    let mut table = "\n## Chosen on other data\n\n\
        Each constant of the ranking is what it is, half of that or twice that, whichever is best on the rest: on the five other sets, or on the other half of \
        the queries of all. nDCG@10 on what the constants were not chosen on:\n\n\
        | looked at | as it is | chosen on the rest | tuned BM25 |\n| --- | --- | --- | --- |\n"
        .to_owned();
    for Held { name, ours, chosen } in held {
        let set = all.iter().find(|(set, _)| set == name);
        let tuned = set.map(|(_, compared)| format!("{:.2}", compared.tuned.all.ndcg_at_10));
        let _infallible =
            writeln!(table, "| {name} | {ours:.2} | {chosen:.2} | {} |", tuned.unwrap_or_default());
    }
    let mean = |of: fn(&Held) -> f64| figures::mean(held[..all.len()].iter().map(of));
    let tuned = figures::mean(all.iter().map(|(_, compared)| compared.tuned.all.ndcg_at_10));
    let _infallible = writeln!(
        table,
        "| **mean of the sets** | {:.2} | {:.2} | {tuned:.2} |",
        mean(|held| held.ours),
        mean(|held| held.chosen),
    );
    table
}
