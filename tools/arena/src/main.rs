//! `cargo xtask arena`: a faulty server or a hostile client costs the others no call.
//!
//! The gateway has ten handlers, over stdio and HTTP, in both eras. One of their servers is faulty. Clients call the
//! good servers all the time and the faulty one at intervals; then the fault is removed, and the server has to
//! recover without a restart of the gateway. At the end the gateway is terminated, and killed, and the remaining
//! processes are counted.
//!
//! The attacks of hostile clients are in `hostile`.

#![expect(clippy::print_stdout, reason = "a developer's tool: it prints to the terminal")]

mod fault;
mod fault_run;
mod fault_test_bed;
mod hostile;
mod load;
mod peer;
mod report;
mod status;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::builder::PossibleValue;
use clap::{Parser, ValueEnum};
use tokio::runtime::Runtime;
use xtask_support::builds::{CargoProfile, path_or_build};
use xtask_support::process;

use self::fault::ServerFault;
use self::hostile::{AttackStrength, HostileAttack};

/// A faulty server or a hostile client beside good servers and clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ArenaScenario {
    Fault(ServerFault),
    Attack(HostileAttack),
}

static SCENARIOS: LazyLock<Vec<ArenaScenario>> = LazyLock::new(|| {
    let faults = ServerFault::value_variants().iter().copied().map(ArenaScenario::Fault);
    faults.chain(HostileAttack::value_variants().iter().copied().map(ArenaScenario::Attack)).collect()
});

impl ValueEnum for ArenaScenario {
    fn value_variants<'a>() -> &'a [ArenaScenario] {
        &SCENARIOS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            ArenaScenario::Fault(fault) => fault.to_possible_value(),
            ArenaScenario::Attack(attack) => attack.to_possible_value(),
        }
    }
}

/// Test the gateway with faulty servers and hostile clients
#[derive(Parser)]
#[command(bin_name = "cargo xtask arena")]
struct ArenaArgs {
    /// Run only these faults and attacks
    #[arg(long, value_enum, value_delimiter = ',', hide_default_value = true, default_values_t = SCENARIOS.clone())]
    only: Vec<ArenaScenario>,
    /// Number of calls to each of the nine good servers while the tenth is faulty
    #[arg(long, default_value_t = 1000)]
    calls: usize,
    /// Minimum time over which these calls are spread, in seconds
    #[arg(long, default_value_t = 6.0)]
    seconds: f64,
    /// Attack with a quarter of the hostile clients, for a shorter time
    #[arg(long)]
    short: bool,
    /// Use this gateway binary instead of building one
    #[arg(long, value_name = "PATH")]
    gateway: Option<PathBuf>,
    #[command(subcommand)]
    process: Option<ArenaProcess>,
}

/// Processes that the arena starts.
#[derive(clap::Subcommand)]
enum ArenaProcess {
    /// Run a server, good or faulty
    #[command(hide = true)]
    Peer(peer::PeerArgs),
    /// Run the server that hostile clients call
    #[command(hide = true)]
    HostileServer(hostile::server::HostileServerArgs),
}

/// The size of each fault run and each attack.
struct ArenaPlan {
    /// Number of calls to each good server.
    calls: usize,
    /// Minimum time of these calls.
    time: Duration,
    /// Size of each attack.
    strength: AttackStrength,
}

fn main() -> ExitCode {
    xtask_support::exit_code(execute())
}

/// Runs the selected scenarios, prints their tables, and fails if the gateway fails one.
fn execute() -> anyhow::Result<()> {
    process::exec_if_launcher()?;
    let args = ArenaArgs::parse();
    match args.process {
        Some(ArenaProcess::Peer(args)) => return peer::serve(args),
        Some(ArenaProcess::HostileServer(args)) => return hostile::server::serve(&args),
        None => {}
    }
    let time = Duration::try_from_secs_f64(args.seconds).context("--seconds")?;
    let strength = if args.short { AttackStrength::SHORT } else { AttackStrength::FULL };
    let plan = ArenaPlan { calls: args.calls, time, strength };
    let target = ["--package", "toolyard", "--bin", "toolyard"];
    let binary = path_or_build(args.gateway.as_deref(), &target, CargoProfile::Release)?;
    run_scenarios(&args.only, &plan, &binary)
}

fn run_scenarios(subjects: &[ArenaScenario], plan: &ArenaPlan, binary: &Path) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut faults, mut attacks) = (Vec::new(), Vec::new());
    for subject in subjects {
        match subject {
            ArenaScenario::Fault(fault) => faults.push(*fault),
            ArenaScenario::Attack(attack) => attacks.push(*attack),
        }
    }
    let mut problems = run_faults(&runtime, &faults, plan, binary)?;
    problems.extend(hostile::run_attacks(&runtime, &attacks, plan.strength, binary)?);
    ensure!(problems.is_empty(), "the gateway failed the arena\n{}", problems.join("\n"));
    Ok(())
}

fn run_faults(
    runtime: &Runtime,
    faults: &[ServerFault],
    plan: &ArenaPlan,
    binary: &Path,
) -> anyhow::Result<Vec<String>> {
    if faults.is_empty() {
        return Ok(Vec::new());
    }
    let mut problems = Vec::new();
    println!("{}", report::table_header());
    for fault in faults {
        let row = runtime.block_on(fault_run::run_fault(*fault, plan, binary));
        let row = row.with_context(|| fault.to_string())?;
        println!("{}", report::table_row(&row));
        problems.extend(report::problems(&row));
    }
    println!("{}\n", report::footer());
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threat_model_names_every_attack() {
        let text = std::fs::read_to_string(xtask_support::root().join("docs/security.md")).unwrap();
        let spans = text.split('`').filter_map(|span| span.strip_prefix("cargo xtask arena --only "));
        let documented: Vec<&str> = spans.collect();
        for attack in HostileAttack::value_variants() {
            assert!(documented.contains(&&*attack.to_string()), "{attack}");
        }
        for name in documented {
            assert!(ArenaScenario::from_str(name, false).is_ok(), "{name}");
        }
    }
}
