//! The measurements, one function each. Targets take turns within a round, so that what disturbs the machine for a
//! while disturbs all of them.

use std::time::Instant;

use super::difference::{AddedRow, LayerRow};
use super::gateway::Setup;
use super::load::{Load, Work, first_list};
use super::report::{CallRow, Cost, ListRow, MemoryRow, Report, Start, show};
use super::sample::{Rounds, Sample, median};
use super::targets::{Kind, Target, Workshop};
use super::{Plan, Section, functions, instructions, libraries, openapi, operation};
use crate::client::Era;
use crate::measure::memory;

pub(super) const IN_FLIGHT: [usize; 3] = [1, 16, 64];
pub(super) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];
const LAYERS: [&[&str]; 4] = [&["meter"], &["concurrency"], &["arguments"], &["deadline"]];

/// Makes one of the measurements, shows it and keeps it in the report.
pub(super) async fn run(
    section: Section,
    plan: &Plan,
    workshop: &Workshop,
    report: &mut Report,
) -> anyhow::Result<()> {
    let measures_gateway = plan.measures_gateways();
    match section {
        Section::Calls => calls(plan, workshop, report).await,
        Section::Lists => lists(plan, workshop, report).await,
        Section::Layers if measures_gateway => layers(plan, workshop, report).await,
        Section::Start if measures_gateway => start(plan, workshop, report).await,
        Section::Operation if measures_gateway => operation::measure(plan, workshop, report).await,
        Section::Openapi if measures_gateway => openapi::measure(plan, workshop, report).await,
        Section::Instructions if measures_gateway => instructions::measure(workshop, report).await,
        Section::Layers | Section::Operation | Section::Openapi | Section::Instructions | Section::Start => {
            Ok(())
        }
        Section::Sdk => libraries::measure(plan, workshop, report).await,
        Section::Functions => functions::measure(plan, workshop, report),
    }
}

async fn calls(plan: &Plan, workshop: &Workshop, report: &mut Report) -> anyhow::Result<()> {
    let targets = workshop.line_up(&plan.kinds, plan.tools).await?;
    tokio::time::sleep(plan.settle).await;
    let idle: Vec<u64> = targets.iter().map(|target| memory(target.pid()).resident).collect();
    for (era, in_flight) in ERAS.into_iter().flat_map(|era| IN_FLIGHT.map(|in_flight| (era, in_flight))) {
        let load = Load { era, in_flight, duration: plan.cell, work: Work::Call };
        let measured = in_turns(plan.rounds, load, &targets).await?;
        let nginx = measured_of(Kind::Nginx, &plan.kinds, &measured);
        let rows =
            plan.kinds.iter().zip(&measured).map(|(kind, rounds)| CallRow::new(*kind, &load, rounds, nginx));
        report.calls.extend(rows);
        let of = |kind| measured_of(kind, &plan.kinds, &measured);
        if let (Some(plain), Some(operated)) = (of(Kind::Gateway), of(Kind::Operated)) {
            report.added.push(AddedRow::new(era, in_flight, plain, operated));
        }
    }
    let mib = |kib: u64| kib as f64 / 1024.0;
    report.memory.extend(plan.kinds.iter().zip(&targets).zip(idle).map(|((kind, target), idle)| {
        let peak = memory(target.pid()).peak;
        MemoryRow { target: *kind, idle_mib: mib(idle), peak_mib: mib(peak) }
    }));
    show(&report.call_table())
}

async fn lists(plan: &Plan, workshop: &Workshop, report: &mut Report) -> anyhow::Result<()> {
    for &tools in plan.list_sizes {
        let targets = workshop.line_up(&plan.kinds, tools).await?;
        let load = Load { era: Era::Modern, in_flight: 1, duration: plan.cell, work: Work::List(tools) };
        let measured = in_turns(plan.rounds, load, &targets).await?;
        let nginx = measured_of(Kind::Nginx, &plan.kinds, &measured);
        for ((kind, target), rounds) in plan.kinds.iter().zip(&targets).zip(&measured) {
            let bytes = first_list(target, tools).await?;
            let cost = Cost::new(rounds, nginx);
            report.lists.push(ListRow { target: *kind, tools, bytes, cost });
        }
    }
    show(&report.list_table())
}

/// What a layer costs is what a call costs less without it, in the same round.
async fn layers(plan: &Plan, workshop: &Workshop, report: &mut Report) -> anyhow::Result<()> {
    let echo = workshop.echo(plan.tools)?;
    let mut gateways = vec![workshop.gateway(&echo, &Setup::PLAIN).await?];
    for without in LAYERS {
        gateways.push(workshop.gateway(&echo, &Setup { without, ..Setup::PLAIN }).await?);
    }
    for gateway in &gateways {
        first_list(gateway, plan.tools).await?;
    }
    let load = Load { era: Era::Modern, in_flight: 16, duration: plan.cell, work: Work::Call };
    let measured = in_turns(plan.rounds, load, &gateways).await?;
    let (whole, reduced) = (&measured[0], &measured[1..]);
    report.layers =
        LAYERS.iter().zip(reduced).map(|(layer, rounds)| LayerRow::new(layer[0], whole, rounds)).collect();
    show(&report.layer_table())
}

/// The launcher, which ties the gateway to this process, is counted too: about a millisecond.
async fn start(plan: &Plan, workshop: &Workshop, report: &mut Report) -> anyhow::Result<()> {
    let echo = workshop.echo(plan.tools)?;
    let mut times = Vec::new();
    for _ in 0..plan.starts {
        let begun = Instant::now();
        let gateway = workshop.gateway(&echo, &Setup::PLAIN).await?;
        first_list(&gateway, plan.tools).await?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let min_ms = times.iter().copied().fold(f64::INFINITY, f64::min);
    report.start = Some(Start { runs: times.len(), min_ms, median_ms: median(times) });
    show(&report.start_table())
}

/// Measures each target once a round.
pub(super) async fn in_turns(rounds: usize, load: Load, targets: &[Target]) -> anyhow::Result<Vec<Rounds>> {
    let mut measured: Vec<Vec<Sample>> = targets.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (target, samples) in targets.iter().zip(&mut measured) {
            samples.push(load.measure(target).await?);
        }
    }
    Ok(measured.into_iter().map(Rounds).collect())
}

/// What was measured of the one that the others are compared with, if it is among them.
pub(super) fn measured_of<'a, K: PartialEq, T>(base: K, all: &[K], measured: &'a [T]) -> Option<&'a T> {
    let position = all.iter().position(|one| *one == base)?;
    measured.get(position)
}
