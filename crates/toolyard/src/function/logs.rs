//! `toolyard function logs`: the calls of a function.

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use serde::Deserialize;
use toolyard_core::timestamp::iso_8601;

use super::report::printed;
use super::{id, one_version};
use crate::output::{Format, line, note, print};
use crate::remote::Remote;
use crate::span::span;

/// How a call can have ended.
const OUTCOMES: [&str; 7] = ["ok", "error", "failed", "timeout", "overloaded", "unavailable", "cancelled"];

/// Read the calls of a function, newest first: how they ended, and what it printed
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function logs weather
  toolyard function logs weather --version 1.2.0 --since 1h --outcome failed
  toolyard function logs weather --limit 1000 --output json

A call is `ok`; an `error`, where the function says so; `failed`, where it could say nothing, as with an exception; or
was not answered: `timeout`, `overloaded`, `unavailable`, `cancelled`. A gateway writes what has happened a moment later.")]
pub(super) struct Args {
    /// The function, which may be deleted
    #[arg(value_parser = id)]
    id: String,

    /// Only calls of this version
    #[arg(long, value_parser = one_version)]
    version: Option<String>,

    /// Only calls that ended like this
    #[arg(long, value_parser = OUTCOMES)]
    outcome: Option<String>,

    /// Only calls that are not older: 10min, 1h, 7d
    #[arg(long, value_name = "TIME", value_parser = span)]
    since: Option<Duration>,

    /// How many at most
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,

    /// Only calls before that place: how to go on, as the end of a page says
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,

    #[command(flatten)]
    remote: Remote,
}

#[derive(Deserialize)]
struct Page {
    entries: Vec<Entry>,
    next: Option<u64>,
}

/// A call, as the gateway has noted it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
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

pub(super) async fn run(args: Args, format: Format) -> anyhow::Result<ExitCode> {
    let text = args.remote.get(&args.path()).await?;
    if format == Format::Json {
        print(&String::from_utf8_lossy(&text));
        return Ok(ExitCode::SUCCESS);
    }
    let page: Page = serde_json::from_slice(&text).context("the gateway answers with something else")?;
    if page.entries.is_empty() {
        print("no calls");
    }
    page.entries.iter().for_each(|entry| print(&entry.text()));
    if let Some(next) = page.next {
        note(&format!("there may be more: `--before {next}` goes on"));
    }
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// Nothing in it has to be escaped.
    fn path(&self) -> String {
        let since = self.since.and_then(|since| SystemTime::now().checked_sub(since));
        let wanted = [
            ("limit", Some(self.limit.to_string())),
            ("version", self.version.clone()),
            ("outcome", self.outcome.clone()),
            ("since", since.map(iso_8601)),
            ("before", self.before.map(|before| before.to_string())),
        ];
        let wanted: Vec<_> =
            wanted.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?))).collect();
        format!("/api/v1/functions/{}/logs?{}", self.id, wanted.join("&"))
    }
}

impl Entry {
    pub(super) fn text(&self) -> String {
        let Self { time, version, request_id, outcome, duration_ms, bytes, cost, .. } = self;
        let cost = if cost == "0" { String::new() } else { format!(", cost {cost}") };
        let text =
            format!("{time}  {version}  {request_id}  {outcome}, {duration_ms:.1} ms, {bytes} bytes{cost}");
        let error = self.error.iter().map(|error| format!("\n  error    {}", line(error)));
        line(&text) + &error.collect::<String>() + &printed(&self.output)
    }
}
