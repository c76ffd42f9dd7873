//! Calls of a gRPC method as a tool, compared with the same calls of its server, and the time in which descriptors
//! become tools.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures_util::future::try_join_all;
use serde::Serialize;
use xtask_client::McpEra;
use xtask_support::builds::path_or_build;
use xtask_support::process::LaunchedProcess;

use super::gateway::{GatewaySetup, UpstreamKind};
use super::grpc_echo::EchoClient;
use super::load::{BenchLoad, RequestKind, first_list};
use super::openapi::{WayRow, way_table};
use super::report::{BenchReport, RequestCost, show};
use super::runs::IN_FLIGHT;
use super::sample::{LoadSample, SampleRounds, median};
use super::table::{number, table};
use super::targets::{BenchTarget, TargetFactory};
use super::{BenchPlan, PROFILE};

pub(super) const METHOD: &str = "gRPC method";

/// The times in which the descriptors of a corpus become tools.
#[derive(Serialize)]
pub(super) struct DescriptorTimes {
    pub methods: usize,
    pub runs: usize,
    pub min_ms: f64,
    pub median_ms: f64,
}

/// Measures the calls in turns, and then the descriptors.
pub(super) async fn measure(
    plan: &BenchPlan,
    workshop: &TargetFactory,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let echo = workshop.grpc_echo()?;
    let setup = GatewaySetup { upstream: UpstreamKind::Grpc, ..GatewaySetup::MINIMAL };
    let gateway = workshop.gateway(&echo, &setup).await?;
    first_list(&gateway, 1).await?;
    for in_flight in IN_FLIGHT {
        let load = BenchLoad { era: McpEra::Modern, in_flight, duration: plan.cell, work: RequestKind::Call };
        let (mut direct, mut as_tool) = (Vec::new(), Vec::new());
        for _ in 0..plan.rounds {
            direct.push(call_directly(&echo, in_flight, plan.cell).await?);
            as_tool.push(load.measure(&gateway).await?);
        }
        let (direct, as_tool) = (SampleRounds(direct), SampleRounds(as_tool));
        for (way, rounds) in [("directly", &direct), (METHOD, &as_tool)] {
            report.grpc.push(WayRow { way, in_flight, cost: RequestCost::new(rounds, Some(&direct)) });
        }
    }
    report.descriptors = descriptor_times(plan, workshop)?;
    show(&report.grpc_table())
}

/// Calls the server itself with a connection for each call in flight.
async fn call_directly(
    echo: &BenchTarget,
    in_flight: usize,
    duration: Duration,
) -> anyhow::Result<LoadSample> {
    let mut clients = try_join_all((0..in_flight).map(|_| EchoClient::connect(echo.address))).await?;
    drive_clients(&mut clients, duration / 5).await?;
    let before = echo.cpu_time();
    let started = Instant::now();
    let latencies = drive_clients(&mut clients, duration).await?;
    let elapsed = started.elapsed();
    Ok(LoadSample::new(latencies, elapsed, echo.cpu_time().saturating_sub(before)))
}

/// Sends calls until the time is over, at least one on each connection.
async fn drive_clients(clients: &mut Vec<EchoClient>, duration: Duration) -> anyhow::Result<Vec<Duration>> {
    let until = Instant::now() + duration;
    let drive = async |(number, mut client): (usize, EchoClient)| {
        let mut latencies = Vec::new();
        loop {
            let started = Instant::now();
            client.call(&format!("{number}-{}", latencies.len())).await?;
            latencies.push(started.elapsed());
            if Instant::now() >= until {
                return anyhow::Ok((client, latencies));
            }
        }
    };
    let driven = try_join_all(clients.drain(..).enumerate().map(drive)).await?;
    let (same, latencies): (Vec<_>, Vec<_>) = driven.into_iter().unzip();
    *clients = same;
    Ok(latencies.concat())
}

/// Measures the descriptors of the corpus; `None` without one.
fn descriptor_times(plan: &BenchPlan, workshop: &TargetFactory) -> anyhow::Result<Option<DescriptorTimes>> {
    let Some(corpora) = xtask_support::corpora("grpc")? else {
        show(&format!("no descriptors are measured: {} is not set", xtask_support::CORPORA_VARIABLE))?;
        return Ok(None);
    };
    let target = ["--package", "toolyard-grpc", "--example", "bench_descriptors"];
    let program = path_or_build(workshop.descriptors.as_deref(), &target, PROFILE)?;
    let file = corpora.join("grpc/googleapis-sample.fds");
    let runs = plan.rounds.to_string();
    let arguments = [file.as_os_str(), OsStr::new(&runs)];
    let (_process, _stdin, output) =
        LaunchedProcess::launch_with_pipes(program, &arguments, Stdio::inherit())?;
    let mut times = Vec::new();
    let mut methods = 0;
    for line in BufReader::new(output).lines() {
        let line = line?;
        let (count, time) = line.split_once(' ').with_context(|| format!("unexpected line: {line}"))?;
        methods = count.parse()?;
        times.push(time.parse::<f64>()?);
    }
    ensure!(times.len() == plan.rounds && methods > 0, "the descriptors were not converted");
    let min_ms = times.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(Some(DescriptorTimes { methods, runs: times.len(), min_ms, median_ms: median(times) }))
}

impl BenchReport {
    /// Calls, then descriptors.
    pub(super) fn grpc_table(&self) -> String {
        let title = "calls of a gRPC method (CPU time of the server that gets the request)";
        let rows = self.descriptors.iter().map(|times| {
            let counts = [times.methods, times.runs].map(|count| number(count as f64, 0));
            counts.into_iter().chain([number(times.min_ms, 1), number(times.median_ms, 1)]).collect()
        });
        let heads = ["methods", "runs", "min ms", "median ms"];
        way_table(title, &self.grpc) + &table("from descriptors to tools", &heads, rows.collect())
    }
}
