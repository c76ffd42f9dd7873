//! `cargo xtask bench`: what a call through the gateway costs, beside what it costs through nginx; and what a tool on
//! the SDK costs, beside the same on rmcp; and what a call of a hosted function costs, beside a process for each call.
//!
//! A machine that builds and tests other things at the same time gives no absolute figure worth keeping. What counts
//! is therefore the CPU time that the process under test spends on a call, as a ratio to what its peer spent on the
//! same call moments before. The bench prints the goals beside what it saw; it fails on a wrong reply, never on a slow
//! one.

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
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::ValueEnum;

use self::report::Report;
use self::targets::{Kind, Library, Workshop};

/// What `cargo xtask bench` takes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A run of seconds that shows that every part works; its figures mean little
    #[arg(long)]
    quick: bool,
    /// How long a cell is measured [default: 2, quick: 0.1]
    #[arg(long)]
    seconds: Option<f64>,
    /// How often every cell is measured; the median is reported [default: 3, quick: 1]
    #[arg(long)]
    rounds: Option<usize>,
    /// Which measurements to make
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Section::USUAL)]
    only: Vec<Section>,
    /// What to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Kind::ALL)]
    targets: Vec<Kind>,
    /// How many tools the upstream has while calls are measured
    #[arg(long, default_value_t = 10)]
    tools: usize,
    /// How many worker processes nginx has
    #[arg(long, default_value_t = 2)]
    nginx_workers: usize,
    #[command(flatten)]
    binaries: Binaries,
    /// Where to write the figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(subcommand)]
    part: Option<Part>,
}

/// Programs that are there already.
#[derive(clap::Args)]
struct Binaries {
    /// A gateway binary to measure instead of building one
    #[arg(long, value_name = "PATH")]
    gateway: Option<PathBuf>,
    /// The trivial tool on the SDK, instead of building it
    #[arg(long, value_name = "PATH")]
    sdk_echo: Option<PathBuf>,
    /// The trivial tool on rmcp, instead of building it
    #[arg(long, value_name = "PATH")]
    rmcp_echo: Option<PathBuf>,
    /// What calls functions, instead of building it
    #[arg(long, value_name = "PATH")]
    functions: Option<PathBuf>,
}

/// What the bench runs as a process of its own.
#[derive(clap::Subcommand)]
enum Part {
    /// The upstream server that every target leads to
    #[command(hide = true)]
    Echo {
        #[arg(long, default_value_t = 1)]
        tools: usize,
    },
    /// The collector that telemetry is sent to
    #[command(hide = true)]
    Sink,
}

/// One of the measurements.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// `tools/call` at 1, 16 and 64 in flight, in both eras; memory
    Calls,
    /// `tools/list` with 10 to 5,000 tools
    Lists,
    /// What each layer of the gateway costs
    Layers,
    /// What a key, the audit trail and telemetry cost
    Operation,
    /// An operation of an OpenAPI document as a tool, and the same request to its server
    Openapi,
    /// How many instructions of the gateway a call takes, which is the same on a busy machine
    Instructions,
    /// From exec to the first list
    Start,
    /// The same trivial tool on the SDK and on rmcp: calls as above, memory of idle sessions
    Sdk,
    /// A hosted function in each language, and a process for each call
    Functions,
}

impl Section {
    /// All but the one that needs valgrind, and a minute.
    const USUAL: [Section; 8] = [
        Section::Calls,
        Section::Lists,
        Section::Layers,
        Section::Operation,
        Section::Openapi,
        Section::Start,
        Section::Sdk,
        Section::Functions,
    ];

    /// Whether it is about what stands between a client and the upstream.
    fn needs_targets(self) -> bool {
        !matches!(self, Section::Sdk | Section::Functions)
    }
}

/// How much is measured.
struct Plan {
    cell: Duration,
    rounds: usize,
    tools: usize,
    list_sizes: &'static [usize],
    starts: usize,
    sessions: usize,
    /// How long a process is left alone before its idle memory is read.
    settle: Duration,
    kinds: Vec<Kind>,
    libraries: &'static [Library],
    /// How many calls of functions are in flight.
    function_loads: &'static [usize],
}

/// Measures, prints what it saw, and fails only where something answered wrongly or could not be started.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    match args.part {
        Some(Part::Echo { tools }) => return echo::run(tools),
        Some(Part::Sink) => return sink::run(),
        None => {}
    }
    // The load generator and the upstream live in this binary: unoptimised, they would eat what is to be measured.
    if cfg!(debug_assertions) && !args.quick {
        return crate::builds::rerun_optimised();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&args))
}

async fn measure(args: &Args) -> anyhow::Result<()> {
    let plan = Plan::new(args)?;
    let workshop = Workshop::open(&plan, &args.binaries, args.nginx_workers)?;
    let mut report = Report::new(plan.rounds, plan.cell);
    for section in &args.only {
        runs::run(*section, &plan, &workshop, &mut report).await?;
    }
    report.goals = goals::judge(&report);
    report::show(&report.goal_table())?;
    args.json.as_deref().map_or(Ok(()), |file| write_json(file, &report))
}

fn write_json(file: &Path, report: &Report) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(report)?;
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

impl Plan {
    fn measures_gateways(&self) -> bool {
        self.kinds.iter().any(|kind| kind.is_gateway())
    }

    fn new(args: &Args) -> anyhow::Result<Plan> {
        let seconds = args.seconds.unwrap_or(if args.quick { 0.1 } else { 2.0 });
        let rounds = args.rounds.unwrap_or(if args.quick { 1 } else { 3 });
        let proxies = args.only.iter().any(|section| section.needs_targets());
        ensure!(rounds > 0 && args.tools > 0, "at least one round and one tool are needed");
        Ok(Plan {
            cell: Duration::try_from_secs_f64(seconds).context("--seconds")?,
            rounds,
            tools: args.tools,
            list_sizes: if args.quick { &[10, 100] } else { &[10, 100, 1_000, 5_000] },
            starts: if args.quick { 2 } else { 10 },
            sessions: if args.quick { 50 } else { 1_000 },
            settle: Duration::from_millis(if args.quick { 50 } else { 500 }),
            kinds: if proxies { args.targets.clone() } else { Vec::new() },
            libraries: if args.only.contains(&Section::Sdk) { &Library::ALL } else { &[] },
            function_loads: if args.quick { &[1] } else { &[1, 8] },
        })
    }
}
