//! Calls of unaudited gateways with other upstreams: an operation of an OpenAPI document, compared with the same request
//! to its server, and MCP servers over HTTP and over stdio.

use serde::Serialize;
use xtask_client::McpEra;

use super::BenchPlan;
use super::gateway::{GatewaySetup, UpstreamKind};
use super::load::{BenchLoad, RequestKind, first_list};
use super::report::{BenchReport, RequestCost, show};
use super::runs::{IN_FLIGHT, measure_in_turns};
use super::table::{number, table, text};
use super::targets::TargetFactory;

/// The OpenAPI document of the upstream.
pub(super) const DOCUMENT: &str = r#"{
    "openapi": "3.1.0",
    "info": {"title": "echo", "version": "1.0.0"},
    "paths": {"/v1/echo": {"post": {
        "operationId": "echo",
        "requestBody": {"required": true, "content": {"application/json": {"schema": {
            "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]
        }}}},
        "responses": {"200": {"description": "The text."}}
    }}}
}"#;

pub(super) const OPERATION: &str = "OpenAPI operation";
pub(super) const MCP: &str = "MCP over HTTP";
pub(super) const STDIO: &str = "MCP over stdio";

/// Calls in one way; ratios are to the direct request.
#[derive(Serialize)]
pub(super) struct WayRow {
    pub way: &'static str,
    pub in_flight: usize,
    pub cost: RequestCost,
}

/// Measures both, in turns.
pub(super) async fn measure(
    plan: &BenchPlan,
    workshop: &TargetFactory,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let echo = workshop.echo(1)?;
    let mut gateways = Vec::new();
    for upstream in [UpstreamKind::OpenApi, UpstreamKind::Mcp, UpstreamKind::Stdio] {
        let gateway = workshop.gateway(&echo, &GatewaySetup { upstream, ..GatewaySetup::MINIMAL }).await?;
        first_list(&gateway, 1).await?;
        gateways.push(gateway);
    }
    for in_flight in IN_FLIGHT {
        let load = |work| BenchLoad { era: McpEra::Modern, in_flight, duration: plan.cell, work };
        let directly =
            measure_in_turns(plan.rounds, load(RequestKind::Post), std::slice::from_ref(&echo)).await?;
        let as_tools = measure_in_turns(plan.rounds, load(RequestKind::Call), &gateways).await?;
        let base = directly.first();
        let ways = ["directly", OPERATION, MCP, STDIO].into_iter();
        for (way, rounds) in ways.zip(directly.iter().chain(&as_tools)) {
            report.openapi.push(WayRow { way, in_flight, cost: RequestCost::new(rounds, base) });
        }
    }
    show(&report.openapi_table())
}

impl BenchReport {
    pub(super) fn openapi_table(&self) -> String {
        let title = "calls by the kind of the upstream (directly: plain HTTP; CPU time of the server that gets the request)";
        way_table(title, &self.openapi)
    }
}

/// The table of calls in several ways.
pub(super) fn way_table(title: &str, rows: &[WayRow]) -> String {
    let rows = rows.iter().map(|row| {
        let cells = [number(row.in_flight as f64, 0), text(row.way)];
        cells.into_iter().chain(row.cost.cells()).collect()
    });
    let heads = [
        "in flight",
        "way",
        "calls/s",
        "p50 us",
        "p99 us",
        "cpu us",
        "cpu:direct",
        "p50:direct",
        "p99:direct",
    ];
    table(title, &heads, rows.collect())
}
