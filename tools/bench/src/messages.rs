//! Calls with larger messages: arguments and results of 10 kB and 1 MB, as JSON and as a stream of one event.

use anyhow::ensure;
use serde::Serialize;
use serde_json::json;
use xtask_client::{McpConnection, McpEra};

use super::BenchPlan;
use super::load::{BenchLoad, RequestKind};
use super::report::{BenchReport, RequestCost, show};
use super::runs::{baseline_of, measure_in_turns};
use super::table::{number, table, text};
use super::targets::{TargetFactory, TargetKind};

/// Number of calls in flight. With more, the clients would use most of the machine.
const IN_FLIGHT: usize = 4;

/// Sizes of the larger message of a call, in bytes.
pub(super) const SIZES: [usize; 2] = [10_000, 1_000_000];

/// The message of a call that is large.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LargePart {
    Arguments,
    Result,
    /// A result in an event of a stream.
    Stream,
}

/// A call with one large message.
#[derive(Clone, Copy)]
pub(super) struct LargeMessage {
    pub part: LargePart,
    pub bytes: usize,
}

/// Calls with one large message through one target.
#[derive(Serialize)]
pub(super) struct MessageRow {
    pub target: TargetKind,
    pub part: LargePart,
    pub bytes: usize,
    pub cost: RequestCost,
}

impl LargePart {
    pub(super) const ALL: [LargePart; 3] = [LargePart::Arguments, LargePart::Result, LargePart::Stream];

    pub(super) fn name(self) -> &'static str {
        match self {
            LargePart::Arguments => "arguments",
            LargePart::Result => "result",
            LargePart::Stream => "SSE result",
        }
    }
}

impl LargeMessage {
    /// Calls `echo`, and checks the length and the ends of the answer.
    pub(super) async fn send(self, connection: &mut McpConnection, unique: &str) -> anyhow::Result<()> {
        /// A text with a character of two bytes and one that JSON escapes.
        const WORDS: &str = " to whom it may concern: grüße, \"and\" so on.";
        let text = format!("{unique}{WORDS}");
        let arguments = match self.part {
            LargePart::Arguments => {
                let long = text.repeat(self.bytes.div_ceil(text.len()));
                json!({"text": long, "first_bytes": text.len()})
            }
            LargePart::Result => json!({"text": text, "answer_bytes": self.bytes}),
            LargePart::Stream => json!({"text": text, "answer_bytes": self.bytes, "stream": true}),
        };
        let reply = connection.call_with("echo", arguments).await?;
        let expected = match self.part {
            LargePart::Arguments => text.len(),
            LargePart::Result | LargePart::Stream => self.bytes.div_ceil(text.len()) * text.len(),
        };
        ensure!(reply.len() == expected, "expected {expected} bytes, received {}", reply.len());
        ensure!(reply.starts_with(&text) && reply.ends_with(&text), "received another text");
        Ok(())
    }
}

/// Measures all parts and sizes, with nginx and the gateway in turns.
pub(super) async fn measure(
    plan: &BenchPlan,
    workshop: &TargetFactory,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let measured = [TargetKind::Nginx, TargetKind::Hop, TargetKind::Gateway, TargetKind::Unaudited];
    let kinds: Vec<_> = measured.into_iter().filter(|kind| plan.kinds.contains(kind)).collect();
    let targets = workshop.start_targets(&kinds, 1).await?;
    for (part, bytes) in LargePart::ALL.into_iter().flat_map(|part| SIZES.map(|bytes| (part, bytes))) {
        let work = RequestKind::Large(LargeMessage { part, bytes });
        let load = BenchLoad { era: McpEra::Modern, in_flight: IN_FLIGHT, duration: plan.cell, work };
        let measured = measure_in_turns(plan.rounds, load, &targets).await?;
        let nginx = baseline_of(TargetKind::Nginx, &kinds, &measured);
        report.messages.extend(kinds.iter().zip(&measured).map(|(target, rounds)| MessageRow {
            target: *target,
            part,
            bytes,
            cost: RequestCost::new(rounds, nginx),
        }));
    }
    show(&report.message_table())
}

impl MessageRow {
    /// CPU time of a kilobyte of the message, in nanoseconds.
    fn ns_per_kb(&self) -> f64 {
        self.cost.cpu_us * 1e6 / self.bytes as f64
    }
}

impl BenchReport {
    pub(super) fn message_table(&self) -> String {
        let rows = self.messages.iter().map(|row| {
            let cells = [text(row.part.name()), number(row.bytes as f64, 0), text(row.target.name())];
            let each = number(row.ns_per_kb(), 0);
            cells.into_iter().chain([each]).chain(row.cost.cells()).collect()
        });
        let heads = [&["large", "bytes", "target", "cpu ns/kB"], &super::report::COST_COLUMNS[..]].concat();
        let title = format!("calls with a large message, modern, {IN_FLIGHT} in flight");
        table(&title, &heads, rows.collect())
    }
}
