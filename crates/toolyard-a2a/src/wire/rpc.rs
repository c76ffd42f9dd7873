//! The JSON-RPC binding: names of methods, requests, responses and errors.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ProtocolVersion;

/// Path of the agent card below the origin of an agent.
pub const CARD_PATH: &str = "/.well-known/agent-card.json";

/// Name of the header with the version of the protocol.
pub const VERSION_HEADER: &str = "a2a-version";

/// A method of the protocol that is used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Sends a message.
    SendMessage,
    /// Sends a message, and receives the events of its task.
    SendStreamingMessage,
    /// Returns a task.
    GetTask,
    /// Returns the tasks of the client.
    ListTasks,
    /// Cancels a task.
    CancelTask,
    /// Receives the further events of a task.
    SubscribeToTask,
    /// Adds a URL that is notified of a task.
    CreatePushConfig,
    /// Returns such a URL.
    GetPushConfig,
    /// Returns all of them.
    ListPushConfigs,
    /// Removes one.
    DeletePushConfig,
}

/// All methods with their names in version 1.0 and in 0.3.
const METHODS: [(Method, &str, &str); 10] = [
    (Method::SendMessage, "SendMessage", "message/send"),
    (Method::SendStreamingMessage, "SendStreamingMessage", "message/stream"),
    (Method::GetTask, "GetTask", "tasks/get"),
    // Version 0.3 has no such method in this binding.
    (Method::ListTasks, "ListTasks", "tasks/list"),
    (Method::CancelTask, "CancelTask", "tasks/cancel"),
    (Method::SubscribeToTask, "SubscribeToTask", "tasks/resubscribe"),
    (Method::CreatePushConfig, "CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"),
    (Method::GetPushConfig, "GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get"),
    (Method::ListPushConfigs, "ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list"),
    (Method::DeletePushConfig, "DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete"),
];

impl Method {
    /// Returns the name in a version.
    #[must_use]
    pub fn name(self, version: ProtocolVersion) -> &'static str {
        let row = METHODS.iter().find(|(method, ..)| *method == self);
        row.map_or("", |(_, v1, v03)| if version == ProtocolVersion::V1 { v1 } else { v03 })
    }

    /// Returns the method of a name, and the version that has this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<(Self, ProtocolVersion)> {
        METHODS.iter().find_map(|(method, v1, v03)| match name {
            name if name == *v1 => Some((*method, ProtocolVersion::V1)),
            name if name == *v03 => Some((*method, ProtocolVersion::V03)),
            _ => None,
        })
    }
}

/// Codes of errors.
pub mod code {
    /// The body is no JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The body is no request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters are invalid.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The agent has failed.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// There is no such task.
    pub const TASK_NOT_FOUND: i64 = -32001;
    /// The task has ended.
    pub const TASK_NOT_CANCELABLE: i64 = -32002;
    /// The agent does not notify URLs.
    pub const PUSH_NOT_SUPPORTED: i64 = -32003;
    /// The agent does not do this.
    pub const UNSUPPORTED_OPERATION: i64 = -32004;
    /// The version is not spoken.
    pub const VERSION_NOT_SUPPORTED: i64 = -32009;
}

/// An error of JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// Code of the error.
    pub code: i64,
    /// Message for people.
    #[serde(default)]
    pub message: String,
}

impl RpcError {
    /// Returns an error.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// A response that is none of JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// The agent has refused the request.
    #[error(transparent)]
    Refused(RpcError),
    /// The text is no response.
    #[error("the response is not JSON-RPC")]
    Malformed,
}

/// Returns the text of a request.
#[must_use]
pub fn request(method: Method, version: ProtocolVersion, id: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method.name(version), "params": params}).to_string()
}

/// Returns the result of a response.
///
/// # Errors
/// If it is an error, or no response.
pub fn result(text: &[u8]) -> Result<Value, ResponseError> {
    let response = serde_json::from_slice(text).map_err(|_| ResponseError::Malformed)?;
    let Value::Object(mut response) = response else { return Err(ResponseError::Malformed) };
    if let Some(error) = response.remove("error").filter(|error| !error.is_null()) {
        let error = serde_json::from_value(error).map_err(|_| ResponseError::Malformed)?;
        return Err(ResponseError::Refused(error));
    }
    response.remove("result").ok_or(ResponseError::Malformed)
}

/// Returns the text of a response.
#[must_use]
pub fn response(id: &Value, result: Result<Value, RpcError>) -> String {
    let response = match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    };
    response.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_responses() {
        let check = |text: &str, expected: &str| {
            let result = match result(text.as_bytes()) {
                Ok(result) => result.to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(result, expected, "{text}");
        };
        check(r#"{"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}"#, r#"{"a":1}"#);
        check(r#"{"jsonrpc": "2.0", "id": 1, "result": 1, "error": null}"#, "1");
        check(
            r#"{"id": 1, "error": {"code": -32001, "message": "Task not found"}}"#,
            "Task not found (-32001)",
        );
        check(r#"{"error": {"code": -1}}"#, " (-1)");
        check(r#"{"error": "no"}"#, "the response is not JSON-RPC");
        check("{}", "the response is not JSON-RPC");
        check("[]", "the response is not JSON-RPC");
        check("<html>", "the response is not JSON-RPC");
    }

    #[test]
    fn names_of_methods() {
        assert_eq!(Method::parse("SendMessage"), Some((Method::SendMessage, ProtocolVersion::V1)));
        assert_eq!(Method::parse("message/send"), Some((Method::SendMessage, ProtocolVersion::V03)));
        assert_eq!(Method::parse("sendMessage"), None);
        assert_eq!(Method::GetTask.name(ProtocolVersion::V03), "tasks/get");
    }
}
