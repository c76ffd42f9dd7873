//! Commands for developing Toolyard: `cargo xtask --help`.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a developer's tool: it starts other programs and prints to the terminal"
)]

mod book;
mod conformance;
mod console;
mod fuzz;
mod peers;
mod reference;
mod slowest_tests;
mod system;
mod test;
mod tidy;
mod tool;

use std::process::ExitCode;

use clap::Parser;
use xtask_support::process;

use crate::tool::{ToolArgs, XtaskTool};

/// Commands for developing Toolyard
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum XtaskCommand {
    /// Run the tests that every change must pass; with `--full`, all tests and suites
    Test(test::XtaskTestArgs),
    /// Install the third-party software that the tests need
    PeerSoftware,
    /// Run the MCP conformance suites
    Conformance(conformance::ConformanceArgs),
    /// Build the console into `console/dist`
    Console(console::ConsoleArgs),
    /// Check the rules of this repository
    Tidy,
    /// Write `schema/toolyard.json` and the tables of `docs/manifest.md`
    Reference,
    /// Build the documentation as a book, in `target/docs`
    Docs(book::BookArgs),
    /// Measure the gateway and its competitors
    #[command(disable_help_flag = true)]
    Bench(ToolArgs),
    /// Test the gateway with faulty servers and hostile clients
    #[command(disable_help_flag = true)]
    Arena(ToolArgs),
    /// Fuzz the parsers of external input
    Fuzz(fuzz::FuzzArgs),
    /// Test every feature with every kind of client and server
    #[command(disable_help_flag = true)]
    Matrix(ToolArgs),
    /// Convert real OpenAPI documents to tools and judge the result
    #[command(disable_help_flag = true)]
    Corpus(ToolArgs),
    /// Measure the conversion of real web pages to Markdown
    #[command(disable_help_flag = true)]
    Pages(ToolArgs),
    /// Measure the tool search on public catalogs and queries
    #[command(disable_help_flag = true)]
    Retrieval(ToolArgs),
    /// Make the files of a release: binary, Debian package, images, npm and PyPI packages, SBOM, checksums
    #[command(disable_help_flag = true)]
    Dist(ToolArgs),
    /// Exercise a server through a gateway, as the client of the conformance suite
    #[command(hide = true)]
    Drive(conformance::DriveArgs),
}

fn main() -> ExitCode {
    xtask_support::exit_code(execute())
}

fn execute() -> anyhow::Result<()> {
    process::exec_if_launcher()?;
    match XtaskCommand::parse() {
        XtaskCommand::Test(args) => test::run(&args),
        XtaskCommand::PeerSoftware => peers::run(),
        XtaskCommand::Conformance(args) => conformance::run(&args),
        XtaskCommand::Console(args) => console::run(&args),
        XtaskCommand::Tidy => tidy::run(),
        XtaskCommand::Reference => reference::run(),
        XtaskCommand::Docs(args) => book::run(&args),
        XtaskCommand::Bench(args) => XtaskTool::Bench.exec(&args),
        XtaskCommand::Arena(args) => XtaskTool::Arena.exec(&args),
        XtaskCommand::Fuzz(args) => fuzz::run(&args),
        XtaskCommand::Matrix(args) => XtaskTool::Matrix.exec(&args),
        XtaskCommand::Corpus(args) => XtaskTool::Corpus.exec(&args),
        XtaskCommand::Pages(args) => XtaskTool::Pages.exec(&args),
        XtaskCommand::Retrieval(args) => XtaskTool::Retrieval.exec(&args),
        XtaskCommand::Dist(args) => XtaskTool::Dist.exec(&args),
        XtaskCommand::Drive(args) => conformance::drive(&args),
    }
}
