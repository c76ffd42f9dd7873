//! A gateway with keys, and who asks it something.

use std::sync::Arc;

use serde_json::Value;
use toolyard_core::store::Store;
use toolyard_server::keys::{NewKey, record};
use toolyard_server::{Options, Running};
use toolyard_store::{Location, StoreOptions};

use crate::client::{Connection, Response};
use crate::manifest;
use crate::upstream::{Era, Received, Reply, Server, Upstream};

/// A gateway in front of two servers, and its store.
pub(crate) struct Yard {
    pub(crate) running: Running,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) upstreams: [Upstream; 2],
}

const ADD: &str = r#"{"name":"add","description":"Adds.","inputSchema":{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]},"outputSchema":{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}}"#;
const SEARCH: &str = r#"{"name":"search","description":"Searches.","inputSchema":{"type":"object"}}"#;
const DELETE: &str = r#"{"name":"delete"}"#;

/// What the servers answer: `add` the wrong structure for 13, `delete` a failure, and nothing where `break` is among the
/// arguments.
fn answer(request: &Received) -> Reply {
    if request.body.is_empty() {
        return Reply::http(200, "", "");
    }
    let (name, params) = (request.params().get("name").plain(), request.params().text());
    if params.contains("break") {
        return Reply::raw("");
    }
    Reply::result(
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
    toolyard_store::open(&StoreOptions::at(Location::Memory)).await.unwrap()
}

impl Yard {
    /// `process` is what the `Toolyard` document says.
    pub(crate) async fn start(process: &str) -> Self {
        Self::with(memory().await, process).await
    }

    pub(crate) async fn with(store: Arc<dyn Store>, process: &str) -> Self {
        let math = Upstream::start(Server::new(Era::Modern, &[ADD], answer));
        let web = Upstream::start(Server::new(Era::Legacy, &[SEARCH, DELETE], answer));
        let handlers = [("math", math.address, "price: '0.5',"), ("web", web.address, "")];
        let options = Options { store: Some(store.clone()), ..Options::default() };
        let running = toolyard_server::start(&manifest(&handlers, process), &options).await.unwrap();
        running.gateway().settled().await;
        Self { running, store, upstreams: [math, web] }
    }

    /// A key, by what its record is to say. Gives its text.
    pub(crate) async fn key(&self, wanted: &str) -> String {
        let wanted: NewKey = serde_json::from_str(wanted).unwrap();
        record::create(&*self.store, wanted).await.unwrap().1.reveal()
    }

    /// A key with these scopes.
    pub(crate) async fn key_for(&self, scopes: &str) -> String {
        let scopes: Vec<_> = scopes.split(' ').collect();
        self.key(&serde_json::json!({"name": "a key", "scopes": scopes}).to_string()).await
    }

    /// Sends a request; `key` is shown where it is not empty.
    pub(crate) async fn ask(&self, key: &str, line: &str, body: &str) -> Response {
        self.ask_with(key, line, "", body).await
    }

    /// The same with more headers: lines with their ends.
    pub(crate) async fn ask_with(&self, key: &str, line: &str, headers: &str, body: &str) -> Response {
        let key = if key.is_empty() { String::new() } else { format!("authorization: Bearer {key}\r\n") };
        let body = match body {
            "" => "content-length: 0\r\n\r\n".to_owned(),
            body => format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len()),
        };
        let mut connection = Connection::open(self.running.address()).await;
        let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\n{key}{headers}");
        connection.send(format!("{head}{body}").as_bytes()).await;
        connection.response().await.expect("a response")
    }

    /// The status and the code of a problem, or what `pick` finds in an answer.
    pub(crate) async fn short(&self, key: &str, line: &str, body: &str, pick: &str) -> String {
        short(&self.ask(key, line, body).await, pick)
    }
}

/// The status and the code of a problem, or what is at a place in an answer.
pub(crate) fn short(response: &Response, pick: &str) -> String {
    let status = response.head.status();
    let body: Value = serde_json::from_str(&response.body).unwrap_or_default();
    match body.get("code").filter(|_| status >= 400) {
        Some(code) => format!("{status} {}", code.as_str().unwrap_or_default()),
        None => format!("{status} {}", body.pointer(pick).unwrap_or(&Value::Null)),
    }
}
