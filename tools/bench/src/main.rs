//! `cargo xtask bench`: the cost of a call through the gateway, compared with nginx; of a tool on the SDK, compared
//! with rmcp; and of a call of a hosted function, compared with a process per call.
//!
//! Absolute figures of a machine that also builds and tests mean little. The measure is therefore the CPU time of the
//! process under test per call, as a ratio to the CPU time of its competitor for the same call moments before. The
//! bench prints the goals beside the measurements; it fails on a wrong response, never on a slow one.

mod bus;
mod call_program;
mod callgrind;
mod catalog;
mod difference;
mod echo;
mod functions;
mod gateway;
mod goals;
mod growth;
mod grpc;
mod grpc_echo;
mod history;
mod hop;
mod instructions;
mod libraries;
mod load;
mod messages;
mod nginx;
mod openapi;
mod operation;
mod page;
mod plot;
mod replicas;
mod report;
mod rest;
mod runs;
mod sample;
mod serve;
mod sink;
mod soak;
mod table;
mod targets;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Parser, ValueEnum};
use xtask_support::builds::CargoProfile;
use xtask_support::process;

use self::history::{ACCEPTED_GROWTH, BuildKind, CountHistory, REPORTED_GROWTH};
use self::instructions::InstructionRow;
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
    /// Make only these measurements [default: all; quick: all but bus and instructions]
    #[arg(long, value_enum, value_delimiter = ',')]
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
    /// Write the tables and plots of docs/benchmarks.md
    #[arg(long, conflicts_with = "quick")]
    write: bool,
    #[command(flatten)]
    history: HistoryArgs,
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
    /// Use this build of the program that converts descriptors
    #[arg(long, value_name = "PATH")]
    descriptors: Option<PathBuf>,
    /// Use this build of the program that calls over a bus
    #[arg(long, value_name = "PATH")]
    bus: Option<PathBuf>,
}

/// The recorded instructions and allocations of a call.
#[derive(clap::Args)]
struct HistoryArgs {
    /// Fail if a call takes 10 % more instructions or allocations than recorded in tools/bench/history.csv
    #[arg(long)]
    check: bool,
    /// Record the instructions and allocations of a call in that file
    #[arg(long, conflicts_with = "check")]
    record: bool,
    /// Profile that the gateway of --gateway was built with [default: the name of its folder]
    #[arg(long, value_name = "PROFILE")]
    gateway_profile: Option<String>,
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
    /// Run the gRPC server that is called directly and as a tool
    #[command(hide = true)]
    GrpcEcho,
    /// Run the same server over stdio
    #[command(hide = true)]
    EchoStdio,
    /// Run the bare JSON proxy
    #[command(hide = true)]
    Hop {
        #[arg(long)]
        upstream: SocketAddr,
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
    /// A gRPC method as a tool, compared with calls of its server; the time from descriptors to tools
    Grpc,
    /// A call over each message bus, compared with a bare request on its broker
    Bus,
    /// Two and four gateways on one PostgreSQL, compared with one
    Replicas,
    /// Instructions and allocations of a call, which are the same on a busy machine
    Instructions,
    /// Calls with arguments and results of 10 kB and 1 MB, and with streams
    Messages,
    /// The cost of a call by the number of tools, sessions and keys; lists for many scopes
    Growth,
    /// Resident memory over a million calls
    Memory,
    /// Time from exec to the first list
    Start,
    /// The same trivial tool on the SDK and on rmcp: calls as above, memory of idle sessions
    Sdk,
    /// A hosted function in each language, compared with a process per call
    Functions,
}

impl BenchSection {
    const ALL: [BenchSection; 15] = [
        BenchSection::Calls,
        BenchSection::Lists,
        BenchSection::Layers,
        BenchSection::Operation,
        BenchSection::Openapi,
        BenchSection::Grpc,
        BenchSection::Bus,
        BenchSection::Replicas,
        BenchSection::Instructions,
        BenchSection::Messages,
        BenchSection::Growth,
        BenchSection::Memory,
        BenchSection::Start,
        BenchSection::Sdk,
        BenchSection::Functions,
    ];

    /// `true` if it measures a target between a client and the upstream.
    fn needs_targets(self) -> bool {
        !matches!(self, BenchSection::Bus | BenchSection::Sdk | BenchSection::Functions)
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
    /// Number of calls whose instructions are counted.
    counted_calls: u64,
    /// `true` if the bytes of their allocations are counted, too.
    counts_bytes: bool,
    /// `true` if gateways grow to their full sizes and their instructions are counted.
    grows_fully: bool,
    /// Number of calls over which the memory is read.
    soak_calls: u64,
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
        Some(BenchProcess::GrpcEcho) => return grpc_echo::run(),
        Some(BenchProcess::EchoStdio) => return echo::run_stdio(),
        Some(BenchProcess::Hop { upstream }) => return hop::run(upstream),
        Some(BenchProcess::Sink) => return sink::run(),
        None => {}
    }
    // The load generator and the upstream are in this binary: a debug build would distort the measurement.
    ensure!(
        args.quick
            || args.history.check
            || args.sections() == [BenchSection::Instructions]
            || !cfg!(debug_assertions),
        "a debug build measures itself: run `cargo xtask bench`, or add --quick"
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&args))
}

async fn measure(args: &BenchArgs) -> anyhow::Result<()> {
    let plan = BenchPlan::new(args)?;
    let workshop = TargetFactory::prepare(&plan, &args.binaries, args.nginx_workers)?;
    let mut report = BenchReport::new(plan.rounds, plan.cell);
    (report.date, report.rustc) = (callgrind::today()?, callgrind::rustc_version()?);
    report.profile = args.gateway_profile();
    report::show(&format!("profile of the programs that are built here: {}", PROFILE.name()))?;
    for section in args.sections() {
        if let Err(error) = runs::run(section, &plan, &workshop, &mut report).await {
            let section = section.to_possible_value().map(|value| value.get_name().to_owned());
            report.fail(section.unwrap_or_default(), &error)?;
        }
    }
    report.goals = goals::evaluate(&report);
    report::show(&report.goal_table())?;
    args.json.as_deref().map_or(Ok(()), |file| write_json(file, &report))?;
    if args.write {
        page::write(&report)?;
    }
    compare(&args.history, &report)?;
    let failed: Vec<_> = report.failures.iter().map(|failure| failure.measurement.as_str()).collect();
    ensure!(failed.is_empty(), "measurements failed: {}", failed.join("; "));
    Ok(())
}

/// Records the instructions and allocations of a call, or compares them with the recorded ones.
fn compare(args: &HistoryArgs, report: &BenchReport) -> anyhow::Result<()> {
    let build = BuildKind { profile: report.profile.clone(), rustc: report.rustc.clone() };
    if args.record {
        CountHistory::record(&report.instructions, &build, &report.date)?;
    }
    if !args.check {
        return Ok(());
    }
    let history = CountHistory::read()?;
    let growths = |share| history.growths(&report.instructions, &build, share);
    report::show(&growths(REPORTED_GROWTH).join("\n"))?;
    let refused = growths(ACCEPTED_GROWTH);
    let remedy = "if the cost is worth it, record it with --record";
    ensure!(refused.is_empty(), "{}\n{remedy}", refused.join("\n"));
    // Another compiler or server begins its own record.
    let is_new = |row: &&InstructionRow| !history.has(row, &build);
    let rows: Vec<_> = report.instructions.iter().filter(is_new).cloned().collect();
    if rows.is_empty() { Ok(()) } else { CountHistory::record(&rows, &build, &report.date) }
}

fn write_json(file: &Path, report: &BenchReport) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(report)?;
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

impl BenchArgs {
    fn sections(&self) -> Vec<BenchSection> {
        let all = BenchSection::ALL.into_iter();
        match (self.only.is_empty(), self.quick) {
            (false, _) => self.only.clone(),
            (true, true) => all
                .filter(|section| !matches!(section, BenchSection::Bus | BenchSection::Instructions))
                .collect(),
            (true, false) => all.collect(),
        }
    }

    /// The profile of the measured gateway: cargo builds `dev` in the folder `debug`.
    fn gateway_profile(&self) -> String {
        let folder = self.binaries.gateway.as_deref().map(|path| path.parent().and_then(Path::file_name));
        let named = match folder {
            None => PROFILE.name().to_owned(),
            Some(folder) => match folder.map(std::ffi::OsStr::to_string_lossy) {
                Some(name) if name != "debug" => name.into_owned(),
                _ => "dev".to_owned(),
            },
        };
        self.history.gateway_profile.clone().unwrap_or(named)
    }
}

impl BenchPlan {
    fn measures_gateways(&self) -> bool {
        self.kinds.iter().any(|kind| kind.is_gateway())
    }

    fn new(args: &BenchArgs) -> anyhow::Result<BenchPlan> {
        let seconds = args.seconds.unwrap_or(if args.quick { 0.1 } else { 2.0 });
        let rounds = args.rounds.unwrap_or(if args.quick { 1 } else { 3 });
        let sections = args.sections();
        let needs_targets = sections.iter().any(|section| section.needs_targets());
        let counts = args.history.check;
        let libraries: &[McpLibrary] = match () {
            () if sections.contains(&BenchSection::Sdk) => &McpLibrary::ALL,
            () if sections.contains(&BenchSection::Instructions) => &[McpLibrary::Sdk],
            () => &[],
        };
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
            counted_calls: if counts || args.quick { 200 } else { 1_000 },
            counts_bytes: !counts && !args.quick,
            grows_fully: !args.quick,
            soak_calls: if args.quick { 3_200 } else { 1_000_000 },
            libraries,
            function_loads: if args.quick { &[1] } else { &[1, 8] },
        })
    }
}
