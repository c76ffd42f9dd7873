//! One trivial tool on our SDK and on rmcp: the cost of a call, and of an idle session.

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use xtask_client::{IdleSession, McpConnection, McpEra};
use xtask_support::measure::memory;

use super::BenchPlan;
use super::load::{BenchLoad, RequestKind, first_list};
use super::report::{BenchReport, LibraryRow, RequestCost, SessionRow, show};
use super::runs::{ERAS, IN_FLIGHT, baseline_of, measure_in_turns};
use super::sample::median;
use super::targets::{BenchTarget, McpLibrary, TargetFactory};

/// Measures calls, then sessions.
pub(super) async fn measure(
    plan: &BenchPlan,
    workshop: &TargetFactory,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    raise_file_limit()?;
    calls(plan, workshop, report).await?;
    for streams in [false, true] {
        sessions(plan, workshop, report, streams).await?;
    }
    show(&report.library_table())
}

/// Raises the limit of open files to the hard limit, for this process and its children: a thousand connections exceed
/// the default of many systems.
fn raise_file_limit() -> anyhow::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).context("raise the limit of open files")
}

async fn calls(plan: &BenchPlan, workshop: &TargetFactory, report: &mut BenchReport) -> anyhow::Result<()> {
    let mut targets = Vec::new();
    for library in plan.libraries {
        targets.push(start(workshop, *library).await?);
    }
    for (era, in_flight) in ERAS.into_iter().flat_map(|era| IN_FLIGHT.map(|in_flight| (era, in_flight))) {
        let load = BenchLoad { era, in_flight, duration: plan.cell, work: RequestKind::Call };
        let rounds_by_library = measure_in_turns(plan.rounds, load, &targets).await?;
        let rmcp = baseline_of(McpLibrary::Rmcp, plan.libraries, &rounds_by_library);
        report.libraries.extend(plan.libraries.iter().zip(&rounds_by_library).map(|(library, rounds)| {
            LibraryRow { library: *library, era, in_flight, cost: RequestCost::new(rounds, rmcp) }
        }));
    }
    Ok(())
}

/// Measures each library once per round, in a process without earlier sessions.
async fn sessions(
    plan: &BenchPlan,
    workshop: &TargetFactory,
    report: &mut BenchReport,
    streams: bool,
) -> anyhow::Result<()> {
    let mut measured: Vec<Vec<MemoryGrowth>> = plan.libraries.iter().map(|_| Vec::new()).collect();
    for _ in 0..plan.rounds {
        for (library, growths) in plan.libraries.iter().zip(&mut measured) {
            let target = start(workshop, *library).await?;
            let growth = measure_sessions(&target, plan, streams).await;
            growths.push(growth.with_context(|| format!("{} sessions on {}", plan.sessions, target.name))?);
        }
    }
    let rmcp = baseline_of(McpLibrary::Rmcp, plan.libraries, &measured);
    report.sessions.extend(plan.libraries.iter().zip(&measured).map(|(library, growths)| SessionRow {
        library: *library,
        streams,
        sessions: plan.sessions,
        before_mib: median(growths.iter().map(|growth| growth.before / 1024.0).collect()),
        session_kib: median(growths.iter().map(MemoryGrowth::growth).collect()) / plan.sessions as f64,
        ratio: rmcp.and_then(|rmcp| ratio(growths, rmcp)),
    }));
    Ok(())
}

/// Starts a process and makes a call in both eras, so that one-time work is done.
async fn start(workshop: &TargetFactory, library: McpLibrary) -> anyhow::Result<BenchTarget> {
    let target = workshop.library(library)?;
    for era in ERAS {
        first_list(&target, 1).await.context(library.name())?;
        let mut connection = McpConnection::open(target.address, era).await?;
        connection.call_echo("first").await.context(library.name())?;
        connection.close().await?;
    }
    Ok(target)
}

/// Resident memory of a process in KiB, before and with sessions.
struct MemoryGrowth {
    before: f64,
    with: f64,
}

impl MemoryGrowth {
    fn growth(&self) -> f64 {
        self.with - self.before
    }
}

/// The median of the ratios within each round; `None` if the other library did not grow.
fn ratio(growths: &[MemoryGrowth], base: &[MemoryGrowth]) -> Option<f64> {
    let ratios = growths.iter().zip(base).map(|(own, base)| own.growth() / base.growth());
    Some(median(ratios.collect())).filter(|ratio| ratio.is_finite())
}

/// Opens legacy sessions one after the other and leaves them idle, as clients do between two prompts: either each
/// with an open stream, or without any connection. After the measurement each session must still exist.
async fn measure_sessions(
    target: &BenchTarget,
    plan: &BenchPlan,
    streams: bool,
) -> anyhow::Result<MemoryGrowth> {
    let resident = async || {
        tokio::time::sleep(plan.settle).await;
        memory(target.pid()).resident as f64
    };
    let before = resident().await;
    let mut idle: Vec<IdleSession> = Vec::new();
    for _ in 0..plan.sessions {
        let connection = McpConnection::open(target.address, McpEra::Legacy).await?;
        idle.push(if streams { connection.listen().await? } else { connection.into_idle() });
    }
    let with_sessions = resident().await;
    for (number, session) in idle.into_iter().enumerate() {
        let mut connection = session.resume(target.address).await?;
        connection.call_echo(&format!("session {number}")).await?;
        connection.close().await?;
    }
    Ok(MemoryGrowth { before, with: with_sessions })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_of_growths_is_computed_within_each_round() {
        let growth_of = |kib: f64| MemoryGrowth { before: 100.0, with: 100.0 + kib };
        let (own, base) = (
            [growth_of(10.0), growth_of(20.0), growth_of(30.0)],
            [growth_of(20.0), growth_of(40.0), growth_of(10.0)],
        );
        assert_eq!(ratio(&own, &base), Some(0.5));
        assert_eq!(ratio(&own[..1], &[growth_of(0.0)]), None);
    }
}
