//! `toolyard key`: creates, lists and revokes API keys.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::json;
use toolyard_core::store::Store;
use toolyard_server::audit::{AUDIT, AuditAction, AuditActor, AuditEvent};
use toolyard_server::keys::open_gateways;
use toolyard_server::keys::record::{self, KeyError};
use toolyard_server::keys::{KeyScope, KeySummary, NewApiKey, QuotaAmount};
use toolyard_store::DatabaseLocation;

use crate::duration::parse_duration;
use crate::output::{self, OutputFormat, count, print};
use crate::store::ManifestArgs;
use crate::{BadInput, key_marker};

/// Manage the API keys of a gateway
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard key create ci --scope 'tools:*'                        all tools by MCP
  toolyard key create bot --scope 'tools:github/get_*' --rate 10/s --calls 1000/day
  toolyard key create ops --scope admin --scope rest --expires 90d
  toolyard key list
  toolyard key revoke 5d41402abc4b
  toolyard key forget -f gateway.yaml     after the loss of the store, if keys are no longer needed

Once a key exists, every endpoint except /health and /api/v1/openapi.json requires one, even after all keys are
revoked. A running gateway accepts a new key immediately and rejects a revoked one within `timeouts.keyCheck`.")]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(clap::Subcommand)]
enum KeyCommand {
    Create(KeyCreateArgs),
    List(KeyListArgs),
    Revoke(KeyRevokeArgs),
    Forget(KeyForgetArgs),
}

/// Create a key and print it (shown only once)
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard key create ci --scope 'tools:*'
  toolyard key create ops --scope admin --scope rest --expires 90d -f gateway.yaml
  export TOOLYARD_KEY=$(toolyard key create me --scope 'tools:*' --scope rest)

Scopes:
  tools:PATTERN  list and call these tools, prompts and resources: `tools:*`, `tools:search_*`, or with the
                 handler, `tools:github/*`; `*` matches any characters
  rest           use the same tools by REST, and read the status
  admin          manage keys, read the audit trail, test handlers, change the log level
  functions      invoke hosted functions
  metrics        read /metrics
  memory:PATTERN use further namespaces of working memory: `memory:session/*`, `memory:*`
  publish:PATTERN
                 publish hosted functions with these ids and read their logs: `publish:geo-*`")]
struct KeyCreateArgs {
    /// Name of the key, for your reference
    name: String,

    /// Scope to grant; repeatable
    #[arg(long = "scope", value_name = "SCOPE", required = true)]
    scopes: Vec<KeyScope>,

    /// Lifetime: 12h, 90d, 4w (default: until revoked)
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    expires: Option<Duration>,

    /// Rate limit per gateway: 10/s, 600/min
    #[arg(long, value_name = "AMOUNT")]
    rate: Option<QuotaAmount>,

    /// Quota of calls: 1000/day, or 1000 in total
    #[arg(long, value_name = "AMOUNT")]
    calls: Option<QuotaAmount>,

    /// Quota of cost, for tools with a `price`: 2.5/week
    #[arg(long, value_name = "AMOUNT")]
    cost: Option<QuotaAmount>,

    /// Default language model of its calls, whose limit is in `builtins.results.models`
    #[arg(long, value_name = "ID")]
    model: Option<String>,

    /// Size in characters above which its results are large
    #[arg(long, value_name = "CHARACTERS")]
    chunk_threshold: Option<u64>,

    #[command(flatten)]
    manifests: ManifestArgs,
}

/// List the keys, including revoked and expired keys
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard key list
  toolyard key list -f gateway.yaml --output json")]
struct KeyListArgs {
    #[command(flatten)]
    manifests: ManifestArgs,
}

/// Revoke a key
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard key revoke 5d41402abc4b")]
struct KeyRevokeArgs {
    /// Id of the key: the part after `ty_`, and the first column of `toolyard key list`
    id: String,

    #[command(flatten)]
    manifests: ManifestArgs,
}

/// Allow a gateway that has lost its keys to start without keys
///
/// A gateway that has had keys records this in a marker beside its configuration. If its store has no keys, it does not
/// start, because it would accept unauthenticated requests. This command removes the marker. Keys in the store remain
/// required.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard key forget -f gateway.yaml")]
struct KeyForgetArgs {
    #[command(flatten)]
    manifests: ManifestArgs,
}

pub(crate) async fn run(args: KeyArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    match args.command {
        KeyCommand::Create(args) => create(args, format).await?,
        KeyCommand::List(args) => list(&args, format).await?,
        KeyCommand::Revoke(args) => revoke(args, format).await?,
        KeyCommand::Forget(args) => forget(args, format).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Time in addition to `timeouts.keyCheck` for a running gateway to require keys.
const CLOSING_MARGIN: Duration = Duration::from_secs(5);

async fn create(args: KeyCreateArgs, format: OutputFormat) -> anyhow::Result<()> {
    let KeyCreateArgs { name, scopes, expires, rate, calls, cost, model, chunk_threshold, manifests } = args;
    let expires_in = expires.map(|time| time.as_secs());
    let new_key = NewApiKey { name, scopes, expires_in, rate, calls, cost, model, chunk_threshold };
    let key_check = manifests.process()?.timeouts.key_check;
    let create_key = async |store: Arc<dyn Store>, location: &DatabaseLocation| {
        let (key, secret) = record::create(&*store, new_key).await.map_err(|error| match error {
            KeyError::Bad(bad) => anyhow::Error::from(BadInput(bad.to_string())),
            KeyError::Store(error) => error.into(),
        })?;
        let id = key.id.clone();
        // Before anything else can fail: the key exists, and its text cannot be shown again.
        print(&match format {
            OutputFormat::Text => secret.reveal(),
            OutputFormat::Json => serde_json::to_string(&KeySummary::new(key, &secret))?,
        });
        output::note(&format!("created key {id} in the store {location}"));
        record_action(&store, AuditAction::KeyCreated, &id).await;
        let limit = key_check + CLOSING_MARGIN;
        if !open_gateways::wait_until_closed(&*store, limit).await? {
            output::note(
                "a running gateway has not read the key yet and may still admit requests without one",
            );
        }
        Ok(())
    };
    manifests.with_created(create_key).await?;
    set_marker(&manifests).await;
    Ok(())
}

/// Sets the marker beside the configuration that the gateway has keys. A gateway that sees the key does the same.
async fn set_marker(manifests: &ManifestArgs) {
    let files = manifests.files();
    if files.is_empty() {
        return;
    }
    if let Err(error) = key_marker::locate(files).await.set() {
        output::note(&format!("cannot write the key marker beside the configuration: {error}"));
    }
}

async fn forget(args: KeyForgetArgs, format: OutputFormat) -> anyhow::Result<()> {
    let marker = key_marker::locate(args.manifests.files()).await;
    let removed = marker.clear().context("cannot remove the key marker")?;
    print(&match format {
        OutputFormat::Json => json!({"removed": removed}).to_string(),
        OutputFormat::Text if removed.is_empty() => "no key marker found".to_owned(),
        OutputFormat::Text => {
            let lines =
                removed.iter().map(|place| output::escape_line(&format!("removed {}", place.display())));
            lines.collect::<Vec<_>>().join("\n")
        }
    });
    Ok(())
}

async fn list(args: &KeyListArgs, format: OutputFormat) -> anyhow::Result<()> {
    let list_all = async |store: Arc<dyn Store>| Ok(record::list(&*store).await?);
    let keys = args.manifests.with_existing(list_all).await?;
    let keys: Vec<_> = keys.into_iter().map(KeySummary::from).collect();
    print(&match format {
        OutputFormat::Json => json!({"keys": keys}).to_string(),
        OutputFormat::Text if keys.is_empty() => "No keys; requests are not authenticated".to_owned(),
        OutputFormat::Text => {
            keys.iter().map(|key| output::escape_line(&key.summary_line())).collect::<Vec<_>>().join("\n")
        }
    });
    Ok(())
}

async fn revoke(args: KeyRevokeArgs, format: OutputFormat) -> anyhow::Result<()> {
    let revoke_key = async |store: Arc<dyn Store>| {
        let Some(key) = record::revoke(&*store, &args.id).await? else {
            bail!("no key with id {:?} among {}", args.id, count(record::list(&*store).await?.len(), "key"));
        };
        record_action(&store, AuditAction::KeyRevoked, &key.id).await;
        Ok(key)
    };
    let key = args.manifests.with_existing(revoke_key).await?;
    print(&match format {
        OutputFormat::Text => format!("revoked key {}", key.id),
        OutputFormat::Json => serde_json::to_string(&KeySummary::from(key))?,
    });
    Ok(())
}

/// Appends an action to the audit trail. If that fails, prints a note: the action itself is done.
async fn record_action(store: &Arc<dyn Store>, action: AuditAction, object: &str) {
    let by = AuditActor { principal: Some("command line".into()), ..AuditActor::default() };
    let event = AuditEvent { actor: by, action, object: object.to_owned() };
    if let Err(error) = store.append(AUDIT, [event.to_record()].into()).await {
        output::note(&format!("cannot write the audit trail: {:#}", anyhow::Error::from(error)));
    }
}
