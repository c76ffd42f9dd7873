//! `toolyard function logs`: shows the calls of a function.

use std::process::ExitCode;

use anyhow::Context;
use clap::builder::PossibleValuesParser;
use serde::Deserialize;
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
    let text = args.remote.get(&args.path()).await?;
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

impl LogsArgs {
    /// Returns the path and query of the request. No parameter needs escaping.
    fn path(&self) -> String {
        let parameters = [
            ("limit", Some(self.page.limit.to_string())),
            ("version", self.version.clone()),
            ("outcome", self.outcome.clone()),
            ("since", self.page.since().map(iso_8601)),
            ("before", self.page.before.map(|before| before.to_string())),
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
