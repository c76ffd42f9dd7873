//! Commands for developing Toolyard: `cargo xtask --help`.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a developer's tool: it starts other programs and prints to the terminal"
)]

mod arena;
mod bench;
mod builds;
mod client;
mod conformance;
mod corpus;
mod fuzz;
mod matrix;
mod measure;
mod peers;
mod process;
mod reference;
mod retrieval;
mod slowest_tests;
mod stages;
mod system;
mod test;
mod tidy;

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;

/// Commands for developing Toolyard
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum XtaskCommand {
    /// Install missing packages, build, and run the tests and the conformance suites
    Test(test::XtaskTestArgs),
    /// Install the third-party software that the tests need
    PeerSoftware,
    /// Run the MCP conformance suites
    Conformance(conformance::ConformanceArgs),
    /// Check the rules of this repository
    Tidy,
    /// Write `schema/toolyard.json` and the tables of `docs/manifest.md`
    Reference,
    /// Measure the gateway and its competitors
    Bench(bench::BenchArgs),
    /// Test the gateway with faulty servers and hostile clients
    Arena(arena::ArenaArgs),
    /// Fuzz the parsers of external input
    Fuzz(fuzz::FuzzArgs),
    /// Test every feature with every kind of client and server
    Matrix(matrix::MatrixArgs),
    /// Convert real OpenAPI documents to tools and judge the result
    Corpus(corpus::CorpusArgs),
    /// Measure the tool search on public catalogs and queries
    Retrieval(retrieval::RetrievalArgs),
    /// Exercise a server through a gateway, as the client of the conformance suite
    #[command(hide = true)]
    Drive(conformance::DriveArgs),
    /// Execute another program, which ends with the parent of this one
    #[command(hide = true)]
    Launch {
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

fn main() -> anyhow::Result<()> {
    match XtaskCommand::parse() {
        XtaskCommand::Test(args) => test::run(&args),
        XtaskCommand::PeerSoftware => peers::run(),
        XtaskCommand::Conformance(args) => conformance::run(&args),
        XtaskCommand::Tidy => tidy::run(),
        XtaskCommand::Reference => reference::run(),
        XtaskCommand::Bench(args) => bench::run(args),
        XtaskCommand::Arena(args) => arena::run(args),
        XtaskCommand::Fuzz(args) => fuzz::run(&args),
        XtaskCommand::Matrix(args) => matrix::run(&args),
        XtaskCommand::Corpus(args) => corpus::run(&args),
        XtaskCommand::Retrieval(args) => retrieval::run(&args),
        XtaskCommand::Drive(args) => conformance::drive(&args),
        XtaskCommand::Launch { command } => process::exec_program(&command),
    }
}

/// The repository's root: the folder above this package's.
fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}
