//! The responses of a client to server requests.

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::MatrixClient;

impl MatrixClient {
    /// The response to a server request, which only sessions have.
    pub(super) fn answer_to(&mut self, method: &str, request: &Value) -> anyhow::Result<Value> {
        let modern = self.kind.revision.is_modern();
        ensure!(!modern, "a server cannot send requests in this revision: {request}");
        let result = self.take_question(method, &request["params"])?;
        Ok(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
    }

    /// The parameters of the next round: the original ones, with answers to all input requests.
    pub(crate) fn answered(&mut self, params: &Value, incomplete: &Value) -> anyhow::Result<Value> {
        let mut next = params.clone();
        if let Some(requests) = incomplete["inputRequests"].as_object() {
            let mut responses = json!({});
            for (key, request) in requests {
                let method = request["method"].as_str().context("input request without a method")?;
                responses[key] = self.take_question(method, &request["params"])?;
            }
            next["inputResponses"] = responses;
        }
        ensure!(
            incomplete["inputRequests"].is_object() || incomplete["requestState"].is_string(),
            "no input requests and no state: {incomplete}"
        );
        if let Some(state) = incomplete["requestState"].as_str() {
            next["requestState"] = state.into();
        }
        Ok(next)
    }

    fn take_question(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let capability = match method {
            "ping" => return Ok(json!({})),
            "elicitation/create" => "elicitation",
            "sampling/createMessage" => "sampling",
            "roots/list" => "roots",
            _ => bail!("unexpected server request {method}"),
        };
        ensure!(self.declared[capability].is_object(), "server request {method} without the capability");
        self.server_requests.push(method.to_owned());
        let name = &self.own_name;
        Ok(match capability {
            "elicitation" => {
                ensure!(params["message"].is_string(), "elicitation without a message: {params}");
                json!({"action": "accept", "content": filled(params, name)})
            }
            "sampling" => {
                ensure!(params["messages"].is_array(), "sampling without messages: {params}");
                let content = json!({"type": "text", "text": name});
                json!({"role": "assistant", "model": "none", "content": content, "stopReason": "endTurn"})
            }
            _ => json!({"roots": [{"uri": format!("file:///{name}"), "name": name}]}),
        })
    }
}

/// The form with its defaults, and the name of the client.
fn filled(params: &Value, name: &str) -> Value {
    let mut content = json!({"name": name});
    for (field, schema) in params["requestedSchema"]["properties"].as_object().into_iter().flatten() {
        if let (false, Some(default)) = (field == "name", schema.get("default")) {
            content[field] = default.clone();
        }
    }
    content
}
