//! A user of a gateway that exercises everything that it offers: the client of the suite's client scenarios.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::client::{ClientKind, GatewayAccess, MatrixClient, MatrixTransport, McpRevision};

/// Maximum time of a scenario; the suite's own limit is a bit longer.
const EXERCISE_LIMIT: Duration = Duration::from_secs(25);

/// Arguments of the exercise.
#[derive(clap::Args)]
pub(crate) struct ExerciseArgs {
    /// Use the gateway in a session
    #[arg(long)]
    session: bool,
    /// Address of the gateway
    gateway: SocketAddr,
}

/// Exercises the servers of a gateway. The scenario behind it judges the requests.
pub(crate) fn run(args: &ExerciseArgs) -> anyhow::Result<()> {
    // Only clients over stdio need the manifest and the log.
    let access = GatewayAccess { address: args.gateway, manifest: Path::new(""), log: Path::new("") };
    let revision = if args.session { McpRevision::V2025_11_25 } else { McpRevision::V2026_07_28 };
    let kind = ClientKind { revision, carrier: MatrixTransport::Http };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let session = async {
        let mut client = MatrixClient::open(kind, "driver", access).await?;
        exercise_server(&mut client).await
    };
    runtime.block_on(async { timeout(EXERCISE_LIMIT, session).await.context("timeout")? })
}

/// Calls every tool, gets every prompt, reads every resource.
async fn exercise_server(client: &mut MatrixClient) -> anyhow::Result<()> {
    let tools = list(client, "tools").await?;
    for (name, arguments) in calls(&tools)? {
        // A tool may fail: the scenario judges the request.
        let _result = client.request("tools/call", json!({"name": name, "arguments": arguments})).await;
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
async fn list(client: &mut MatrixClient, kind: &str) -> anyhow::Result<Vec<Value>> {
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

/// The calls of the scenario's context, or else one call of each tool.
fn calls(tools: &[Value]) -> anyhow::Result<Vec<(String, Value)>> {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
    let context: Value = serde_json::from_str(&context).context("read the scenario's context")?;
    let requested = context["toolCalls"].as_array().map(Vec::as_slice).unwrap_or_default();
    let name_of = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
    if requested.is_empty() {
        return Ok(tools.iter().map(|tool| (name_of(tool), arguments(tool, tools))).collect());
    }
    Ok(requested.iter().map(|call| (name_of(call), without_nulls(&call["arguments"]))).collect())
}

/// Removes null members: these schemas do not allow null, and the gateway validates arguments.
fn without_nulls(arguments: &Value) -> Value {
    let members = arguments.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Arguments that are valid for a tool. An argument called `schema` gets the schema of the first tool.
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
