//! The tables of the figures.

use std::fmt::Write;

use crate::measure::PageFigures;

/// Returns the kinds of the pages in alphabetical order.
pub(crate) fn kinds(figures: &[PageFigures]) -> Vec<&str> {
    let mut kinds: Vec<&str> = figures.iter().map(|page| &*page.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Returns the mean F1 of pages.
pub(crate) fn mean_f1<'a>(pages: impl Iterator<Item = &'a PageFigures>) -> f64 {
    mean(pages.map(|page| page.f1))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// Returns the milliseconds in which 95 of 100 pages are converted.
pub(crate) fn p95_millis(figures: &[PageFigures]) -> f64 {
    let mut times: Vec<f64> = figures.iter().map(|page| page.millis).collect();
    times.sort_by(f64::total_cmp);
    times.get((times.len() * 95).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
}

/// Returns a line for each page that rules are tuned on.
pub(crate) fn each(figures: &[PageFigures]) -> String {
    let mut text = String::new();
    for page in figures.iter().filter(|page| page.is_tuned_on) {
        let _ = writeln!(text, "{} {} {:.3} {:.0} ms", page.kind, page.id, page.f1, page.millis);
    }
    text
}

/// Returns the tables.
pub(crate) fn tables(figures: &[PageFigures]) -> String {
    let mut text = String::from(
        "\n| kind | pages | F1 | tuned half | other half | every text | `with` | `without` | links a page |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for kind in kinds(figures) {
        let pages: Vec<&PageFigures> = figures.iter().filter(|page| page.kind == kind).collect();
        text += &row(kind, &pages);
    }
    text += &row("**all**", &figures.iter().collect::<Vec<_>>());
    let slowest = figures.iter().map(|page| page.millis).fold(0.0, f64::max);
    let _ = write!(
        text,
        "\nA page takes {:.0} ms on average on one core, 95 of 100 take up to {:.0} ms, and the slowest takes {slowest:.0} ms.\n",
        mean(figures.iter().map(|page| page.millis)),
        p95_millis(figures),
    );
    text
}

fn row(kind: &str, pages: &[&PageFigures]) -> String {
    let half =
        |is_tuned_on: bool| mean_f1(pages.iter().copied().filter(|page| page.is_tuned_on == is_tuned_on));
    let share = |counts: fn(&PageFigures) -> (usize, usize)| {
        let (right, all) = pages.iter().map(|page| counts(page)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        100.0 * right as f64 / all.max(1) as f64
    };
    format!(
        "| {kind} | {} | {:.3} | {:.3} | {:.3} | {:.3} | {:.0} % | {:.0} % | {:.0} |\n",
        pages.len(),
        mean_f1(pages.iter().copied()),
        half(true),
        half(false),
        mean(pages.iter().map(|page| page.f1_of_everything)),
        share(|page| page.with),
        share(|page| page.without),
        mean(pages.iter().map(|page| page.links as f64)),
    )
}
