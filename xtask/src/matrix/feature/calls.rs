//! Calls, and what is said during them.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::matrix::client::{Client, PATIENCE};
use crate::matrix::script::{Script, Step};
use crate::matrix::tap::Tap;

/// How often it is looked whether a server has heard of a cancellation.
const LOOK: Duration = Duration::from_millis(20);

const PROGRESS: &str = "notifications/progress";

/// How often a toggle is asked for until it is on. Others who share its server may turn it off meanwhile.
const TRIES: usize = 10;

pub(super) async fn call(client: &mut Client, step: &Step) -> anyhow::Result<()> {
    perform(client, step, json!({})).await
}

/// Calls the tool of a step, and expects what it says.
pub(super) async fn perform(client: &mut Client, step: &Step, meta: Value) -> anyhow::Result<()> {
    let name = client.own_name.clone();
    let (arguments, says) = (step.arguments(&name), step.says(&name));
    let mut text = String::new();
    for _ in 0..TRIES {
        text = client.call_with(step.tool, arguments.clone(), meta.clone()).await?;
        if text.contains(&says) {
            return Ok(());
        }
    }
    bail!("{} said {text:?} and not {says:?}", step.tool)
}

/// Progress comes with the token of the call, rises, and comes before the answer.
pub(super) async fn progress(client: &mut Client, step: &Step) -> anyhow::Result<()> {
    let token = format!("progress of {}", client.own_name);
    perform(client, step, json!({"progressToken": token})).await?;
    let mut last = f64::MIN;
    let told = client.noticed(PROGRESS);
    ensure!(!told.is_empty(), "no progress was told before the answer");
    for notice in told {
        ensure!(notice["progressToken"] == token, "the progress of another call: {notice}");
        let done = notice["progress"].as_f64().context("no number")?;
        ensure!(done > last, "progress of {done} after {last}");
        last = done;
    }
    Ok(())
}

/// A call that runs is cancelled, its server learns it, and nobody answers any more.
pub(super) async fn cancel(client: &mut Client, script: &Script, tap: Option<&Tap>) -> anyhow::Result<()> {
    let (step, name) = (&script.cancel, client.own_name.clone());
    let mark = format!("withdrawn by {name} over {:?}", client.kind.carrier);
    let meta = json!({"progressToken": name, "com.example/mark": mark});
    let params = json!({"name": step.tool, "arguments": step.arguments(&name), "_meta": meta});
    // Some servers ask for folders as soon as they are connected: what would be cancelled then is a request that has ended.
    let id = client.begin_unasked("tools/call", params).await?;
    client.notice(PROGRESS, |params| params["progressToken"] == *name).await.context("it does not run")?;
    client.cancel(id).await?;
    let begun = Instant::now();
    loop {
        let told = match (&script.cancelled, tap) {
            (Some(step), _) => {
                client.call(step.tool, step.arguments(&name)).await?.contains(&step.says(&name))
            }
            (None, Some(tap)) => tap.withdrawn(&mark),
            (None, None) => bail!("nobody can tell whether the server was told"),
        };
        if told {
            break;
        }
        ensure!(begun.elapsed() < PATIENCE, "the server does not learn of it");
        sleep(LOOK).await;
    }
    ensure!(!client.has_answer(id), "the call was answered after it was cancelled");
    Ok(())
}

/// A tool asks its client, and answers with what that said.
pub(super) async fn question(client: &mut Client, step: &Step, method: &str) -> anyhow::Result<()> {
    call(client, step).await.with_context(|| format!("asked {:?}", client.asked))?;
    let others: Vec<_> =
        client.asked.iter().filter(|asked| *asked != method && *asked != "roots/list").collect();
    ensure!(others.is_empty(), "asked {others:?}");
    Ok(())
}

/// What a tool logs is heard, by who wants to hear it.
pub(super) async fn log(client: &mut Client, step: &Step, logged: &str) -> anyhow::Result<()> {
    let logged = logged.replace("NAME", &client.own_name);
    let modern = client.kind.revision.is_modern();
    if !modern {
        client.request("logging/setLevel", json!({"level": "debug"})).await?;
    }
    let meta = if modern { json!({"io.modelcontextprotocol/logLevel": "debug"}) } else { json!({}) };
    perform(client, step, meta).await?;
    let says = |params: &Value| params["data"].to_string().contains(&logged) && params["level"].is_string();
    client.notice("notifications/message", says).await?;
    Ok(())
}
