//! The repository's own commands: `cargo xtask --help`.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a developer's tool: it starts other programs and talks to whoever runs it"
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
mod stages;
mod system;
mod test;
mod tidy;

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;

/// The repository's own commands
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Command {
    /// Install what is missing, build, and run every test and the conformance suites
    Test,
    /// Install the foreign software that the tests talk to
    Peers,
    /// Run the MCP conformance suites
    Conformance(conformance::Args),
    /// Check the rules of this repository
    Tidy,
    /// Write the tables of `docs/manifest.md`
    Reference,
    /// Measure the gateway against its peers
    Bench(bench::Args),
    /// Show that a faulty server harms no other
    Arena(arena::Args),
    /// Look for input that a reader of the wire does not stand
    Fuzz(fuzz::Args),
    /// Show which features every client has of every server
    Matrix(matrix::Args),
    /// Make tools of real OpenAPI documents, and have them judged
    Corpus(corpus::Args),
    /// Show how well and how fast tools are found, on catalogs and queries of others
    Retrieval(retrieval::Args),
    /// Use a server through a gateway: what the conformance suite starts as a client
    #[command(hide = true)]
    Drive(conformance::DriveArgs),
    /// Become another program, which ends when this one's parent does
    #[command(hide = true)]
    Launch {
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Test => test::run(),
        Command::Peers => peers::run(),
        Command::Conformance(args) => conformance::run(&args),
        Command::Tidy => tidy::run(),
        Command::Reference => reference::run(),
        Command::Bench(args) => bench::run(args),
        Command::Arena(args) => arena::run(args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Matrix(args) => matrix::run(&args),
        Command::Corpus(args) => corpus::run(&args),
        Command::Retrieval(args) => retrieval::run(&args),
        Command::Drive(args) => conformance::drive(&args),
        Command::Launch { command } => process::become_program(&command),
    }
}

/// The repository's root: the folder above this package's.
fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}
