//! `toolyard function logs`: shows the calls of a function.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::builder::PossibleValuesParser;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::sleep;
use toolyard_core::timestamp::iso_8601;
use toolyard_functions::CallOutcome;

use super::report::printed_lines;
use super::{parse_exact_version, parse_id};
use crate::output::{OutputFormat, escape_line, note, print};
use crate::page_args::PageArgs;
use crate::remote::RemoteGateway;

/// Returns a parser for the outcomes of calls.
fn outcome_parser() -> PossibleValuesParser {
    PossibleValuesParser::new(CallOutcome::ALL.map(CallOutcome::as_str))
}

/// Show the calls of a function with their outcome and output, newest first
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function logs weather
  toolyard function logs weather --version 1.2.0 --since 1h --outcome failed
  toolyard function logs weather --follow
  toolyard function logs weather --limit 1000 --output json

The outcome of a call is `ok`, `error` (the function returned an error), `failed` (the function did not return, such as
after an exception), or the reason why it was not answered: `timeout`, `overloaded`, `unavailable`, `cancelled`,
`quota_exhausted` or `rate_limited`. Calls appear in the log with a short delay.")]
pub(super) struct LogsArgs {
    /// Id of the function, which may be deleted
    #[arg(value_parser = parse_id)]
    id: String,

    /// Only calls of this version
    #[arg(long, value_parser = parse_exact_version)]
    version: Option<String>,

    /// Only calls with this outcome
    #[arg(long, value_parser = outcome_parser())]
    outcome: Option<String>,

    /// Show new calls as they end, oldest first, until interrupted
    #[arg(long, conflicts_with = "before")]
    follow: bool,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    remote: RemoteGateway,
}

#[derive(Deserialize)]
struct CallLogPage {
    entries: Vec<CallLogEntry>,
    next: Option<u64>,
}

#[derive(Deserialize)]
struct RawLogPage {
    entries: Vec<Box<RawValue>>,
    next: Option<u64>,
}

/// A call in the log of the gateway.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallLogEntry {
    time: String,
    version: String,
    pub(super) request_id: String,
    outcome: String,
    duration_ms: f64,
    bytes: u64,
    cost: String,
    #[serde(default)]
    output: String,
    error: Option<String>,
}

pub(super) async fn run(args: LogsArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    if args.follow {
        return follow(&args, format).await;
    }
    let text = args.remote.get(&args.path(args.page.limit, args.page.before)).await?;
    if format == OutputFormat::Json {
        print(&String::from_utf8_lossy(&text));
        return Ok(ExitCode::SUCCESS);
    }
    let page: CallLogPage = serde_json::from_slice(&text).context("unexpected response: not a log")?;
    if page.entries.is_empty() {
        print("no calls");
    }
    page.entries.iter().for_each(|entry| print(&entry.text()));
    if let Some(next) = page.next {
        note(&format!("there may be more calls; continue with `--before {next}`"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Interval between two requests for new calls.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Number of calls per request, and of requests for the calls since the last ones.
const FOLLOW_PAGE: (u16, usize) = (100, 10);

/// Prints the latest calls, then new ones as they end.
async fn follow(args: &LogsArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let mut last = None;
    loop {
        let calls = calls_since(args, last.as_deref()).await?;
        if let Some((_, newest)) = calls.last() {
            last = Some(newest.request_id.clone());
        }
        for (text, call) in &calls {
            print(&match format {
                OutputFormat::Json => text.get().to_owned(),
                OutputFormat::Text => call.text(),
            });
        }
        // Later calls are compared with an empty log.
        last.get_or_insert_default();
        sleep(FOLLOW_INTERVAL).await;
    }
}

/// Returns the calls after the one with this request id, oldest first; without one, the latest calls up to the limit.
async fn calls_since(
    args: &LogsArgs,
    last: Option<&str>,
) -> anyhow::Result<Vec<(Box<RawValue>, CallLogEntry)>> {
    let (limit, pages) = if last.is_none() { (args.page.limit, 1) } else { FOLLOW_PAGE };
    let (mut calls, mut before) = (Vec::new(), None);
    for _ in 0..pages {
        let text = args.remote.get(&args.path(limit, before)).await?;
        let page: RawLogPage = serde_json::from_slice(&text).context("unexpected response: not a log")?;
        for text in page.entries {
            let call: CallLogEntry =
                serde_json::from_str(text.get()).context("unexpected response: not a call")?;
            if last == Some(call.request_id.as_str()) {
                calls.reverse();
                return Ok(calls);
            }
            calls.push((text, call));
        }
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    calls.reverse();
    Ok(calls)
}

impl LogsArgs {
    /// Returns the path and query of a request. No parameter needs escaping.
    fn path(&self, limit: u16, before: Option<u64>) -> String {
        let parameters = [
            ("limit", Some(limit.to_string())),
            ("version", self.version.clone()),
            ("outcome", self.outcome.clone()),
            ("since", self.page.since().map(iso_8601)),
            ("before", before.map(|before| before.to_string())),
        ];
        let query: Vec<_> =
            parameters.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?))).collect();
        format!("/api/v1/functions/{}/logs?{}", self.id, query.join("&"))
    }
}

impl CallLogEntry {
    pub(super) fn text(&self) -> String {
        let Self { time, version, request_id, outcome, duration_ms, bytes, cost, .. } = self;
        let cost = if cost == "0" { String::new() } else { format!(", cost {cost}") };
        let text =
            format!("{time}  {version}  {request_id}  {outcome}, {duration_ms:.1} ms, {bytes} bytes{cost}");
        let error = self.error.iter().map(|error| format!("\n  error    {}", escape_line(error)));
        escape_line(&text) + &error.collect::<String>() + &printed_lines(&self.output)
    }
}
