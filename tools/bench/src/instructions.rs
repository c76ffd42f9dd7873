//! Instructions of the gateway per call, counted by valgrind. Unlike times they are the same on a busy machine, so that
//! versions can be compared at any time.

use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use xtask_client::McpEra;

use super::gateway::GatewaySetup;
use super::load::first_list;
use super::report::{BenchReport, show};
use super::runs::ERAS;
use super::table::{number, table, text};
use super::targets::{BenchTarget, TargetFactory};

/// Number of calls of the baseline run, and of further calls of the measured run.
const CALLS: (u64, u64) = (100, 500);

/// Instructions of one call, in user space.
#[derive(Serialize)]
pub(super) struct InstructionRow {
    pub era: McpEra,
    pub instructions: f64,
}

/// Counts in both eras.
pub(super) async fn measure(workshop: &TargetFactory, report: &mut BenchReport) -> anyhow::Result<()> {
    let echo = workshop.echo(1)?;
    for era in ERAS {
        let baseline = count_instructions(workshop, &echo, era, CALLS.0).await?;
        let total = count_instructions(workshop, &echo, era, CALLS.0 + CALLS.1).await?;
        let instructions = total.saturating_sub(baseline) as f64 / CALLS.1 as f64;
        report.instructions.push(InstructionRow { era, instructions });
    }
    show(&report.instruction_table())
}

/// All instructions of a gateway from its start to its end, with `calls` calls.
async fn count_instructions(
    workshop: &TargetFactory,
    echo: &BenchTarget,
    era: McpEra,
    calls: u64,
) -> anyhow::Result<u64> {
    let counts = workshop.folder.path().join(format!("{}-{calls}.callgrind", era.name()));
    let gateway = workshop.gateway_under_callgrind(echo, &GatewaySetup::MINIMAL, &counts).await?;
    first_list(&gateway, 1).await?;
    let mut connection = gateway.connect(era).await?;
    for call in 0..calls {
        connection.call_echo(&call.to_string()).await?;
    }
    connection.close().await?;
    // The counts are written at the end of the process.
    drop(gateway);
    total(&counts)
}

fn total(counts: &Path) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(counts).context("no counts of valgrind")?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    total
        .context("no totals in the counts of valgrind")?
        .trim()
        .parse()
        .context("invalid number of instructions")
}

impl BenchReport {
    fn instruction_table(&self) -> String {
        let rows = self.instructions.iter();
        let rows = rows.map(|row| vec![text(row.era.name()), number(row.instructions / 1e3, 1)]);
        table("instructions of the gateway per call, in thousands", &["era", "instructions"], rows.collect())
    }
}
