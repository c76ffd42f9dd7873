//! `cargo xtask arena`: nothing that one server does costs the others a call.
//!
//! The gateway has ten handlers, over stdio and HTTP, in both eras. One of their servers has a fault. Clients call the
//! others all the time and the faulty one now and then; then the server is a good one again, and must come back
//! without a restart of the gateway. At last the gateway is ended, and killed, and what is left of it is counted.

mod fault;
mod load;
mod peer;
mod report;
mod round;
mod status;
mod yard;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};

use self::fault::Fault;
use crate::builds::{built, named_or_built};

/// What `cargo xtask arena` takes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which faults to show
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Fault::all())]
    only: Vec<Fault>,
    /// How often each of the nine good servers is called while the tenth is faulty
    #[arg(long, default_value_t = 1000)]
    calls: usize,
    /// Over how many seconds these calls are spread, at least
    #[arg(long, default_value_t = 6.0)]
    seconds: f64,
    /// A gateway binary to use instead of building one
    #[arg(long, value_name = "PATH")]
    gateway: Option<PathBuf>,
    #[command(subcommand)]
    part: Option<Part>,
}

/// What the arena runs as a process of its own.
#[derive(clap::Subcommand)]
enum Part {
    /// A server, good or faulty
    #[command(hide = true)]
    Peer(peer::Args),
}

/// How much each fault is given.
struct Plan {
    /// Of each good server.
    calls: usize,
    /// How long they take at least.
    time: Duration,
}

/// Shows all that was asked for, prints the table, and fails if the gateway has not stood something.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    if let Some(Part::Peer(args)) = args.part {
        return peer::serve(args);
    }
    let time = Duration::try_from_secs_f64(args.seconds).context("--seconds")?;
    let plan = Plan { calls: args.calls, time };
    let binary = named_or_built(args.gateway.as_deref(), &["--package", "toolyard", "--bin", "toolyard"])?;
    show(&args.only, &plan, &binary)
}

/// Shows every fault for a short time, with the gateway that was built last.
pub(crate) fn check() -> anyhow::Result<()> {
    let plan = Plan { calls: 100, time: Duration::from_secs(2) };
    show(&Fault::all(), &plan, &built("toolyard")?)
}

fn show(faults: &[Fault], plan: &Plan, binary: &Path) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut problems = Vec::new();
    println!("{}", report::head());
    for fault in faults {
        let row = runtime.block_on(round::fight(*fault, plan, binary));
        let row = row.with_context(|| fault.to_string())?;
        println!("{}", report::line(&row));
        problems.extend(report::problems(&row));
    }
    println!("{}", report::foot());
    ensure!(problems.is_empty(), "the gateway has not stood everything\n{}", problems.join("\n"));
    Ok(())
}
