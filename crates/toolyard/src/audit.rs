//! `toolyard audit`: shows the audit trail.

use std::process::ExitCode;
use std::sync::Arc;

use serde::Deserialize;
use toolyard_core::store::Store;
use toolyard_server::audit::query::{self, AuditQuery};

use crate::output::{OutputFormat, escape_line, note, print};
use crate::page_args::PageArgs;
use crate::store::ManifestArgs;

/// Show the audit trail of a gateway, newest first
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard audit                                the last 100 records
  toolyard audit --since 1h --outcome denied
  toolyard audit --key 5d41402abc4b --name search
  toolyard audit --before 4711                  the 100 records before record 4711
  toolyard audit --limit 1000 --output json     the full records as JSON

Reads the store of the gateway. Records appear there with a short delay. `audit` in the Toolyard document sets what is
recorded of arguments, and the retention.")]
pub(crate) struct AuditArgs {
    /// Only actions of the key with this id
    #[arg(long, value_name = "ID")]
    key: Option<String>,

    /// Only records about this tool, prompt, resource, scheduled task, key or handler
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Only calls of this handler
    #[arg(long, value_name = "HANDLER")]
    handler: Option<String>,

    /// Only calls with this outcome: ok, tool_error or an error code; of scheduled tasks ok, failed or interrupted
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,

    /// Only this action: call, task_fired, key_created, key_revoked, handler_refreshed, tool_changed, tool_added,
    /// tool_accepted, task_cancelled, log_changed, function_saved, function_published, function_deleted or records_lost
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    manifests: ManifestArgs,
}

pub(crate) async fn run(args: AuditArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let filter = AuditQuery {
        action: args.action,
        principal: args.key,
        name: args.name,
        handler: args.handler,
        outcome: args.outcome,
        since: args.page.since(),
        before: args.page.before,
        limit: Some(args.page.limit.into()),
        ..AuditQuery::default()
    };
    let read = async |store: Arc<dyn Store>| Ok(query::read(&*store, filter).await?);
    let page = args.manifests.with_existing(read).await?;
    match format {
        OutputFormat::Json => print(&serde_json::to_string(&page)?),
        OutputFormat::Text if page.records.is_empty() => print("no records"),
        OutputFormat::Text => {
            for record in &page.records {
                print(&escape_line(&serde_json::from_str::<RecordSummary>(record.get())?.line()));
            }
            if let Some(next) = page.next {
                note(&format!("there may be more records; continue with `--before {next}`"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The members of an audit record that are shown as text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordSummary {
    time: String,
    action: String,
    principal: Option<String>,
    key_name: Option<String>,
    name: String,
    handler: Option<String>,
    outcome: Option<String>,
    duration_ms: Option<f64>,
}

impl RecordSummary {
    fn line(&self) -> String {
        let caller = match (&self.principal, &self.key_name) {
            (Some(id), Some(name)) => format!("{id} ({name})"),
            (Some(id), None) => id.clone(),
            (None, _) => "anonymous".to_owned(),
        };
        let outcome = self.outcome.as_deref().unwrap_or("done");
        let took = self.duration_ms.map(|ms| format!(", {ms:.1} ms")).unwrap_or_default();
        let of = self.handler.as_deref().map(|handler| format!(" of {handler}")).unwrap_or_default();
        format!("{}  {caller}  {} {}{of}: {outcome}{took}", self.time, self.action, self.name)
    }
}
