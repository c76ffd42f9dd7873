//! An operation of an OpenAPI document as a tool, beside the same request to its server.

use serde::Serialize;

use super::Plan;
use super::gateway::{Setup, Upstream};
use super::load::{Load, Work, first_list};
use super::report::{Cost, Report, show};
use super::runs::{IN_FLIGHT, in_turns};
use super::table::{number, table, text};
use super::targets::Workshop;
use crate::client::Era;

/// What the upstream says of itself as a plain HTTP service.
pub(super) const DOCUMENT: &str = r#"{
    "openapi": "3.1.0",
    "info": {"title": "echo", "version": "1.0.0"},
    "paths": {"/v1/echo": {"post": {
        "operationId": "echo",
        "requestBody": {"required": true, "content": {"application/json": {"schema": {
            "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]
        }}}},
        "responses": {"200": {"description": "What was said."}}
    }}}
}"#;

/// Calls of one kind; ratios are to the request that goes to the server directly.
#[derive(Serialize)]
pub(super) struct OpenApiRow {
    pub way: &'static str,
    pub in_flight: usize,
    pub cost: Cost,
}

/// Measures both, in turns.
pub(super) async fn measure(plan: &Plan, workshop: &Workshop, report: &mut Report) -> anyhow::Result<()> {
    let echo = workshop.echo(plan.tools)?;
    let gateway = workshop.gateway(&echo, &Setup { upstream: Upstream::OpenApi, ..Setup::PLAIN }).await?;
    first_list(&gateway, 1).await?;
    for in_flight in IN_FLIGHT {
        let load = |work| Load { era: Era::Modern, in_flight, duration: plan.cell, work };
        let directly = in_turns(plan.rounds, load(Work::Post), std::slice::from_ref(&echo)).await?;
        let as_tool = in_turns(plan.rounds, load(Work::Call), std::slice::from_ref(&gateway)).await?;
        let base = directly.first();
        for (way, rounds) in [("directly", &directly[0]), ("as a tool", &as_tool[0])] {
            report.openapi.push(OpenApiRow { way, in_flight, cost: Cost::new(rounds, base) });
        }
    }
    show(&report.openapi_table())
}

impl Report {
    fn openapi_table(&self) -> String {
        let rows = self.openapi.iter().map(|row| {
            let cells = [number(row.in_flight as f64, 0), text(row.way)];
            cells.into_iter().chain(row.cost.cells()).collect()
        });
        let heads =
            ["in flight", "asked", "calls/s", "p50 us", "p99 us", "cpu us", "cpu:direct", "p50:direct"];
        let title = "an operation of an OpenAPI document (directly: plain HTTP; the CPU time is that of who was asked)";
        table(title, &heads, rows.collect())
    }
}
