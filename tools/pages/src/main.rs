//! `cargo xtask pages`: quality and speed of the conversion of real web pages to Markdown.
//!
//! The pages are not part of the repository; `TOOLYARD_CORPORA` names their folder.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a developer's tool: it starts other programs and prints to the terminal"
)]

mod corpus_page;
mod measure;
mod outline;
mod report;
mod words;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Parser;
use xtask_support::CORPORA_VARIABLE;

use self::corpus_page::CorpusPage;

/// Goal: mean F1 of all pages.
const MIN_MEAN: f64 = 0.84;

/// Goal: mean F1 of the pages of each kind.
const MIN_KIND: f64 = 0.74;

/// Goal: milliseconds in which 95 of 100 pages are converted.
const MAX_P95_MILLIS: f64 = 60.0;

/// The file with the outlines.
const OUTLINES: &str = "tools/pages/outlines.txt";

const OUTLINES_OF_A_KIND: usize = 2;

/// Measure the conversion of real web pages of seven kinds to Markdown
#[derive(Parser)]
#[command(bin_name = "cargo xtask pages")]
struct PagesArgs {
    /// Write the results to `docs/pages.md`, and the outlines of two pages of each kind
    #[arg(long)]
    write: bool,
    /// Show the figures of each page of the half that rules are tuned on
    #[arg(long)]
    each: bool,
    /// Print the Markdown of one page
    #[arg(long, value_name = "ID")]
    show: Option<String>,
}

fn main() -> ExitCode {
    xtask_support::exit_code(execute())
}

/// Measures if the pages are available.
fn execute() -> anyhow::Result<()> {
    let args = PagesArgs::parse();
    ensure!(
        !(args.write && cfg!(debug_assertions)),
        "times of a debug build mean nothing: run `cargo xtask pages --write`"
    );
    match xtask_support::corpora("html")? {
        Some(corpora) => run(&args, &corpora.join("html/wcxb-dev.tar.xz")),
        None => {
            println!("skipped pages: {CORPORA_VARIABLE} is not set");
            Ok(())
        }
    }
}

fn run(args: &PagesArgs, archive: &Path) -> anyhow::Result<()> {
    let pages = corpus_page::read_pages(archive)?;
    if let Some(id) = &args.show {
        let page = pages.iter().find(|page| page.id == *id).with_context(|| format!("no page {id}"))?;
        println!("{}", measure::markdown(page)?);
        return Ok(());
    }
    let figures: Vec<_> = pages.iter().map(measure::measure).collect::<anyhow::Result<_>>()?;
    if args.each {
        print!("{}", report::each(&figures));
    }
    let page = format!("{}{}", include_str!("head.md"), report::tables(&figures));
    println!("{page}");
    let outlines = outlines(&pages)?;
    if args.write {
        std::fs::write(xtask_support::root().join("docs/pages.md"), &page).context("write the page")?;
        std::fs::write(xtask_support::root().join(OUTLINES), &outlines).context("write the outlines")?;
    }
    ensure_goals(&figures)?;
    let known = std::fs::read_to_string(xtask_support::root().join(OUTLINES)).context("read the outlines")?;
    ensure!(outlines == known, "{OUTLINES} has changed: run `cargo xtask pages --write`, and compare");
    Ok(())
}

/// Returns the outlines of two pages of each kind.
fn outlines(pages: &[CorpusPage]) -> anyhow::Result<String> {
    let mut shown: BTreeMap<&str, Vec<&CorpusPage>> = BTreeMap::new();
    for page in pages.iter().filter(|page| page.is_tuned_on()) {
        let of_kind = shown.entry(&page.expected.kind).or_default();
        if of_kind.len() < OUTLINES_OF_A_KIND {
            of_kind.push(page);
        }
    }
    let mut text = String::new();
    for page in shown.into_values().flatten() {
        let outline = outline::outline(&measure::markdown(page)?);
        text += &format!("{} {}: {}\n{outline}\n", page.expected.kind, page.id, page.expected.url);
    }
    Ok(text)
}

/// Checks the goals; times only of an optimised build.
fn ensure_goals(figures: &[measure::PageFigures]) -> anyhow::Result<()> {
    let mean = report::mean_f1(figures.iter());
    ensure!(mean >= MIN_MEAN, "the mean F1 is {mean:.3}, the goal is {MIN_MEAN}");
    for kind in report::kinds(figures) {
        let mean = report::mean_f1(figures.iter().filter(|page| page.kind == kind));
        ensure!(mean >= MIN_KIND, "the mean F1 of `{kind}` is {mean:.3}, the goal is {MIN_KIND}");
    }
    let p95 = report::p95_millis(figures);
    ensure!(
        cfg!(debug_assertions) || p95 <= MAX_P95_MILLIS,
        "95 of 100 pages take up to {p95:.0} ms, the goal is {MAX_P95_MILLIS} ms"
    );
    Ok(())
}
