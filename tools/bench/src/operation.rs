//! The cost of operating features: an API key, the audit trail, metrics and traces, one by one and together.

use xtask_client::McpEra;

use super::BenchPlan;
use super::difference::OperationRow;
use super::gateway::GatewaySetup;
use super::load::{BenchLoad, RequestKind, first_list};
use super::report::{BenchReport, show};
use super::rest;
use super::runs::measure_in_turns;
use super::targets::{BenchTarget, TargetFactory};

/// The setups, each compared with the first.
const SETUPS: [(&str, GatewaySetup<'static>); 7] = [
    ("nothing", GatewaySetup { without: &["call_timing", "upstream_timing"], ..GatewaySetup::MINIMAL }),
    ("metrics", GatewaySetup::MINIMAL),
    ("metrics, a key", GatewaySetup { key: true, ..GatewaySetup::MINIMAL }),
    ("metrics, a trail", GatewaySetup { audit: true, ..GatewaySetup::MINIMAL }),
    ("metrics, 1 % of traces", GatewaySetup { traces: Some(0.01), ..GatewaySetup::MINIMAL }),
    ("metrics, all traces", GatewaySetup { traces: Some(1.0), ..GatewaySetup::MINIMAL }),
    ("all of these", GatewaySetup::OPERATED),
];

/// Measures the gateway in each of the setups, in turns.
pub(super) async fn measure(
    plan: &BenchPlan,
    workshop: &TargetFactory,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let echo = workshop.echo(plan.tools)?;
    let mut gateways = Vec::new();
    for (_, setup) in &SETUPS {
        let gateway = workshop.gateway(&echo, setup).await?;
        first_list(&gateway, plan.tools).await?;
        gateways.push(gateway);
    }
    let load = BenchLoad { era: McpEra::Modern, in_flight: 16, duration: plan.cell, work: RequestKind::Call };
    let measured = measure_in_turns(plan.rounds, load, &gateways).await?;
    for (((with, setup), gateway), rounds) in SETUPS.iter().zip(&gateways).zip(&measured) {
        let (lost_records, lost_spans) = lost_shares(gateway, setup).await?;
        report.operation.push(OperationRow {
            lost_records,
            lost_spans,
            ..OperationRow::new(with, &measured[0], rounds)
        });
    }
    show(&report.operation_table())
}

/// Shares of audit records and of spans that the gateway dropped; `None` without an audit trail or a collector.
async fn lost_shares(
    gateway: &BenchTarget,
    setup: &GatewaySetup<'_>,
) -> anyhow::Result<(Option<f64>, Option<f64>)> {
    let counters = rest::read_counters(gateway.address, gateway.key.as_deref()).await?;
    // One span for the call, one for the upstream request.
    let spans = setup.traces.map(|share| 2.0 * share * counters.calls);
    let share = |lost: f64, of: f64| if of > 0.0 { lost / of } else { 0.0 };
    Ok((
        setup.audit.then(|| share(counters.lost_records, counters.calls)),
        spans.map(|spans| share(counters.lost_spans, spans)),
    ))
}
