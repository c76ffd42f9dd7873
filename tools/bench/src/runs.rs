//! The measurements, one function each. Targets take turns within a round, so that a temporary disturbance of the
//! machine affects all of them.

use std::time::Instant;

use xtask_client::McpEra;
use xtask_support::measure::memory;

use super::difference::{LayerCostRow, OperationCostRow};
use super::gateway::GatewaySetup;
use super::load::{BenchLoad, RequestKind, first_list};
use super::report::{BenchReport, CallRow, ListRow, MemoryRow, RequestCost, StartTimes, show};
use super::sample::{LoadSample, SampleRounds, median};
use super::targets::{BenchTarget, TargetFactory, TargetKind};
use super::{
    BenchPlan, BenchSection, bus, functions, growth, grpc, instructions, libraries, messages, openapi,
    operation, replicas, soak,
};

pub(super) const IN_FLIGHT: [usize; 3] = [1, 16, 64];
pub(super) const ERAS: [McpEra; 2] = [McpEra::Legacy, McpEra::Modern];
const LAYERS: [&[&str]; 4] = [&["call_timing"], &["concurrency"], &["argument_validation"], &["deadline"]];

/// Makes one of the measurements, prints it and adds it to the report.
pub(super) async fn run(
    section: BenchSection,
    plan: &BenchPlan,
    workshop: &TargetFactory,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let measures_gateway = plan.measures_gateways();
    match section {
        BenchSection::Calls => calls(plan, workshop, report).await,
        BenchSection::Lists => lists(plan, workshop, report).await,
        BenchSection::Layers if measures_gateway => layers(plan, workshop, report).await,
        BenchSection::Start if measures_gateway => start(plan, workshop, report).await,
        BenchSection::Operation if measures_gateway => operation::measure(plan, workshop, report).await,
        BenchSection::Openapi if measures_gateway => openapi::measure(plan, workshop, report).await,
        BenchSection::Grpc if measures_gateway => grpc::measure(plan, workshop, report).await,
        BenchSection::Replicas if measures_gateway => replicas::measure(plan, workshop, report).await,
        BenchSection::Instructions if measures_gateway => instructions::measure(plan, workshop, report).await,
        BenchSection::Messages => messages::measure(plan, workshop, report).await,
        BenchSection::Growth if measures_gateway => growth::measure(plan, workshop, report).await,
        BenchSection::Memory if measures_gateway => soak::measure(plan, workshop, report).await,
        BenchSection::Layers
        | BenchSection::Operation
        | BenchSection::Openapi
        | BenchSection::Grpc
        | BenchSection::Replicas
        | BenchSection::Instructions
        | BenchSection::Growth
        | BenchSection::Memory
        | BenchSection::Start => Ok(()),
        BenchSection::Sdk => libraries::measure(plan, workshop, report).await,
        BenchSection::Bus => bus::measure(plan, workshop, report),
        BenchSection::Functions => functions::measure(plan, workshop, report),
    }
}

async fn calls(plan: &BenchPlan, workshop: &TargetFactory, report: &mut BenchReport) -> anyhow::Result<()> {
    let targets = workshop.start_targets(&plan.kinds, plan.tools).await?;
    tokio::time::sleep(plan.settle).await;
    let idle: Vec<u64> = targets.iter().map(|target| memory(target.pid()).resident).collect();
    for (era, in_flight) in ERAS.into_iter().flat_map(|era| IN_FLIGHT.map(|in_flight| (era, in_flight))) {
        let load = BenchLoad { era, in_flight, duration: plan.cell, work: RequestKind::Call };
        let measured = measure_in_turns(plan.rounds, load, &targets).await?;
        let nginx = baseline_of(TargetKind::Nginx, &plan.kinds, &measured);
        let rows =
            plan.kinds.iter().zip(&measured).map(|(kind, rounds)| CallRow::new(*kind, &load, rounds, nginx));
        report.calls.extend(rows);
        let rounds_of = |kind| baseline_of(kind, &plan.kinds, &measured);
        if let Some(plain) = rounds_of(TargetKind::Unaudited) {
            for kind in [TargetKind::Gateway, TargetKind::Operated] {
                let row =
                    rounds_of(kind).map(|more| OperationCostRow::new(kind, era, in_flight, plain, more));
                report.added.extend(row);
            }
        }
    }
    let mib = |kib: u64| kib as f64 / 1024.0;
    report.memory.extend(plan.kinds.iter().zip(&targets).zip(idle).map(|((kind, target), idle)| {
        let peak = memory(target.pid()).peak;
        MemoryRow { target: *kind, idle_mib: mib(idle), peak_mib: mib(peak) }
    }));
    show(&report.call_table())
}

async fn lists(plan: &BenchPlan, workshop: &TargetFactory, report: &mut BenchReport) -> anyhow::Result<()> {
    for &tools in plan.list_sizes {
        let targets = workshop.start_targets(&plan.kinds, tools).await?;
        let load = BenchLoad {
            era: McpEra::Modern,
            in_flight: 1,
            duration: plan.cell,
            work: RequestKind::List(tools),
        };
        let measured = measure_in_turns(plan.rounds, load, &targets).await?;
        let nginx = baseline_of(TargetKind::Nginx, &plan.kinds, &measured);
        for ((kind, target), rounds) in plan.kinds.iter().zip(&targets).zip(&measured) {
            let bytes = first_list(target, tools).await?;
            let cost = RequestCost::new(rounds, nginx);
            report.lists.push(ListRow { target: *kind, tools, bytes, cost });
        }
    }
    show(&report.list_table())
}

/// The cost of a layer is the saving without it, in the same round.
async fn layers(plan: &BenchPlan, workshop: &TargetFactory, report: &mut BenchReport) -> anyhow::Result<()> {
    let echo = workshop.echo(plan.tools)?;
    let mut gateways = vec![workshop.gateway(&echo, &GatewaySetup::MINIMAL).await?];
    for without in LAYERS {
        gateways.push(workshop.gateway(&echo, &GatewaySetup { without, ..GatewaySetup::MINIMAL }).await?);
    }
    for gateway in &gateways {
        first_list(gateway, plan.tools).await?;
    }
    let load = BenchLoad { era: McpEra::Modern, in_flight: 16, duration: plan.cell, work: RequestKind::Call };
    let measured = measure_in_turns(plan.rounds, load, &gateways).await?;
    let (whole, reduced) = (&measured[0], &measured[1..]);
    report.layers = LAYERS
        .iter()
        .zip(reduced)
        .map(|(layer, rounds)| LayerCostRow::new(layer[0], whole, rounds))
        .collect();
    show(&report.layer_table())
}

/// The time includes about a millisecond of the launcher, which ties the gateway to this process.
async fn start(plan: &BenchPlan, workshop: &TargetFactory, report: &mut BenchReport) -> anyhow::Result<()> {
    let echo = workshop.echo(plan.tools)?;
    let mut times = Vec::new();
    for _ in 0..plan.starts {
        let started = Instant::now();
        let gateway = workshop.gateway(&echo, &GatewaySetup::DEFAULT).await?;
        first_list(&gateway, plan.tools).await?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    let min_ms = times.iter().copied().fold(f64::INFINITY, f64::min);
    report.start = Some(StartTimes { runs: times.len(), min_ms, median_ms: median(times) });
    show(&report.start_table())
}

/// Measures each target once per round.
pub(super) async fn measure_in_turns(
    rounds: usize,
    load: BenchLoad,
    targets: &[BenchTarget],
) -> anyhow::Result<Vec<SampleRounds>> {
    let mut measured: Vec<Vec<LoadSample>> = targets.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (target, samples) in targets.iter().zip(&mut measured) {
            samples.push(load.measure(target).await?);
        }
    }
    Ok(measured.into_iter().map(SampleRounds).collect())
}

/// The measurement of the baseline, if it is among the measured.
pub(super) fn baseline_of<'a, K: PartialEq, T>(base: K, all: &[K], measured: &'a [T]) -> Option<&'a T> {
    let position = all.iter().position(|one| *one == base)?;
    measured.get(position)
}
