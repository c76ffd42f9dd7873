//! Tasks: calls that go on after their response.

use std::time::Duration;

use anyhow::{bail, ensure};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::client::{MatrixClient, text_of};
use crate::script::ToolStep;

/// Maximum time of a task: longer than those of these servers take.
const TASK_LIMIT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A call becomes a task, which is polled until it completes (2026-07-28, extensions/tasks).
pub(super) async fn task(client: &mut MatrixClient, step: &ToolStep) -> anyhow::Result<()> {
    let name = client.own_name.clone();
    let params = json!({"name": step.tool, "arguments": step.arguments(&name)});
    let task = client.request("tools/call", params).await?;
    ensure!(task["resultType"] == "task", "no task: {task}");
    let started = Instant::now();
    loop {
        let now = client.request("tasks/get", json!({"taskId": task["taskId"]})).await?;
        match now["status"].as_str() {
            Some("working") => ensure!(started.elapsed() < TASK_LIMIT, "the task does not complete: {now}"),
            Some("input_required") => {
                let answers = client.answered(&json!({"taskId": task["taskId"]}), &now)?;
                client.request("tasks/update", answers).await?;
            }
            Some("completed") => {
                let text = text_of(&now["result"]);
                ensure!(text.contains(&step.expected_text(&name)), "unexpected result of the task: {now}");
                return Ok(());
            }
            _ => bail!("{now}"),
        }
        sleep(POLL_INTERVAL).await;
    }
}
