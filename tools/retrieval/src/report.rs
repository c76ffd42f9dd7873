//! The results as a page.

use std::fmt::Write;
use std::time::Duration;

use super::ablation::HeldOutFigures;
use super::figures::{self, RankingFigures, SetFigures};
use super::goals;
use super::rankers::RankerComparison;
use super::timing::{RetrievalTiming, TOOLS};

/// The rankers on each set, and their means.
pub(super) fn comparison(all: &[(String, RankerComparison)], tools: &[usize], queries: &[usize]) -> String {
    let mut page =
        "| set | tools | queries | Bm25Ranker | BM25 plain | BM25 tuned | ours | lead over tuned |\n\
        | --- | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    let columns: [fn(&RankerComparison) -> &SetFigures; 4] =
        [|it| &it.rockbot, |it| &it.plain, |it| &it.tuned, |it| &it.ours];
    for (((name, compared), tools), queries) in all.iter().zip(tools).zip(queries) {
        let cells = columns.map(|column| format_figures(&column(compared).all)).join(" | ");
        let gain = compared.ours.all.ndcg_at_10 - compared.tuned.all.ndcg_at_10;
        let _infallible = writeln!(page, "| {name} | {tools} | {queries} | {cells} | {gain:+.2} |");
    }
    let mean = |of: fn(&RankingFigures) -> f64, column: fn(&RankerComparison) -> &SetFigures| {
        figures::mean(all.iter().map(|(_, compared)| of(&column(compared).all)))
    };
    let means = columns.map(|column| {
        let [five, ten, ndcg]: [fn(&RankingFigures) -> f64; 3] =
            [|it| it.recall_at_5, |it| it.recall_at_10, |it| it.ndcg_at_10];
        format!("{:.1} / {:.1} / {:.2}", mean(five, column), mean(ten, column), mean(ndcg, column))
    });
    let (tools, queries): (usize, usize) = (tools.iter().sum(), queries.iter().sum());
    let lead = goals::lead(all);
    let _infallible =
        writeln!(page, "| **mean** | {tools} | {queries} | {} | {lead:+.2} |", means.join(" | "));
    page
}

fn format_figures(figures: &RankingFigures) -> String {
    let RankingFigures { recall_at_5, recall_at_10, ndcg_at_10, .. } = figures;
    format!("{recall_at_5:.1} / {recall_at_10:.1} / {ndcg_at_10:.2}")
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

pub(super) fn goals(all: &[(String, RankerComparison)], timing: &RetrievalTiming) -> String {
    let mut table = "\n## Goals\n\n| goal | actual | |\n| --- | --- | --- |\n".to_owned();
    let mut row = |goal: String, seen: String, is_met: bool| {
        let met = if is_met { "met" } else { "not met" };
        let _infallible = writeln!(table, "| {goal} | {seen} | {met} |");
    };
    let (lead, least) = (goals::lead(all), goals::smallest_lead(all));
    row(
        format!("mean nDCG@10 above that of tuned BM25, at least {:+}", goals::MIN_LEAD),
        format!("{lead:+.2}"),
        lead >= goals::MIN_LEAD,
    );
    row(
        format!("on the worst set, at least -{}", goals::MAX_LAG),
        format!("{least:+.2}"),
        least >= -goals::MAX_LAG,
    );
    for (goal, most, time) in [
        ("median time of a query", goals::QUERY_MILLIS, timing.median),
        ("time to build the index", goals::BUILD_MILLIS, timing.build),
    ] {
        let is_met = time.as_secs_f64() * 1000.0 < most;
        row(format!("{TOOLS} tools: {goal}, under {most} ms"), millis(time), is_met);
    }
    table
}

/// The loss without each step.
pub(super) fn steps(ours: &[(String, RankerComparison)], without: &[(&str, Vec<SetFigures>)]) -> String {
    let names: Vec<&str> = ours.iter().map(|(name, _)| name.as_str()).collect();
    let mut table = format!(
        "\n## Value of each step\n\nDifference of nDCG@10 without one step:\n\n| without | {} | mean |\n",
        names.join(" | ")
    );
    table += &"| --- ".repeat(names.len() + 2);
    table += "|\n";
    for (step, reached) in without {
        let differences = ours.iter().zip(reached);
        let differences: Vec<f64> = differences
            .map(|((_, ours), without)| without.all.ndcg_at_10 - ours.ours.all.ndcg_at_10)
            .collect();
        let mean = figures::mean(differences.iter().copied());
        let cells: Vec<String> =
            differences.iter().chain([&mean]).map(|differences| format!("{differences:+.2}")).collect();
        let _infallible = writeln!(table, "| {step} | {} |", cells.join(" | "));
    }
    table
}

/// The results on data that the constants were not chosen on.
pub(super) fn held_out(held: &[HeldOutFigures], all: &[(String, RankerComparison)]) -> String {
    let mut table = "\n## Constants chosen on other data\n\n\
        Each constant of the ranking keeps its value, or is halved or doubled, whichever is best on the rest: on the five other sets, or on the other half of \
        the queries. nDCG@10 on the data that the constants were not chosen on:\n\n\
        | data | current constants | chosen on the rest | tuned BM25 |\n| --- | --- | --- | --- |\n"
        .to_owned();
    for HeldOutFigures { name, ours, chosen } in held {
        let set = all.iter().find(|(set, _)| set == name);
        let tuned = set.map(|(_, compared)| format!("{:.2}", compared.tuned.all.ndcg_at_10));
        let _infallible =
            writeln!(table, "| {name} | {ours:.2} | {chosen:.2} | {} |", tuned.unwrap_or_default());
    }
    let mean = |of: fn(&HeldOutFigures) -> f64| figures::mean(held[..all.len()].iter().map(of));
    let tuned = figures::mean(all.iter().map(|(_, compared)| compared.tuned.all.ndcg_at_10));
    let _infallible = writeln!(
        table,
        "| **mean of the sets** | {:.2} | {:.2} | {tuned:.2} |",
        mean(|held| held.ours),
        mean(|held| held.chosen),
    );
    table
}
