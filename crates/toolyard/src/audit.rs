//! `toolyard audit`: who called what.

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use toolyard_server::audit::query::{self, Wanted};

use crate::output::{Format, line, note, print};
use crate::span::span;
use crate::store::Manifests;

/// Read the audit trail in the store of a gateway: who called what, newest first
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard audit                                the last hundred records
  toolyard audit --since 1h --outcome denied
  toolyard audit --key 5d41402abc4b --name search
  toolyard audit --before 4711                  the hundred before that record
  toolyard audit --limit 1000 --output json     the records as they are kept, one JSON text

A gateway writes what has happened a moment later. What is kept of arguments, and for how long, says `audit` in the
Toolyard document.")]
pub(crate) struct Args {
    /// Only what this key did, by its id
    #[arg(long, value_name = "ID")]
    key: Option<String>,

    /// Only calls of this tool, prompt or resource, or what was done to this key or handler
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Only calls that went to this handler
    #[arg(long, value_name = "HANDLER")]
    handler: Option<String>,

    /// Only calls that ended like this: ok, tool_error, or the code of an error
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,

    /// Only this: call, key_created, key_revoked, handler_refreshed, log_changed, function_saved, function_published,
    /// function_deleted, records_lost
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,

    /// Only what is not older: 10min, 1h, 7d
    #[arg(long, value_name = "TIME", value_parser = span)]
    since: Option<Duration>,

    /// How many at most
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,

    /// Only records with a smaller number: how to go on, as the end of a page says
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,

    #[command(flatten)]
    manifests: Manifests,
}

pub(crate) async fn run(args: Args, format: Format) -> anyhow::Result<ExitCode> {
    let store = args.manifests.existing_store().await?;
    let wanted = Wanted {
        action: args.action,
        principal: args.key,
        name: args.name,
        handler: args.handler,
        outcome: args.outcome,
        since: args.since.and_then(|since| SystemTime::now().checked_sub(since)),
        before: args.before,
        limit: Some(args.limit.into()),
        ..Wanted::default()
    };
    let page = query::read(&*store, wanted).await?;
    match format {
        Format::Json => print(&serde_json::to_string(&page)?),
        Format::Text if page.records.is_empty() => print("no records"),
        Format::Text => {
            for record in &page.records {
                print(&line(&serde_json::from_str::<Record>(record.get())?.line()));
            }
            if let Some(next) = page.next {
                note(&format!("there may be more: `--before {next}` goes on"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What is shown of a record.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    time: String,
    action: String,
    principal: Option<String>,
    key_name: Option<String>,
    name: String,
    handler: Option<String>,
    outcome: Option<String>,
    duration_ms: Option<f64>,
}

impl Record {
    fn line(&self) -> String {
        let who = match (&self.principal, &self.key_name) {
            (Some(id), Some(name)) => format!("{id} ({name})"),
            (Some(id), None) => id.clone(),
            (None, _) => "anybody".to_owned(),
        };
        let outcome = self.outcome.as_deref().unwrap_or("done");
        let took = self.duration_ms.map(|ms| format!(", {ms:.1} ms")).unwrap_or_default();
        let of = self.handler.as_deref().map(|handler| format!(" of {handler}")).unwrap_or_default();
        format!("{}  {who}  {} {}{of}: {outcome}{took}", self.time, self.action, self.name)
    }
}
