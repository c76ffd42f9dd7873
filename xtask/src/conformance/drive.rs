//! The client of the suite's client scenarios: a gateway with the scenario's server behind it, and somebody who uses
//! all that it offers.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use super::start_gateway;
use crate::matrix::client::{Carrier, Client, Door, Kind, Revision};

/// The scenario's own patience is a bit longer.
const LIMIT: Duration = Duration::from_secs(25);

/// What this command is told.
#[derive(clap::Args)]
pub(crate) struct DriveArgs {
    /// Whether who uses the gateway has a session
    #[arg(long)]
    session: bool,
    /// Where the scenario's server is
    url: String,
}

/// Uses a server through a gateway. What comes of it the scenario judges.
pub(crate) fn drive(args: &DriveArgs) -> anyhow::Result<()> {
    let work = TempDir::new().context("make a folder")?;
    let gateway = start_gateway(work.path(), &args.url)?;
    let address = gateway.url.split('/').nth(2).context("no address")?.parse()?;
    let door = Door { address, manifest: work.path(), log: work.path() };
    let revision = if args.session { Revision::V2025_11_25 } else { Revision::V2026_07_28 };
    let kind = Kind { revision, carrier: Carrier::Http };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let used = async {
        let mut client = Client::open(kind, "driver", door).await?;
        use_all(&mut client).await
    };
    runtime.block_on(async { timeout(LIMIT, used).await.context("it takes too long")? })
}

/// Calls every tool, gets every prompt, reads every resource.
async fn use_all(client: &mut Client) -> anyhow::Result<()> {
    let tools = list(client, "tools").await?;
    for (name, arguments) in calls(&tools)? {
        // A tool may fail: what counts is what its server was sent.
        let _said = client.request("tools/call", json!({"name": name, "arguments": arguments})).await;
    }
    for prompt in list(client, "prompts").await.unwrap_or_default() {
        client.request("prompts/get", json!({"name": prompt["name"]})).await?;
    }
    for resource in list(client, "resources").await.unwrap_or_default() {
        client.request("resources/read", json!({"uri": resource["uri"]})).await?;
    }
    Ok(())
}

/// All pages of a list.
async fn list(client: &mut Client, kind: &str) -> anyhow::Result<Vec<Value>> {
    let (mut all, mut params) = (Vec::new(), json!({}));
    loop {
        let mut page = client.request(&format!("{kind}/list"), params).await?;
        let items: Vec<Value> =
            serde_json::from_value(page[kind].take()).with_context(|| format!("no {kind}"))?;
        all.extend(items);
        match page["nextCursor"].take() {
            Value::Null => return Ok(all),
            cursor => params = json!({"cursor": cursor}),
        }
    }
}

/// The calls that the scenario asks for, or else one of each tool.
fn calls(tools: &[Value]) -> anyhow::Result<Vec<(String, Value)>> {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
    let context: Value = serde_json::from_str(&context).context("read the scenario's context")?;
    let wanted = context["toolCalls"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
    if wanted.is_empty() {
        return Ok(tools.iter().map(|tool| (named(tool), arguments(tool, tools))).collect());
    }
    Ok(wanted.iter().map(|call| (named(call), given(&call["arguments"]))).collect())
}

/// Without those that are null: these schemas have no null, and the gateway refuses what does not fit a schema.
fn given(arguments: &Value) -> Value {
    let members = arguments.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Arguments that fit a tool. Who asks for a schema is given that of the first tool.
fn arguments(tool: &Value, tools: &[Value]) -> Value {
    let schema = &tool["inputSchema"];
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let value = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("number" | "integer") => json!(7),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") if name == "schema" => tools[0]["inputSchema"].clone(),
        Some("object") => json!({}),
        _ => json!("text"),
    };
    let names = required.iter().filter_map(Value::as_str);
    Value::Object(names.map(|name| (name.to_owned(), value(name))).collect::<Map<_, _>>())
}
