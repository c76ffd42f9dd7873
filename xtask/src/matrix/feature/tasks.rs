//! Calls that go on after their answer.

use std::time::Duration;

use anyhow::{bail, ensure};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::matrix::client::{Client, text_of};
use crate::matrix::script::Step;

/// The longest that a task of these servers takes, and then some.
const LIMIT: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(100);

/// A call becomes a task, which is asked after until it is over (2026-07-28, extensions/tasks).
pub(super) async fn task(client: &mut Client, step: &Step) -> anyhow::Result<()> {
    let name = client.own_name.clone();
    let params = json!({"name": step.tool, "arguments": step.arguments(&name)});
    let task = client.request("tools/call", params).await?;
    ensure!(task["resultType"] == "task", "no task: {task}");
    let begun = Instant::now();
    loop {
        let now = client.request("tasks/get", json!({"taskId": task["taskId"]})).await?;
        match now["status"].as_str() {
            Some("working") => ensure!(begun.elapsed() < LIMIT, "it does not end: {now}"),
            Some("input_required") => {
                let answers = client.answered(&json!({"taskId": task["taskId"]}), &now)?;
                client.request("tasks/update", answers).await?;
            }
            Some("completed") => {
                let text = text_of(&now["result"]);
                ensure!(text.contains(&step.says(&name)), "it ended with {now}");
                return Ok(());
            }
            _ => bail!("{now}"),
        }
        sleep(LOOK).await;
    }
}
