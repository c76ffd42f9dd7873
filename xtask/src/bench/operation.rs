//! What it costs to know who called what: a key, the audit trail, metrics and traces, one by one and together.

use super::Plan;
use super::difference::OperationRow;
use super::gateway::Setup;
use super::load::{Load, Work, first_list};
use super::report::{Report, show};
use super::rest;
use super::runs::in_turns;
use super::targets::{Target, Workshop};
use crate::client::Era;

/// What is compared, each with the first.
const SETUPS: [(&str, Setup); 7] = [
    ("nothing", Setup { without: &["meter", "leg"], ..Setup::PLAIN }),
    ("metrics", Setup::PLAIN),
    ("metrics, a key", Setup { key: true, ..Setup::PLAIN }),
    ("metrics, a trail", Setup { audit: true, ..Setup::PLAIN }),
    ("metrics, 1 % of traces", Setup { traces: Some(0.01), ..Setup::PLAIN }),
    ("metrics, all traces", Setup { traces: Some(1.0), ..Setup::PLAIN }),
    ("all of these", Setup::OPERATED),
];

/// Measures the gateway in each of the setups, in turns.
pub(super) async fn measure(plan: &Plan, workshop: &Workshop, report: &mut Report) -> anyhow::Result<()> {
    let echo = workshop.echo(plan.tools)?;
    let mut gateways = Vec::new();
    for (_, setup) in &SETUPS {
        let gateway = workshop.gateway(&echo, setup).await?;
        first_list(&gateway, plan.tools).await?;
        gateways.push(gateway);
    }
    let load = Load { era: Era::Modern, in_flight: 16, duration: plan.cell, work: Work::Call };
    let measured = in_turns(plan.rounds, load, &gateways).await?;
    for (((with, setup), gateway), rounds) in SETUPS.iter().zip(&gateways).zip(&measured) {
        let (lost_records, lost_spans) = lost(gateway, setup).await?;
        report.operation.push(OperationRow {
            lost_records,
            lost_spans,
            ..OperationRow::new(with, &measured[0], rounds)
        });
    }
    show(&report.operation_table())
}

/// The share of records and of spans that the gateway did not keep up with, where it has them at all.
async fn lost(gateway: &Target, setup: &Setup) -> anyhow::Result<(Option<f64>, Option<f64>)> {
    let kept = rest::kept(gateway.address, gateway.key.as_deref()).await?;
    // One of the call, and one of its way to the server.
    let spans = setup.traces.map(|share| 2.0 * share * kept.calls);
    let share = |lost: f64, of: f64| if of > 0.0 { lost / of } else { 0.0 };
    Ok((
        setup.audit.then(|| share(kept.lost_records, kept.calls)),
        spans.map(|spans| share(kept.lost_spans, spans)),
    ))
}
