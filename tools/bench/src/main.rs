//! `cargo xtask bench`: the cost of a call through the gateway, compared with nginx; of a tool on the SDK, compared
//! with rmcp; and of a call of a hosted function, compared with a process per call.
//!
//! Absolute figures of a machine that also builds and tests mean little. The measure is therefore the CPU time of the
//! process under test per call, as a ratio to the CPU time of its competitor for the same call moments before. The
//! bench prints the goals beside the measurements; it fails on a wrong response, never on a slow one.

mod catalog;
mod difference;
mod echo;
mod functions;
mod gateway;
mod goals;
mod instructions;
mod libraries;
mod load;
mod nginx;
mod openapi;
mod operation;
mod report;
mod rest;
mod runs;
mod sample;
mod serve;
mod sink;
mod table;
mod targets;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Parser, ValueEnum};
use xtask_support::builds::CargoProfile;
use xtask_support::process;

use self::report::BenchReport;
use self::targets::{McpLibrary, TargetFactory, TargetKind};

/// Profile of the programs that are built and measured.
const PROFILE: CargoProfile = CargoProfile::Dist;

/// Measure the gateway and its competitors
///
/// The gateway and its competitors in Rust are built with the profile `dist`, unless their paths are given.
#[derive(Parser)]
#[command(bin_name = "cargo xtask bench")]
struct BenchArgs {
    /// Run for seconds only, to test the bench; the figures mean little
    #[arg(long)]
    quick: bool,
    /// Measure each cell for this many seconds [default: 2, quick: 0.1]
    #[arg(long)]
    seconds: Option<f64>,
    /// Measure each cell this many times and report the median [default: 3, quick: 1]
    #[arg(long)]
    rounds: Option<usize>,
    /// Make only these measurements
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = BenchSection::DEFAULT)]
    only: Vec<BenchSection>,
    /// Measure only these targets
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = TargetKind::ALL)]
    targets: Vec<TargetKind>,
    /// Number of tools of the upstream while calls are measured
    #[arg(long, default_value_t = 10)]
    tools: usize,
    /// Number of nginx worker processes
    #[arg(long, default_value_t = 2)]
    nginx_workers: usize,
    #[command(flatten)]
    binaries: BenchBinaries,
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(subcommand)]
    process: Option<BenchProcess>,
}

/// Programs that are already built.
#[derive(clap::Args)]
struct BenchBinaries {
    /// Measure this gateway binary instead of building one
    #[arg(long, value_name = "PATH")]
    gateway: Option<PathBuf>,
    /// Use this build of the trivial tool on the SDK
    #[arg(long, value_name = "PATH")]
    sdk_echo: Option<PathBuf>,
    /// Use this build of the trivial tool on rmcp
    #[arg(long, value_name = "PATH")]
    rmcp_echo: Option<PathBuf>,
    /// Use this build of the program that calls functions
    #[arg(long, value_name = "PATH")]
    functions: Option<PathBuf>,
}

/// Processes that the bench starts.
#[derive(clap::Subcommand)]
enum BenchProcess {
    /// Run the upstream server of all targets
    #[command(hide = true)]
    Echo {
        #[arg(long, default_value_t = 1)]
        tools: usize,
    },
    /// Run the collector that telemetry is sent to
    #[command(hide = true)]
    Sink,
}

/// A group of measurements.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BenchSection {
    /// `tools/call` with 1, 16 and 64 calls in flight, in both eras; memory
    Calls,
    /// `tools/list` with 10 to 5,000 tools
    Lists,
    /// The cost of each layer of the gateway
    Layers,
    /// The cost of an API key, the audit trail and telemetry
    Operation,
    /// An operation of an OpenAPI document as a tool, compared with the same request to its server
    Openapi,
    /// Instructions of the gateway per call, which are the same on a busy machine
    Instructions,
    /// Time from exec to the first list
    Start,
    /// The same trivial tool on the SDK and on rmcp: calls as above, memory of idle sessions
    Sdk,
    /// A hosted function in each language, compared with a process per call
    Functions,
}

impl BenchSection {
    /// All but the one that needs valgrind, and a minute.
    const DEFAULT: [BenchSection; 8] = [
        BenchSection::Calls,
        BenchSection::Lists,
        BenchSection::Layers,
        BenchSection::Operation,
        BenchSection::Openapi,
        BenchSection::Start,
        BenchSection::Sdk,
        BenchSection::Functions,
    ];

    /// `true` if it measures a target between a client and the upstream.
    fn needs_targets(self) -> bool {
        !matches!(self, BenchSection::Sdk | BenchSection::Functions)
    }
}

/// The size of the measurements.
struct BenchPlan {
    cell: Duration,
    rounds: usize,
    tools: usize,
    list_sizes: &'static [usize],
    starts: usize,
    sessions: usize,
    /// Time after which the idle memory of a process is read.
    settle: Duration,
    kinds: Vec<TargetKind>,
    libraries: &'static [McpLibrary],
    /// Numbers of function calls in flight.
    function_loads: &'static [usize],
}

fn main() -> ExitCode {
    xtask_support::exit_code(execute())
}

/// Measures and prints; fails only on a wrong response or a failed start.
fn execute() -> anyhow::Result<()> {
    process::exec_if_launcher()?;
    let args = BenchArgs::parse();
    match args.process {
        Some(BenchProcess::Echo { tools }) => return echo::run(tools),
        Some(BenchProcess::Sink) => return sink::run(),
        None => {}
    }
    // The load generator and the upstream are in this binary: a debug build would distort the measurement.
    ensure!(
        args.quick || !cfg!(debug_assertions),
        "a debug build measures itself: run `cargo xtask bench`, or add --quick"
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&args))
}

async fn measure(args: &BenchArgs) -> anyhow::Result<()> {
    let plan = BenchPlan::new(args)?;
    let workshop = TargetFactory::prepare(&plan, &args.binaries, args.nginx_workers)?;
    let mut report = BenchReport::new(plan.rounds, plan.cell);
    report::show(&format!("profile of the programs that are built here: {}", report.profile))?;
    for section in &args.only {
        if let Err(error) = runs::run(*section, &plan, &workshop, &mut report).await {
            let section = section.to_possible_value().map(|value| value.get_name().to_owned());
            report.fail(section.unwrap_or_default(), &error)?;
        }
    }
    report.goals = goals::evaluate(&report);
    report::show(&report.goal_table())?;
    args.json.as_deref().map_or(Ok(()), |file| write_json(file, &report))?;
    let failed: Vec<_> = report.failures.iter().map(|failure| failure.measurement.as_str()).collect();
    ensure!(failed.is_empty(), "measurements failed: {}", failed.join("; "));
    Ok(())
}

fn write_json(file: &Path, report: &BenchReport) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(report)?;
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

impl BenchPlan {
    fn measures_gateways(&self) -> bool {
        self.kinds.iter().any(|kind| kind.is_gateway())
    }

    fn new(args: &BenchArgs) -> anyhow::Result<BenchPlan> {
        let seconds = args.seconds.unwrap_or(if args.quick { 0.1 } else { 2.0 });
        let rounds = args.rounds.unwrap_or(if args.quick { 1 } else { 3 });
        let needs_targets = args.only.iter().any(|section| section.needs_targets());
        ensure!(rounds > 0 && args.tools > 0, "at least one round and one tool are needed");
        Ok(BenchPlan {
            cell: Duration::try_from_secs_f64(seconds).context("--seconds")?,
            rounds,
            tools: args.tools,
            list_sizes: if args.quick { &[10, 100] } else { &[10, 100, 1_000, 5_000] },
            starts: if args.quick { 2 } else { 10 },
            sessions: if args.quick { 50 } else { 1_000 },
            settle: Duration::from_millis(if args.quick { 50 } else { 500 }),
            kinds: if needs_targets { args.targets.clone() } else { Vec::new() },
            libraries: if args.only.contains(&BenchSection::Sdk) { &McpLibrary::ALL } else { &[] },
            function_loads: if args.quick { &[1] } else { &[1, 8] },
        })
    }
}
