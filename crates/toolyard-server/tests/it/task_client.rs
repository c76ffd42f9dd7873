//! A modern client whose call has become a task.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{sleep, timeout};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use crate::keyed_gateway::KeyedGateway;

/// Meta data of a modern client that takes tasks.
pub(crate) const TAKING_TASKS: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

/// A client with one task.
pub(crate) struct TaskClient {
    pub(crate) client: WireClient,
    /// Id of the task.
    pub(crate) task: Value,
    meta: &'static str,
}

impl TaskClient {
    /// Calls a tool with these meta data, which has to become a task.
    pub(crate) async fn start(
        gateway: &KeyedGateway,
        tool: &str,
        arguments: &Value,
        meta: &'static str,
    ) -> Self {
        let mut client = WireClient::new(gateway.running.address(), ClientMode::Modern).await;
        let params = format!(r#"{{"name":"{tool}","arguments":{arguments},{meta}}}"#);
        let started: Value =
            serde_json::from_str(&client.ask("tools/call", &params).await.body).expect("JSON");
        let result = &started["result"];
        // It may request input already.
        let is_open = result["status"] == "working" || result["status"] == "input_required";
        assert!(result["resultType"] == "task" && is_open, "{result}");
        Self { client, task: result["taskId"].clone(), meta }
    }

    /// Sends a request about the task.
    pub(crate) async fn ask(&mut self, method: &str, more: &str) -> Value {
        let (id, meta) = (self.task.as_str().expect("an id"), self.meta);
        let headers = format!("mcp-name: {id}\r\n");
        self.client.send(&headers, method, &format!(r#"{{"taskId":"{id}"{more},{meta}}}"#)).await;
        serde_json::from_str(&self.client.answered().await.body).expect("JSON")
    }

    /// Polls until the task has a status, and returns it.
    pub(crate) async fn status(&mut self, expected: &str) -> Value {
        let polling = async {
            loop {
                let task = self.ask("tasks/get", "").await["result"].take();
                if task["status"] == expected {
                    return task;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(60), polling).await.expect("the status")
    }
}
