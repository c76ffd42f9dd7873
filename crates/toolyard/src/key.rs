//! `toolyard key`: who may come in.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use serde_json::json;
use toolyard_core::store::Store;
use toolyard_server::audit::{AUDIT, By, Deed, Event};
use toolyard_server::keys::record::{self, KeyError};
use toolyard_server::keys::{Amount, KeyScope, NewKey, ShownKey};

use crate::BadInput;
use crate::output::{self, Format, count, print};
use crate::span::span;
use crate::store::Manifests;

/// Hand out keys, and take them back: make, list and revoke them in the store of a gateway
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard key create ci --scope 'tools:*'                        all tools, over MCP
  toolyard key create bot --scope 'tools:github/get_*' --rate 10/s --calls 1000/day
  toolyard key create ops --scope admin --scope rest --expires 90d
  toolyard key list
  toolyard key revoke 5d41402abc4b

As soon as there is a key, every door of the gateway but /health asks for one, and goes on to do so when all are
revoked. A gateway that runs knows of a new key at once, and of a revoked one within `timeouts.keyCheck`.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Create(Create),
    List(List),
    Revoke(Revoke),
}

/// Make a key, and print it: it is not to be had again
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard key create ci --scope 'tools:*'
  toolyard key create ops --scope admin --scope rest --expires 90d -f gateway.yaml
  export TOOLYARD_KEY=$(toolyard key create me --scope 'tools:*' --scope rest)

Scopes:
  tools:PATTERN  tools (and prompts and resources) that the key may see and call: `tools:*`, `tools:search_*`, or
                 with the handler, `tools:github/*`; a star stands for any characters
  rest           to do the same by REST, and to see the status
  admin          keys, the audit trail, tests of handlers, the level of the log
  functions      to invoke hosted functions
  metrics        /metrics
  memory:PATTERN namespaces of working memory beside its own: `memory:session/*`, `memory:*`")]
struct Create {
    /// What the key is for, in your words
    name: String,

    /// What it opens; may be said more than once
    #[arg(long = "scope", value_name = "SCOPE", required = true)]
    scopes: Vec<KeyScope>,

    /// For how long: 12h, 90d, 4w; without it until it is revoked
    #[arg(long, value_name = "TIME", value_parser = span)]
    expires: Option<Duration>,

    /// How often it may call: 10/s, 600/min, each gateway by itself
    #[arg(long, value_name = "AMOUNT")]
    rate: Option<Amount>,

    /// How many calls it may make: 1000/day, or 1000 in all
    #[arg(long, value_name = "AMOUNT")]
    calls: Option<Amount>,

    /// What its calls may cost, where tools have a `price`: 2.5/week
    #[arg(long, value_name = "AMOUNT")]
    cost: Option<Amount>,

    /// The language model that its calls are made for, where they do not say: `builtins.results.models` has its bound
    #[arg(long, value_name = "ID")]
    model: Option<String>,

    /// From how many characters on results are large for it
    #[arg(long, value_name = "CHARACTERS")]
    chunk_threshold: Option<u64>,

    #[command(flatten)]
    manifests: Manifests,
}

/// List the keys, those that open nothing any more among them
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard key list
  toolyard key list -f gateway.yaml --output json")]
struct List {
    #[command(flatten)]
    manifests: Manifests,
}

/// Make a key open nothing any more
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard key revoke 5d41402abc4b")]
struct Revoke {
    /// Its id: what stands in its text behind `ty_`, and first in a line of `toolyard key list`
    id: String,

    #[command(flatten)]
    manifests: Manifests,
}

pub(crate) async fn run(args: Args, format: Format) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Create(args) => create(args, format).await?,
        Command::List(args) => list(&args, format).await?,
        Command::Revoke(args) => revoke(args, format).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(args: Create, format: Format) -> anyhow::Result<()> {
    let Create { name, scopes, expires, rate, calls, cost, model, chunk_threshold, manifests } = args;
    let (store, location) = manifests.made_store().await?;
    let expires_in = expires.map(|time| time.as_secs());
    let wanted = NewKey { name, scopes, expires_in, rate, calls, cost, model, chunk_threshold };
    let (key, secret) = record::create(&*store, wanted).await.map_err(|error| match error {
        KeyError::Bad(bad) => anyhow::Error::from(BadInput(bad.to_string())),
        KeyError::Store(error) => error.into(),
    })?;
    let id = key.id.clone();
    // First: whatever fails from here on, the key is made, and its text is not to be had again.
    print(&match format {
        Format::Text => secret.reveal(),
        Format::Json => serde_json::to_string(&ShownKey::new(key, &secret))?,
    });
    output::note(&format!("the key {id} is in the store {location}"));
    note(&store, Deed::KeyCreated, &id).await;
    Ok(())
}

async fn list(args: &List, format: Format) -> anyhow::Result<()> {
    let store = args.manifests.existing_store().await?;
    let keys: Vec<_> = record::list(&*store).await?.into_iter().map(ShownKey::from).collect();
    print(&match format {
        Format::Json => json!({"keys": keys}).to_string(),
        Format::Text if keys.is_empty() => "there are no keys: nobody is asked for one".to_owned(),
        Format::Text => keys.iter().map(|key| output::line(&key.line())).collect::<Vec<_>>().join("\n"),
    });
    Ok(())
}

async fn revoke(args: Revoke, format: Format) -> anyhow::Result<()> {
    let store = args.manifests.existing_store().await?;
    let Some(key) = record::revoke(&*store, &args.id).await? else {
        bail!("there is no key {:?} among {}", args.id, count(record::list(&*store).await?.len(), "key"));
    };
    note(&store, Deed::KeyRevoked, &key.id).await;
    print(&match format {
        Format::Text => format!("{} opens nothing any more", key.id),
        Format::Json => serde_json::to_string(&ShownKey::from(key))?,
    });
    Ok(())
}

/// Puts into the audit trail what was done here. It is done, also where the trail cannot be written.
async fn note(store: &Arc<dyn Store>, deed: Deed, object: &str) {
    let by = By { principal: Some("command line".into()), ..By::default() };
    let event = Event { by, deed, object: object.to_owned() };
    if let Err(error) = store.append(AUDIT, vec![event.written()]).await {
        output::note(&format!("it is done, but not in the audit trail: {:#}", anyhow::Error::from(error)));
    }
}
