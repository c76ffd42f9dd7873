//! `toolyard bus`: shows what a message bus has kept.

use std::process::ExitCode;

use toolyard_server::bus::{DeadLetterQuery, DeadMessage, dead_letters};

use crate::bus_process::BusArgs;
use crate::manifest_sources::ManifestSources;
use crate::output::{OutputFormat, count, escape_line, note, print};

/// Inspect a message bus
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard bus dead --bus amqp://broker.example.com:5672
  toolyard bus dead -f tools.yaml --topic script.invoke --group scripts")]
pub(crate) struct BusCommandArgs {
    #[command(subcommand)]
    command: BusCommand,
}

#[derive(clap::Subcommand)]
enum BusCommand {
    /// List dead letters: messages that were delivered too often, or that no worker can read
    #[command(after_help = "\
Examples:
  toolyard bus dead --bus nats://broker.example.com:4222
  toolyard bus dead -f tools.yaml --limit 1000 --output json
  toolyard bus dead -f tools.yaml --bodies

The messages stay where they are. Bodies have the arguments of calls and are shown on request only.")]
    Dead(DeadArgs),
}

#[derive(clap::Args)]
struct DeadArgs {
    #[command(flatten)]
    sources: ManifestSources,

    #[command(flatten)]
    bus: BusArgs,

    /// Topic, or pattern of topics, that the group has subscribed to
    #[arg(long, value_name = "TOPIC", default_value = "tool.invoke")]
    topic: String,

    /// Group of the workers [default: `bus.worker.group` of the manifest]
    #[arg(long, value_name = "NAME")]
    group: Option<String>,

    /// Maximum number of messages, the oldest first
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    limit: u16,

    /// Show the bodies of the messages, which may contain secrets
    #[arg(long)]
    bodies: bool,
}

pub(crate) async fn run(args: BusCommandArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let BusCommand::Dead(args) = args.command;
    let mut manifest = args.sources.or_default().read()?;
    if let Some(url) = args.bus.url()? {
        manifest.process.bus.url = Some(url);
    }
    let settings = &manifest.process.bus;
    let query = DeadLetterQuery {
        topic: args.topic,
        group: args.group.unwrap_or_else(|| settings.worker.group.clone()),
        limit: args.limit.into(),
        bodies: args.bodies,
    };
    let messages = dead_letters(settings, &query).await?;
    match format {
        OutputFormat::Json => print(&serde_json::json!({"messages": messages}).to_string()),
        OutputFormat::Text if messages.is_empty() => print("no dead letters"),
        OutputFormat::Text => {
            messages.iter().for_each(|message| print(&escape_line(&line(message))));
            if messages.len() == query.limit {
                let shown = count(messages.len(), "message");
                note(&format!("{shown} shown; there may be more, see `--limit`"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn line(message: &DeadMessage) -> String {
    let time = message.time.as_deref().unwrap_or("unknown time");
    let name = message.message_type.rsplit('.').next().unwrap_or_default();
    let attempts = message.attempts.map(|attempts| format!(" after {}", count_deliveries(attempts)));
    let body = message.body.as_deref().map(|body| format!("  {body}")).unwrap_or_default();
    format!(
        "{time}  {} {} of {} on {}{}: {}{body}",
        name,
        message.message_id,
        message.source,
        message.topic,
        attempts.unwrap_or_default(),
        message.reason
    )
}

fn count_deliveries(attempts: u32) -> String {
    match attempts {
        1 => "1 delivery".to_owned(),
        attempts => format!("{attempts} deliveries"),
    }
}
