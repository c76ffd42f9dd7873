//! Several gateways on one PostgreSQL and one machine: the calls that they serve together, and the processor time of a
//! call in the gateways and in the store.

use serde::Serialize;
use toolyard_testing::postgres::PostgresServer;
use xtask_client::McpEra;
use xtask_support::measure::cpu_time;

use super::BenchPlan;
use super::gateway::GatewaySetup;
use super::load::{BenchLoad, RequestKind, first_list};
use super::report::{BenchReport, RequestCost, show};
use super::rest;
use super::sample::{SampleRounds, median, micros};
use super::table::{number, table};
use super::targets::{BenchTarget, TargetFactory};

/// Numbers of gateways.
const GATEWAYS: [usize; 3] = [1, 2, 4];

/// Number of calls in flight at all gateways together.
const IN_FLIGHT: usize = 64;

/// The calls of several gateways.
#[derive(Serialize)]
pub(super) struct ReplicaRow {
    pub gateways: usize,
    /// The cost in the gateways; ratios are to one gateway.
    pub cost: RequestCost,
    /// CPU time of PostgreSQL per call.
    pub store_cpu_us: f64,
    /// Share of audit records that were lost.
    pub lost_records: f64,
}

/// Measures the numbers of gateways in turns.
pub(super) async fn measure(
    plan: &BenchPlan,
    workshop: &TargetFactory,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let store = PostgresServer::prepare().running(&[("max_connections", "200")]);
    let echo = workshop.echo(plan.tools)?;
    let url = store.url();
    let setup = GatewaySetup { store: Some(&url), ..GatewaySetup::DEFAULT };
    let mut gateways = Vec::new();
    for _ in 0..GATEWAYS.into_iter().max().unwrap_or_default() {
        let gateway = workshop.gateway(&echo, &setup).await?;
        first_list(&gateway, plan.tools).await?;
        gateways.push(gateway);
    }
    let load =
        BenchLoad { era: McpEra::Modern, in_flight: IN_FLIGHT, duration: plan.cell, work: RequestKind::Call };
    let mut samples = GATEWAYS.map(|_| Vec::new());
    let mut stores = GATEWAYS.map(|_| Vec::new());
    let mut lost = GATEWAYS.map(|_| Vec::new());
    for _ in 0..plan.rounds {
        for (row, count) in GATEWAYS.into_iter().enumerate() {
            let gateways = &gateways[..count];
            let (before, store_before) = (counters(gateways).await?, cpu_time(store.pid()));
            samples[row].push(load.measure_together(gateways).await?);
            let (after, store_cpu) =
                (counters(gateways).await?, cpu_time(store.pid()).saturating_sub(store_before));
            let calls = after.calls - before.calls;
            stores[row].push(micros(store_cpu) / calls);
            lost[row].push((after.lost_records - before.lost_records) / calls);
        }
    }
    let samples = samples.map(SampleRounds);
    for (row, (gateways, rounds)) in GATEWAYS.into_iter().zip(&samples).enumerate() {
        report.replicas.push(ReplicaRow {
            gateways,
            cost: RequestCost::new(rounds, Some(&samples[0])),
            store_cpu_us: median(std::mem::take(&mut stores[row])),
            lost_records: median(std::mem::take(&mut lost[row])),
        });
    }
    show(&report.replica_table())
}

/// The sums of the counters of gateways.
async fn counters(gateways: &[BenchTarget]) -> anyhow::Result<rest::GatewayCounters> {
    let mut sums = rest::GatewayCounters { calls: 0.0, lost_records: 0.0, lost_spans: 0.0 };
    for gateway in gateways {
        let counters = rest::read_counters(gateway.address, gateway.key.as_deref()).await?;
        sums.calls += counters.calls;
        sums.lost_records += counters.lost_records;
        sums.lost_spans += counters.lost_spans;
    }
    Ok(sums)
}

impl BenchReport {
    /// The calls of several gateways.
    pub(super) fn replica_table(&self) -> String {
        let title =
            format!("gateways on one PostgreSQL, audited, modern, {IN_FLIGHT} in flight at all together");
        let rows = self.replicas.iter().map(|row| {
            let mut cells = vec![number(row.gateways as f64, 0)];
            cells.extend(row.cost.cells());
            cells.extend([number(row.store_cpu_us, 1), number(row.lost_records, 4)]);
            cells
        });
        let heads = [
            "gateways",
            "calls/s",
            "p50 us",
            "p99 us",
            "cpu us",
            "cpu:one",
            "p50:one",
            "p99:one",
            "store cpu us",
            "lost",
        ];
        table(&title, &heads, rows.collect())
    }
}
