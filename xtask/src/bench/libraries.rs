//! One trivial tool on our SDK and on rmcp: what a call of it costs, and what a session costs that nobody uses.

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Plan;
use super::load::{Load, Work, first_list};
use super::report::{Cost, LibraryRow, Report, SessionRow, show};
use super::runs::{ERAS, IN_FLIGHT, in_turns, measured_of};
use super::sample::median;
use super::targets::{Library, Target, Workshop};
use crate::client::{Connection, Era, IdleSession};
use crate::measure::memory;

/// Measures calls, then sessions.
pub(super) async fn measure(plan: &Plan, workshop: &Workshop, report: &mut Report) -> anyhow::Result<()> {
    raise_file_limit()?;
    calls(plan, workshop, report).await?;
    for streams in [false, true] {
        sessions(plan, workshop, report, streams).await?;
    }
    show(&report.library_table())
}

/// Lets this process, and those that it starts from now on, have as many files open as the system allows: a thousand
/// connections are more than many systems give unasked.
fn raise_file_limit() -> anyhow::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).context("raise the limit of open files")
}

async fn calls(plan: &Plan, workshop: &Workshop, report: &mut Report) -> anyhow::Result<()> {
    let mut targets = Vec::new();
    for library in plan.libraries {
        targets.push(start(workshop, *library).await?);
    }
    for (era, in_flight) in ERAS.into_iter().flat_map(|era| IN_FLIGHT.map(|in_flight| (era, in_flight))) {
        let load = Load { era, in_flight, duration: plan.cell, work: Work::Call };
        let measured = in_turns(plan.rounds, load, &targets).await?;
        let rmcp = measured_of(Library::Rmcp, plan.libraries, &measured);
        report.libraries.extend(plan.libraries.iter().zip(&measured).map(|(library, rounds)| LibraryRow {
            library: *library,
            era,
            in_flight,
            cost: Cost::new(rounds, rmcp),
        }));
    }
    Ok(())
}

/// Measures each library once a round, in a process that has had no other sessions.
async fn sessions(
    plan: &Plan,
    workshop: &Workshop,
    report: &mut Report,
    streams: bool,
) -> anyhow::Result<()> {
    let mut measured: Vec<Vec<Growth>> = plan.libraries.iter().map(|_| Vec::new()).collect();
    for _ in 0..plan.rounds {
        for (library, growths) in plan.libraries.iter().zip(&mut measured) {
            let target = start(workshop, *library).await?;
            let growth = with_sessions(&target, plan, streams).await;
            growths.push(growth.with_context(|| format!("{} sessions on {}", plan.sessions, target.name))?);
        }
    }
    let rmcp = measured_of(Library::Rmcp, plan.libraries, &measured);
    report.sessions.extend(plan.libraries.iter().zip(&measured).map(|(library, growths)| SessionRow {
        library: *library,
        streams,
        sessions: plan.sessions,
        before_mib: median(growths.iter().map(|growth| growth.before / 1024.0).collect()),
        session_kib: median(growths.iter().map(Growth::growth).collect()) / plan.sessions as f64,
        ratio: rmcp.and_then(|rmcp| ratio(growths, rmcp)),
    }));
    Ok(())
}

/// A fresh process, which has answered in both eras already: what it does once is done.
async fn start(workshop: &Workshop, library: Library) -> anyhow::Result<Target> {
    let target = workshop.library(library)?;
    for era in ERAS {
        first_list(&target, 1).await.context(library.name())?;
        let mut connection = Connection::open(target.address, era).await?;
        connection.call_echo("first").await.context(library.name())?;
        connection.close().await?;
    }
    Ok(target)
}

/// The resident memory of a process, in KiB, before it had sessions and with them.
struct Growth {
    before: f64,
    with: f64,
}

impl Growth {
    fn growth(&self) -> f64 {
        self.with - self.before
    }
}

/// The median of the ratios within each round; nothing where the other did not grow at all.
fn ratio(growths: &[Growth], base: &[Growth]) -> Option<f64> {
    let ratios = growths.iter().zip(base).map(|(own, base)| own.growth() / base.growth());
    Some(median(ratios.collect())).filter(|ratio| ratio.is_finite())
}

/// Opens legacy sessions, one after the other, and leaves them alone, as clients do that wait for their user: either
/// with an open stream each or without any connection. When their memory was read each session must still be there.
async fn with_sessions(target: &Target, plan: &Plan, streams: bool) -> anyhow::Result<Growth> {
    let resident = async || {
        tokio::time::sleep(plan.settle).await;
        memory(target.pid()).resident as f64
    };
    let before = resident().await;
    let mut idle: Vec<IdleSession> = Vec::new();
    for _ in 0..plan.sessions {
        let connection = Connection::open(target.address, Era::Legacy).await?;
        idle.push(if streams { connection.listen().await? } else { connection.leave() });
    }
    let with = resident().await;
    for (number, session) in idle.into_iter().enumerate() {
        let mut connection = session.resume(target.address).await?;
        connection.call_echo(&format!("session {number}")).await?;
        connection.close().await?;
    }
    Ok(Growth { before, with })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_of_growths_is_taken_within_each_round() {
        let grown = |kib: f64| Growth { before: 100.0, with: 100.0 + kib };
        let (own, base) = ([grown(10.0), grown(20.0), grown(30.0)], [grown(20.0), grown(40.0), grown(10.0)]);
        assert_eq!(ratio(&own, &base), Some(0.5));
        assert_eq!(ratio(&own[..1], &[grown(0.0)]), None);
    }
}
