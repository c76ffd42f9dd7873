//! Calls, and messages during calls.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::client::{MatrixClient, RESPONSE_TIMEOUT, text_of};
use crate::script::{FeatureScript, ToolStep};
use crate::tap::TrafficTap;

/// Time between two checks whether a server has received a cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

const PROGRESS: &str = "notifications/progress";

/// Maximum number of calls until a toggle is on. Other clients of the same server may turn it off meanwhile.
const MAX_ATTEMPTS: usize = 10;

pub(super) async fn call(client: &mut MatrixClient, step: &ToolStep) -> anyhow::Result<()> {
    run_step(client, step, json!({})).await
}

/// Calls the tool of a step, and checks its text.
pub(super) async fn run_step(client: &mut MatrixClient, step: &ToolStep, meta: Value) -> anyhow::Result<()> {
    let name = client.own_name.clone();
    let (arguments, says) = (step.arguments(&name), step.expected_text(&name));
    let mut text = String::new();
    for _ in 0..MAX_ATTEMPTS {
        text = client.call_with(step.tool, arguments.clone(), meta.clone()).await?;
        if text.contains(&says) {
            return Ok(());
        }
    }
    bail!("{} returned {text:?}, not {says:?}", step.tool)
}

/// Progress has the token of the call, increases, and arrives before the response.
pub(super) async fn progress(client: &mut MatrixClient, step: &ToolStep) -> anyhow::Result<()> {
    let token = format!("progress of {}", client.own_name);
    run_step(client, step, json!({"progressToken": token})).await?;
    let mut last = f64::MIN;
    let notifications = client.notifications_of(PROGRESS);
    ensure!(!notifications.is_empty(), "no progress before the response");
    for notice in notifications {
        ensure!(notice["progressToken"] == token, "progress of another call: {notice}");
        let done = notice["progress"].as_f64().context("progress is no number")?;
        ensure!(done > last, "progress {done} after {last}");
        last = done;
    }
    Ok(())
}

/// A running call is cancelled, its server is notified, and no response arrives.
pub(super) async fn cancel(
    client: &mut MatrixClient,
    script: &FeatureScript,
    tap: Option<&TrafficTap>,
) -> anyhow::Result<()> {
    let (step, name) = (&script.cancel, client.own_name.clone());
    let mark = format!("cancelled by {name} over {:?}", client.kind.carrier);
    let meta = json!({"progressToken": name, "com.example/mark": mark});
    let params = json!({"name": step.tool, "arguments": step.arguments(&name), "_meta": meta});
    // Some servers request roots as soon as they are connected; with rounds the cancelled request would have ended
    // already.
    let id = client.start_request_without_capabilities("tools/call", params).await?;
    client
        .wait_for_notification(PROGRESS, |params| params["progressToken"] == *name)
        .await
        .context("no progress of the call")?;
    client.cancel(id).await?;
    let started = Instant::now();
    loop {
        let is_cancelled = match (&script.cancelled, tap) {
            // Without capabilities as well, so that the same connection of the gateway is used.
            (Some(step), _) => {
                let params = json!({"name": step.tool, "arguments": step.arguments(&name)});
                let id = client.start_request_without_capabilities("tools/call", params).await?;
                text_of(&client.answer(id).await?).contains(&step.expected_text(&name))
            }
            (None, Some(tap)) => tap.is_withdrawn(&mark),
            (None, None) => bail!("no way to observe the cancellation"),
        };
        if is_cancelled {
            break;
        }
        ensure!(started.elapsed() < RESPONSE_TIMEOUT, "the server was not notified of the cancellation");
        sleep(POLL_INTERVAL).await;
    }
    ensure!(!client.has_answer(id), "response to a cancelled call");
    Ok(())
}

/// A tool asks its client for input, and returns the answer. Some servers list such a tool only to a client that can be
/// asked: then it is listed some time after the first call of the client, with a notification.
pub(super) async fn question(
    client: &mut MatrixClient,
    script: &FeatureScript,
    step: &ToolStep,
    method: &str,
) -> anyhow::Result<()> {
    if !client.has_tool(step.tool).await? {
        call(client, &script.call).await?;
        client.await_tool(step.tool).await?;
        client.clear_received();
    }
    call(client, step).await.with_context(|| format!("server requests {:?}", client.server_requests))?;
    let others: Vec<_> = client
        .server_requests
        .iter()
        .filter(|request| *request != method && *request != "roots/list")
        .collect();
    ensure!(others.is_empty(), "unexpected server requests {others:?}");
    Ok(())
}

/// Log messages of a tool arrive at the client that has set the level.
pub(super) async fn log(client: &mut MatrixClient, step: &ToolStep, expected: &str) -> anyhow::Result<()> {
    let expected = expected.replace("NAME", &client.own_name);
    let modern = client.kind.revision.is_modern();
    if !modern {
        client.request("logging/setLevel", json!({"level": "debug"})).await?;
    }
    let meta = if modern { json!({"io.modelcontextprotocol/logLevel": "debug"}) } else { json!({}) };
    run_step(client, step, meta).await?;
    let says = |params: &Value| params["data"].to_string().contains(&expected) && params["level"].is_string();
    client.wait_for_notification("notifications/message", says).await?;
    Ok(())
}
