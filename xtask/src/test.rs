//! Everything that must pass: the README's test command.

use std::process::Command;

use crate::arena;
use crate::conformance::{self, Subject};
use crate::corpus;
use crate::fuzz;
use crate::matrix;
use crate::peers::Peers;
use crate::process;
use crate::retrieval;
use crate::stages::Stages;
use crate::system;

/// Runs the stages, and prints their times even where one of them fails.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut stages = Stages::default();
    let outcome = all(&mut stages);
    println!("\n{stages}");
    outcome
}

fn all(stages: &mut Stages) -> anyhow::Result<()> {
    stages.run("system packages", system::install)?;
    let peers = stages.run("peers", Peers::prepare)?;
    let mut cargo = |name, args: &[&str]| stages.run(name, || process::run(cargo(&peers).args(args)));
    cargo("build", &["build", "--workspace", "--all-targets"])?;
    cargo("tests", &["nextest", "run", "--workspace"])?;
    cargo("doc tests", &["test", "--doc", "--workspace"])?;
    stages.run("conformance", || conformance::check(Subject::Gateway))?;
    stages.run("conformance of SDK", || conformance::check(Subject::Sdk))?;
    stages.run("conformance of client", || conformance::check(Subject::Client))?;
    stages.run("matrix", matrix::check)?;
    stages.run("OpenAPI corpus", corpus::check)?;
    stages.run("retrieval", retrieval::check)?;
    stages.run("fuzzing", fuzz::check)?;
    stages.run("fault arena", arena::check)
}

/// The tests find the peers by this variable.
fn cargo(peers: &Peers) -> Command {
    let mut cargo = process::cargo();
    cargo.env("TOOLYARD_PEERS", peers.folder());
    cargo
}
