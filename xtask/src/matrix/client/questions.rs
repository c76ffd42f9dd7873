//! What a client answers to a server.

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::Client;

impl Client {
    /// The response to a request of a server, which only a session can send.
    pub(super) fn answer_to(&mut self, method: &str, request: &Value) -> anyhow::Result<Value> {
        let modern = self.kind.revision.is_modern();
        ensure!(!modern, "a server cannot send requests in this revision: {request}");
        let result = self.take_question(method, &request["params"])?;
        Ok(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
    }

    /// The parameters of the next round: as before, with answers to all that was asked.
    pub(crate) fn answered(&mut self, params: &Value, asked: &Value) -> anyhow::Result<Value> {
        let mut next = params.clone();
        if let Some(requests) = asked["inputRequests"].as_object() {
            let mut responses = json!({});
            for (key, request) in requests {
                let method = request["method"].as_str().context("a question without a method")?;
                responses[key] = self.take_question(method, &request["params"])?;
            }
            next["inputResponses"] = responses;
        }
        ensure!(
            asked["inputRequests"].is_object() || asked["requestState"].is_string(),
            "asked for nothing: {asked}"
        );
        if let Some(state) = asked["requestState"].as_str() {
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
            _ => bail!("asked for {method}"),
        };
        ensure!(self.declared[capability].is_object(), "asked for {method}, which was not declared");
        self.asked.push(method.to_owned());
        let name = &self.own_name;
        Ok(match capability {
            "elicitation" => {
                ensure!(params["message"].is_string(), "a question without a message: {params}");
                json!({"action": "accept", "content": filled(params, name)})
            }
            "sampling" => {
                ensure!(params["messages"].is_array(), "a prompt without messages: {params}");
                let content = json!({"type": "text", "text": name});
                json!({"role": "assistant", "model": "none", "content": content, "stopReason": "endTurn"})
            }
            _ => json!({"roots": [{"uri": format!("file:///{name}"), "name": name}]}),
        })
    }
}

/// A form that is sent as it came, but for the name: every other field with a default has that.
fn filled(params: &Value, name: &str) -> Value {
    let mut content = json!({"name": name});
    for (field, schema) in params["requestedSchema"]["properties"].as_object().into_iter().flatten() {
        if let (false, Some(default)) = (field == "name", schema.get("default")) {
            content[field] = default.clone();
        }
    }
    content
}
