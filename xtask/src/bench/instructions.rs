//! How many instructions of the gateway a call takes. Unlike times, they are the same on a busy machine, so that two
//! versions can be compared at any time: valgrind counts them.

use std::path::Path;

use anyhow::Context;
use serde::Serialize;

use super::gateway::Setup;
use super::load::first_list;
use super::report::{Report, show};
use super::runs::ERAS;
use super::table::{number, table, text};
use super::targets::{Target, Workshop};
use crate::client::Era;

/// How many calls are made to know what all the rest takes, and how many more to know what calls take.
const CALLS: (u64, u64) = (100, 500);

/// The instructions of one call, in user space.
#[derive(Serialize)]
pub(super) struct InstructionRow {
    pub era: Era,
    pub instructions: f64,
}

/// Counts in both eras.
pub(super) async fn measure(workshop: &Workshop, report: &mut Report) -> anyhow::Result<()> {
    let echo = workshop.echo(1)?;
    for era in ERAS {
        let few = count(workshop, &echo, era, CALLS.0).await?;
        let many = count(workshop, &echo, era, CALLS.0 + CALLS.1).await?;
        let instructions = many.saturating_sub(few) as f64 / CALLS.1 as f64;
        report.instructions.push(InstructionRow { era, instructions });
    }
    show(&report.instruction_table())
}

/// All instructions of a gateway that was started, was called so often, and was ended.
async fn count(workshop: &Workshop, echo: &Target, era: Era, calls: u64) -> anyhow::Result<u64> {
    let counts = workshop.folder.path().join(format!("{}-{calls}.callgrind", era.name()));
    let gateway = workshop.counted_gateway(echo, &Setup::PLAIN, &counts).await?;
    first_list(&gateway, 1).await?;
    let mut connection = gateway.connect(era).await?;
    for call in 0..calls {
        connection.call_echo(&call.to_string()).await?;
    }
    connection.close().await?;
    // They are written at its end.
    drop(gateway);
    total(&counts)
}

fn total(counts: &Path) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(counts).context("valgrind has counted nothing")?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    total.context("valgrind was stopped before its end")?.trim().parse().context("no number of instructions")
}

impl Report {
    fn instruction_table(&self) -> String {
        let rows = self.instructions.iter();
        let rows = rows.map(|row| vec![text(row.era.name()), number(row.instructions / 1e3, 1)]);
        table(
            "instructions of the gateway for a call, in thousands",
            &["era", "instructions"],
            rows.collect(),
        )
    }
}
