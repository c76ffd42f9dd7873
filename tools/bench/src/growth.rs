//! The cost of a call as a gateway grows: with more tools, sessions and keys; and the cost of lists for many scopes.

use anyhow::Context;
use serde::Serialize;
use xtask_client::{IdleSession, McpConnection, McpEra};
use xtask_support::measure::{cpu_time, memory};

use super::BenchPlan;
use super::callgrind::{self, CallgrindFiles};
use super::gateway::GatewaySetup;
use super::instructions::count_calls;
use super::load::{BenchLoad, RequestKind, first_list};
use super::report::{BenchReport, show};
use super::rest;
use super::runs::measure_in_turns;
use super::sample::micros;
use super::table::{number, table, text};
use super::targets::{BenchTarget, TargetFactory};

/// Number of tools while sessions and keys are counted.
const TOOLS: usize = 10;

/// The growing quantity.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum GrowthKind {
    Tools,
    Sessions,
    Keys,
}

/// The cost of a call at one size.
#[derive(Serialize)]
pub(super) struct GrowthRow {
    pub kind: GrowthKind,
    pub count: usize,
    pub cpu_us: f64,
    /// `None` if they were not counted.
    pub instructions: Option<f64>,
    /// The cost as a ratio to that at the smallest size: of instructions, or else of CPU time.
    pub ratio: f64,
    /// Additional resident memory for each of them, in KiB; `None` if their number is that of the first row.
    pub kib_each: Option<f64>,
}

/// Lists for callers of different scopes.
#[derive(Serialize)]
pub(super) struct ScopeRow {
    pub lists: &'static str,
    pub scopes: usize,
    pub cpu_us: f64,
    /// Additional resident memory for each scope, in KiB.
    pub kib_each: f64,
}

impl GrowthKind {
    const ALL: [GrowthKind; 3] = [GrowthKind::Tools, GrowthKind::Sessions, GrowthKind::Keys];

    pub(super) fn name(self) -> &'static str {
        match self {
            GrowthKind::Tools => "tools",
            GrowthKind::Sessions => "sessions",
            GrowthKind::Keys => "keys",
        }
    }

    fn counts(self, plan: &BenchPlan) -> &'static [usize] {
        match (self, plan.grows_fully) {
            (GrowthKind::Tools, true) => &[10, 100, 1_000, 10_000],
            (GrowthKind::Sessions, true) => &[1, 100, 5_000],
            (GrowthKind::Keys, true) => &[1, 1_000],
            (GrowthKind::Tools, false) => &[10, 100],
            (GrowthKind::Sessions | GrowthKind::Keys, false) => &[1, 20],
        }
    }
}

/// A gateway at one size.
struct GrownGateway {
    target: BenchTarget,
    kib_each: Option<f64>,
    /// They stay open while calls are measured.
    _sessions: Vec<IdleSession>,
}

impl GrownGateway {
    /// Starts a gateway with API keys, under another program if `runner` names one, and adds sessions or keys.
    async fn start(
        kind: GrowthKind,
        count: usize,
        runner: &[String],
        workshop: &TargetFactory,
    ) -> anyhow::Result<GrownGateway> {
        let tools = if kind == GrowthKind::Tools { count } else { TOOLS };
        let setup = GatewaySetup { key: true, sessions: Some(20_000), ..GatewaySetup::MINIMAL };
        let echo = workshop.echo(tools)?;
        let target = workshop.gateway_with_runner(&callgrind::words(runner), &echo, &setup).await?;
        first_list(&target, tools).await?;
        let before = memory(target.pid()).resident;
        let mut sessions = Vec::new();
        match kind {
            GrowthKind::Tools => {}
            GrowthKind::Sessions => {
                for _ in 1..count {
                    sessions.push(target.connect(McpEra::Legacy).await?.into_idle());
                }
            }
            GrowthKind::Keys => {
                drop(create_keys(&target, count - 1, |_| "tools:echo/echo".to_owned()).await?)
            }
        }
        let grown = memory(target.pid()).resident.saturating_sub(before) as f64;
        let kib_each = (kind != GrowthKind::Tools && count > 1).then(|| grown / (count - 1) as f64);
        Ok(GrownGateway { target, kib_each, _sessions: sessions })
    }
}

/// Creates keys with a scope each.
async fn create_keys(
    target: &BenchTarget,
    count: usize,
    scope: impl Fn(usize) -> String,
) -> anyhow::Result<Vec<String>> {
    let mut keys = Vec::new();
    for number in 0..count {
        keys.push(rest::create_key(target.address, target.key.as_deref(), &[&scope(number)]).await?);
    }
    Ok(keys)
}

/// Measures all sizes, then lists.
pub(super) async fn measure(
    plan: &BenchPlan,
    workshop: &TargetFactory,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    for kind in GrowthKind::ALL {
        if let Err(error) = measure_kind(kind, plan, workshop, report).await {
            report.fail(format!("growth, {}", kind.name()), &error)?;
        }
    }
    measure_scopes(plan, workshop, report).await.context("lists for different scopes")?;
    show(&report.growth_table())
}

async fn measure_kind(
    kind: GrowthKind,
    plan: &BenchPlan,
    workshop: &TargetFactory,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let mut gateways = Vec::new();
    for count in kind.counts(plan) {
        gateways.push(GrownGateway::start(kind, *count, &[], workshop).await?);
    }
    let targets: Vec<_> = gateways.iter().map(|gateway| gateway.target.clone()).collect();
    let load = BenchLoad { era: McpEra::Legacy, in_flight: 16, duration: plan.cell, work: RequestKind::Call };
    let measured = measure_in_turns(plan.rounds, load, &targets).await?;
    let kib_each: Vec<_> = gateways.iter().map(|gateway| gateway.kib_each).collect();
    drop((gateways, targets));
    let mut rows = Vec::new();
    for ((count, rounds), kib_each) in kind.counts(plan).iter().zip(&measured).zip(kib_each) {
        let instructions = match plan.grows_fully {
            true => Some(count_at(kind, *count, plan, workshop).await?),
            false => None,
        };
        let cpu_us = rounds.median(|sample| sample.cpu_us);
        rows.push(GrowthRow { kind, count: *count, cpu_us, instructions, ratio: 1.0, kib_each });
    }
    let base = rows.first().map_or(f64::NAN, GrowthRow::cost);
    for row in &mut rows {
        row.ratio = row.cost() / base;
    }
    report.growth.extend(rows);
    Ok(())
}

/// Counts the instructions of a call at one size.
async fn count_at(
    kind: GrowthKind,
    count: usize,
    plan: &BenchPlan,
    workshop: &TargetFactory,
) -> anyhow::Result<f64> {
    let path = workshop.folder.path().join(format!("{}-{count}.callgrind", kind.name()));
    let mut files = CallgrindFiles::new(path)?;
    let grown = GrownGateway::start(kind, count, &files.runner(), workshop).await?;
    let counts = count_calls(&grown.target, &mut files, McpEra::Legacy, plan.counted_calls).await?;
    Ok(counts.busiest().instructions as f64 / plan.counted_calls as f64)
}

/// Lists the tools for each of many scopes, one after the other, twice.
async fn measure_scopes(
    plan: &BenchPlan,
    workshop: &TargetFactory,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let (tools, scopes) = if plan.grows_fully { (1_000, 1_000) } else { (30, 20) };
    let echo = workshop.echo(tools)?;
    let target = workshop.gateway(&echo, &GatewaySetup { key: true, ..GatewaySetup::MINIMAL }).await?;
    first_list(&target, tools).await?;
    // The scope of each key has one tool that no other has, and `echo`.
    let scope = |number: usize| format!("tools:echo/search_orders_{:04}", number % (tools - 1) + 1);
    let keys = create_keys(&target, scopes, scope).await?;
    let mut connections = Vec::new();
    for key in &keys {
        connections.push(McpConnection::open_with_key(target.address, McpEra::Modern, Some(key)).await?);
    }
    for lists in ["first", "second"] {
        let before = (cpu_time(target.pid()), memory(target.pid()).resident);
        for connection in &mut connections {
            let listing = connection.list().await?;
            anyhow::ensure!(listing.tools == 1, "listed {} tools for a scope of one", listing.tools);
        }
        let cpu = cpu_time(target.pid()).saturating_sub(before.0);
        let grown = memory(target.pid()).resident.saturating_sub(before.1);
        let each = |figure: f64| figure / scopes as f64;
        let (cpu_us, kib_each) = (each(micros(cpu)), each(grown as f64));
        report.scopes.push(ScopeRow { lists, scopes, cpu_us, kib_each });
    }
    Ok(())
}

impl GrowthRow {
    fn cost(&self) -> f64 {
        self.instructions.unwrap_or(self.cpu_us)
    }
}

impl BenchReport {
    /// Calls, then lists.
    pub(super) fn growth_table(&self) -> String {
        let rows = self.growth.iter().map(|row| {
            vec![
                text(row.kind.name()),
                number(row.count as f64, 0),
                number(row.cpu_us, 1),
                row.instructions.map_or(text("-"), |instructions| number(instructions / 1e3, 1)),
                number(row.ratio, 3),
                row.kib_each.map_or(text("-"), |kib| number(kib, 2)),
            ]
        });
        let heads = ["of", "number", "cpu us", "instructions/1000", "ratio", "KiB each"];
        let title = "a call with an API key, unaudited, legacy, by the size of the gateway";
        let calls = table(title, &heads, rows.collect());
        let rows = self.scopes.iter().map(|row| {
            let cells = [text(row.lists), number(row.scopes as f64, 0), number(row.cpu_us, 1)];
            cells.into_iter().chain([number(row.kib_each, 2)]).collect()
        });
        let heads = ["lists", "scopes", "cpu us", "KiB each"];
        calls + &table("a list of one tool for each of many scopes, modern", &heads, rows.collect())
    }
}
