//! Instructions and allocations of a call, counted by valgrind. Unlike times they are the same on a busy machine, so that
//! versions can be compared at any time.

use anyhow::Context;
use serde::Serialize;
use xtask_client::McpEra;

use super::callgrind::{self, CallgrindFiles, DhatFile, ThreadCounts, await_idle};
use super::gateway::{GatewaySetup, UpstreamKind};
use super::load::first_list;
use super::report::{BenchReport, show};
use super::runs::ERAS;
use super::table::{TableCell, number, table, text};
use super::targets::{BenchTarget, McpLibrary, TargetFactory};
use super::{BenchPlan, grpc};

/// Number of calls before the counted ones, which fill pools and caches.
const FIRST_CALLS: u64 = 50;

/// A server whose calls are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) enum CountedServer {
    /// The gateway in its default configuration.
    Gateway,
    /// The gateway without an audit trail.
    Unaudited,
    /// The gateway with an API key, an audit trail and all traces.
    Operated,
    /// An operation of an OpenAPI document, without an audit trail.
    OpenApi,
    /// A method of a gRPC server, without an audit trail.
    Grpc,
    /// A server on the SDK, without a gateway.
    Sdk,
}

/// The cost of one call.
#[derive(Clone, Serialize)]
pub(super) struct InstructionRow {
    pub server: CountedServer,
    pub era: McpEra,
    /// In user space, of all threads.
    pub instructions: f64,
    /// Those of the thread that serves the calls.
    pub thread_instructions: f64,
    pub thread_allocations: f64,
    pub allocations: f64,
    pub reallocations: f64,
    pub frees: f64,
    /// Total of all allocations; `None` if it was not counted.
    pub allocated_bytes: Option<f64>,
}

impl CountedServer {
    pub(super) const ALL: [CountedServer; 6] = [
        CountedServer::Gateway,
        CountedServer::Unaudited,
        CountedServer::Operated,
        CountedServer::OpenApi,
        CountedServer::Grpc,
        CountedServer::Sdk,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            CountedServer::Gateway => "gateway",
            CountedServer::Unaudited => "unaudited",
            CountedServer::Operated => "operated",
            CountedServer::OpenApi => "OpenAPI operation",
            CountedServer::Grpc => grpc::METHOD,
            CountedServer::Sdk => "SDK server",
        }
    }

    /// The settings of the gateway; `None` without one.
    fn setup(self) -> Option<GatewaySetup<'static>> {
        match self {
            CountedServer::Gateway => Some(GatewaySetup::DEFAULT),
            CountedServer::Unaudited => Some(GatewaySetup::MINIMAL),
            CountedServer::Operated => Some(GatewaySetup::OPERATED),
            CountedServer::OpenApi => {
                Some(GatewaySetup { upstream: UpstreamKind::OpenApi, ..GatewaySetup::MINIMAL })
            }
            CountedServer::Grpc => {
                Some(GatewaySetup { upstream: UpstreamKind::Grpc, ..GatewaySetup::MINIMAL })
            }
            CountedServer::Sdk => None,
        }
    }

    /// Starts it under another program.
    async fn start(
        self,
        runner: &[String],
        workshop: &TargetFactory,
        echo: &BenchTarget,
    ) -> anyhow::Result<BenchTarget> {
        let words = callgrind::words(runner);
        let target = match self.setup() {
            Some(setup) => workshop.gateway_with_runner(&words, echo, &setup).await?,
            None => workshop.library_with_runner(&words, McpLibrary::Sdk)?,
        };
        first_list(&target, 1).await?;
        Ok(target)
    }

    /// `true` if the bytes of its allocations are counted, which takes three more runs.
    fn counts_bytes(self) -> bool {
        matches!(self, CountedServer::Gateway | CountedServer::Unaudited)
    }
}

/// Counts all servers in both eras.
pub(super) async fn measure(
    plan: &BenchPlan,
    workshop: &TargetFactory,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let (echo, grpc_echo) = (workshop.echo(1)?, workshop.grpc_echo()?);
    for server in CountedServer::ALL {
        let upstream = if server == CountedServer::Grpc { &grpc_echo } else { &echo };
        let counted = count_server(server, plan, workshop, upstream).await;
        match counted {
            Ok(rows) => report.instructions.extend(rows),
            Err(error) => report.fail(format!("instructions, {}", server.name()), &error)?,
        }
    }
    show(&report.instruction_table())
}

/// Counts one server in both eras.
async fn count_server(
    server: CountedServer,
    plan: &BenchPlan,
    workshop: &TargetFactory,
    echo: &BenchTarget,
) -> anyhow::Result<Vec<InstructionRow>> {
    let name = server.name().replace([',', ' '], "-");
    let mut files = CallgrindFiles::new(workshop.folder.path().join(format!("{name}.callgrind")))?;
    let target = server.start(&files.runner(), workshop, echo).await?;
    let mut rows = Vec::new();
    for era in ERAS {
        let counts = count_calls(&target, &mut files, era, plan.counted_calls).await?;
        rows.push(InstructionRow::new(server, era, &counts, plan.counted_calls));
    }
    drop(target);
    if plan.counts_bytes && server.counts_bytes() {
        for row in &mut rows {
            row.allocated_bytes =
                Some(allocated_bytes(server, row.era, plan.counted_calls, workshop, echo).await?);
        }
    }
    Ok(rows)
}

/// Counts the calls of one era, one after the other.
pub(super) async fn count_calls(
    target: &BenchTarget,
    files: &mut CallgrindFiles,
    era: McpEra,
    calls: u64,
) -> anyhow::Result<ThreadCounts> {
    let mut connection = target.connect(era).await?;
    let mut counts = files.take(target.process())?;
    for calls in [FIRST_CALLS, calls] {
        for call in 0..calls {
            connection.call_echo(&call.to_string()).await?;
        }
        if target.defers_work {
            await_idle(target.process()).await?;
        }
        counts = files.take(target.process())?;
    }
    connection.close().await?;
    Ok(counts)
}

/// The bytes that a call allocates: the difference between two runs.
async fn allocated_bytes(
    server: CountedServer,
    era: McpEra,
    calls: u64,
    workshop: &TargetFactory,
    echo: &BenchTarget,
) -> anyhow::Result<f64> {
    let mut totals = [0; 2];
    for (total, calls) in totals.iter_mut().zip([FIRST_CALLS, FIRST_CALLS + calls]) {
        let file = DhatFile::new(workshop.folder.path().join(format!("{}-{calls}.dhat", era.name())))?;
        let target = server.start(&file.runner(), workshop, echo).await?;
        let mut connection = target.connect(era).await?;
        for call in 0..calls {
            connection.call_echo(&call.to_string()).await?;
        }
        connection.close().await?;
        callgrind::end(&mut target.into_process()?)?;
        *total = file.total_bytes().with_context(|| format!("{}, {}", server.name(), era.name()))?;
    }
    Ok(totals[1].saturating_sub(totals[0]) as f64 / calls as f64)
}

impl InstructionRow {
    fn new(server: CountedServer, era: McpEra, threads: &ThreadCounts, calls: u64) -> InstructionRow {
        let (counts, thread) = (threads.total(), threads.busiest());
        let each = |count: u64| count as f64 / calls as f64;
        InstructionRow {
            server,
            era,
            instructions: each(counts.instructions),
            thread_instructions: each(thread.instructions),
            thread_allocations: each(thread.allocations),
            allocations: each(counts.allocations),
            reallocations: each(counts.reallocations),
            frees: each(counts.frees),
            allocated_bytes: None,
        }
    }

    fn cells(&self) -> Vec<TableCell> {
        vec![
            text(self.server.name()),
            text(self.era.name()),
            number(self.instructions / 1e3, 1),
            number(self.thread_instructions / 1e3, 1),
            number(self.allocations, 1),
            number(self.reallocations, 1),
            number(self.frees, 1),
            self.allocated_bytes.map_or(text("-"), |bytes| number(bytes, 0)),
        ]
    }
}

impl BenchReport {
    pub(super) fn instruction_table(&self) -> String {
        let rows = self.instructions.iter().map(InstructionRow::cells).collect();
        let heads =
            ["server", "era", "instructions/1000", "of its thread", "malloc", "realloc", "free", "bytes"];
        table("instructions in user space and calls of the allocator, per call", &heads, rows)
    }
}
