//! A gateway with API keys, and requests to it.

use std::sync::Arc;

use serde_json::Value;
use toolyard_core::store::Store;
use toolyard_server::RunningGateway;
use toolyard_server::keys::{NewApiKey, record};
use toolyard_store::{DatabaseLocation, StoreOptions};
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::{WireConnection, WireResponse};

use crate::gateway::{manifest, started_on};

/// A gateway in front of two servers, and its store.
pub(crate) struct KeyedGateway {
    pub(crate) running: RunningGateway,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) upstreams: [TestUpstream; 2],
}

const ADD: &str = r#"{"name":"add","description":"Adds.","inputSchema":{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]},"outputSchema":{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}}"#;
const SEARCH: &str = r#"{"name":"search","description":"Searches.","inputSchema":{"type":"object"}}"#;
const DELETE: &str = r#"{"name":"delete"}"#;

/// The answers of the servers: `add` returns an invalid structure for 13, `delete` fails, and the connection breaks if
/// the arguments contain `break`.
fn answer(request: &ReceivedRequest) -> ScriptedReply {
    if request.body.is_empty() {
        return ScriptedReply::http(200, "", "");
    }
    let (name, params) = (request.params().get("name").plain(), request.params().text());
    if params.contains("break") {
        return ScriptedReply::raw("");
    }
    ScriptedReply::result(
        request,
        &match &*name {
            "add" if params.contains("13") => r#"{"content":[],"structuredContent":{"sum":"?"}}"#.to_owned(),
            "add" => r#"{"content":[{"type":"text","text":"2"}],"structuredContent":{"sum":2}}"#.to_owned(),
            "delete" => r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#.to_owned(),
            _ => r#"{"content":[{"type":"text","text":"found"}]}"#.to_owned(),
        },
    )
}

pub(crate) async fn memory() -> Arc<dyn Store> {
    toolyard_store::open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap()
}

impl KeyedGateway {
    /// Starts a gateway; `process` is the content of the `Toolyard` document.
    pub(crate) async fn start(process: &str) -> Self {
        Self::with(memory().await, process).await
    }

    pub(crate) async fn with(store: Arc<dyn Store>, process: &str) -> Self {
        let math = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[ADD], answer));
        let web = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Legacy, &[SEARCH, DELETE], answer));
        let handlers = [("math", math.address, "price: '0.5',"), ("web", web.address, "")];
        let running = started_on(&store, &manifest(&handlers, process)).await;
        Self { running, store, upstreams: [math, web] }
    }

    /// Creates a key from the JSON of its request, and returns the text of the key.
    pub(crate) async fn key(&self, new_key: &str) -> String {
        let new_key: NewApiKey = serde_json::from_str(new_key).unwrap();
        record::create(&*self.store, new_key).await.unwrap().1.reveal()
    }

    /// Creates a key with these scopes.
    pub(crate) async fn key_for(&self, scopes: &str) -> String {
        let scopes: Vec<_> = scopes.split(' ').collect();
        self.key(&serde_json::json!({"name": "a key", "scopes": scopes}).to_string()).await
    }

    /// Sends a request, with the key if it is not empty.
    pub(crate) async fn ask(&self, key: &str, line: &str, body: &str) -> WireResponse {
        self.ask_with(key, line, "", body).await
    }

    /// Sends a request with additional headers, which are complete lines with their line ends.
    pub(crate) async fn ask_with(&self, key: &str, line: &str, headers: &str, body: &str) -> WireResponse {
        let key = if key.is_empty() { String::new() } else { format!("authorization: Bearer {key}\r\n") };
        let body = match body {
            "" => "content-length: 0\r\n\r\n".to_owned(),
            body => format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len()),
        };
        let mut connection = WireConnection::open(self.running.address()).await;
        let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\n{key}{headers}");
        connection.send(format!("{head}{body}").as_bytes()).await;
        connection.response().await.expect("a response")
    }

    /// The status with the code of a problem, or with the JSON value at the pointer `pick`.
    pub(crate) async fn short(&self, key: &str, line: &str, body: &str, pick: &str) -> String {
        short(&self.ask(key, line, body).await, pick)
    }
}

/// The status with the code of a problem, or with the JSON value at the pointer `pick`.
pub(crate) fn short(response: &WireResponse, pick: &str) -> String {
    let status = response.head.status();
    let body: Value = serde_json::from_str(&response.body).unwrap_or_default();
    match body.get("code").filter(|_| status >= 400) {
        Some(code) => format!("{status} {}", code.as_str().unwrap_or_default()),
        None => format!("{status} {}", body.pointer(pick).unwrap_or(&Value::Null)),
    }
}
