//! Resident memory of the gateway in its default configuration, over many audited calls.

use futures_util::future::try_join_all;
use serde::Serialize;
use xtask_client::{McpConnection, McpEra};
use xtask_support::measure::memory;

use super::BenchPlan;
use super::gateway::GatewaySetup;
use super::load::first_list;
use super::report::{BenchReport, show};
use super::table::{number, table};
use super::targets::TargetFactory;

/// Number of calls in flight.
const IN_FLIGHT: usize = 16;

/// Number of times that the memory is read.
const STEPS: u64 = 100;

/// The memory after a number of calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct SoakPoint {
    pub calls: u64,
    pub resident_mib: f64,
}

/// Makes the calls, in both eras in turns, and reads the memory at regular intervals.
pub(super) async fn measure(
    plan: &BenchPlan,
    workshop: &TargetFactory,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let echo = workshop.echo(plan.tools)?;
    let target = workshop.gateway(&echo, &GatewaySetup::DEFAULT).await?;
    first_list(&target, plan.tools).await?;
    let eras = [McpEra::Legacy, McpEra::Modern].into_iter().cycle().take(IN_FLIGHT);
    let mut connections = try_join_all(eras.map(|era| target.connect(era))).await?;
    let resident = |calls| SoakPoint { calls, resident_mib: memory(target.pid()).resident as f64 / 1024.0 };
    let mut points = vec![resident(0)];
    let each = plan.soak_calls / STEPS / IN_FLIGHT as u64;
    for step in 1..=STEPS {
        let clients = connections.into_iter().enumerate();
        let calls = clients.map(|(client, connection)| tokio::spawn(drive(connection, client, step, each)));
        connections = Vec::new();
        for calls in calls.collect::<Vec<_>>() {
            connections.push(calls.await??);
        }
        points.push(resident(step * each * IN_FLIGHT as u64));
    }
    try_join_all(connections.into_iter().map(McpConnection::close)).await?;
    report.soak = points;
    show(&report.soak_table())
}

async fn drive(
    mut connection: McpConnection,
    client: usize,
    step: u64,
    calls: u64,
) -> anyhow::Result<McpConnection> {
    for call in 0..calls {
        connection.call_echo(&format!("{client}-{step}-{call}")).await?;
    }
    Ok(connection)
}

impl BenchReport {
    /// A row for each tenth of the calls.
    pub(super) fn soak_table(&self) -> String {
        let rows = self.soak.iter().step_by(STEPS as usize / 10);
        let rows = rows.map(|point| vec![number(point.calls as f64, 0), number(point.resident_mib, 1)]);
        let title = format!("resident memory of the gateway over audited calls, {IN_FLIGHT} in flight");
        table(&title, &["calls", "MiB"], rows.collect())
    }
}
