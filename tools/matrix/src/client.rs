//! A client that implements one revision strictly, and rejects anything that its specification does not allow.

mod http;
mod link;
mod param_headers;
mod server_requests;
mod sse;
mod stdio;
mod stream;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, timeout};

use link::{ClientLink, InboxMessage, MessageOrigin};

/// Maximum time of anything that does not wait for a person.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time between two requests of a list that is not complete yet.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of rounds of one request of a modern client.
const MAX_ROUNDS: usize = 5;

pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The revisions of the protocol, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum McpRevision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl McpRevision {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// `true` if the revision has no sessions.
    pub(crate) fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// The client capabilities of this revision.
    fn capabilities(self) -> Value {
        let mut capabilities = json!({"roots": {}, "sampling": {}});
        if self >= Self::V2025_06_18 {
            capabilities["elicitation"] = json!({});
        }
        if self.is_modern() {
            capabilities["extensions"] = json!({TASKS_EXTENSION: {}});
        }
        capabilities
    }
}

/// The transport of a client or server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatrixTransport {
    /// HTTP+SSE, of 2024-11-05.
    Sse,
    /// Streamable HTTP.
    Http,
    /// `toolyard stdio`.
    Stdio,
}

/// A kind of client: a row of the matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientKind {
    pub(crate) revision: McpRevision,
    pub(crate) carrier: MatrixTransport,
}

impl fmt::Display for ClientKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.carrier {
            MatrixTransport::Sse => "HTTP+SSE",
            MatrixTransport::Http => "streamable HTTP",
            MatrixTransport::Stdio => "stdio",
        };
        write!(out, "{} over {transport}", self.revision.name())
    }
}

/// The endpoints of the gateway for all transports.
#[derive(Clone, Copy)]
pub(crate) struct GatewayAccess<'a> {
    pub(crate) address: std::net::SocketAddr,
    /// Manifest for `toolyard stdio`.
    pub(crate) manifest: &'a Path,
    pub(crate) log: &'a Path,
}

/// A connected client.
pub(crate) struct MatrixClient {
    pub(crate) kind: ClientKind,
    /// The server's description of itself.
    pub(crate) about: Value,
    /// The unique name that this client gives in its answers to server requests.
    pub(crate) own_name: String,
    /// Methods of the server requests received.
    pub(crate) server_requests: Vec<String>,
    declared: Value,
    link: ClientLink,
    inbox: UnboundedReceiver<InboxMessage>,
    answers: HashMap<u64, Value>,
    ended: Vec<u64>,
    notifications: Vec<Value>,
    last_id: u64,
}

impl MatrixClient {
    /// Connects and initializes.
    pub(crate) async fn open(
        kind: ClientKind,
        own_name: &str,
        access: GatewayAccess<'_>,
    ) -> anyhow::Result<Self> {
        let capabilities = kind.revision.capabilities();
        let (link, inbox) = ClientLink::open(kind, access).await?;
        let mut client = Self {
            kind,
            about: Value::Null,
            own_name: own_name.to_owned(),
            server_requests: Vec::new(),
            declared: capabilities,
            link,
            inbox,
            answers: HashMap::new(),
            ended: Vec::new(),
            notifications: Vec::new(),
            last_id: 0,
        };
        client.about = client.handshake().await.context("handshake")?;
        Ok(client)
    }

    /// Waits until a tool is listed. The first list of the default configuration does not wait for a server that starts
    /// slowly, and a user's client would list again after the notification of the change.
    pub(crate) async fn await_tool(&mut self, name: &str) -> anyhow::Result<()> {
        let started = Instant::now();
        while !self.has_tool(name).await? {
            ensure!(started.elapsed() < RESPONSE_TIMEOUT, "{name} is not listed in time");
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Returns `true` if a tool is listed.
    pub(crate) async fn has_tool(&mut self, name: &str) -> anyhow::Result<bool> {
        let mut params = json!({});
        loop {
            let page = self.request("tools/list", params).await?;
            let tools = page["tools"].as_array().context("no list")?;
            if tools.iter().any(|tool| tool["name"] == name) {
                return Ok(true);
            }
            match page["nextCursor"].as_str() {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok(false),
            }
        }
    }

    async fn handshake(&mut self) -> anyhow::Result<Value> {
        let revision = self.kind.revision;
        if revision.is_modern() {
            let server_info = self.request("server/discover", json!({})).await?;
            let supported = server_info["supportedVersions"].as_array().cloned().unwrap_or_default();
            ensure!(
                supported.contains(&json!(revision.name())),
                "the server does not support {}: {server_info}",
                revision.name()
            );
            return Ok(server_info);
        }
        let info = json!({"name": self.own_name, "version": "1"});
        let version = revision.name();
        let params = json!({"protocolVersion": version, "capabilities": self.declared, "clientInfo": info});
        let about = self.request("initialize", params).await?;
        ensure!(about["protocolVersion"] == version, "requested {version}, got {}", about["protocolVersion"]);
        self.link.set_revision(revision);
        self.notify("notifications/initialized", json!({})).await?;
        self.link.listen().await?;
        Ok(about)
    }

    /// Sends a request and returns its result, after all rounds of a modern request.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let mut sent = params.clone();
        for _ in 0..MAX_ROUNDS {
            let id = self.start_request(method, sent).await?;
            let result = self.answer(id).await.with_context(|| method.to_owned())?;
            if method == "tools/list" {
                self.link.learn_tools(&result)?;
            }
            if result["resultType"] != "input_required" {
                return Ok(result);
            }
            sent = self.answered(&params, &result)?;
        }
        bail!("{method} did not complete in {MAX_ROUNDS} rounds")
    }

    /// Calls a tool and returns its text.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> anyhow::Result<String> {
        self.call_with(tool, arguments, json!({})).await
    }

    /// As [`MatrixClient::call`], with members of `_meta`.
    pub(crate) async fn call_with(
        &mut self,
        tool: &str,
        arguments: Value,
        meta: Value,
    ) -> anyhow::Result<String> {
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let result = self.request("tools/call", params).await?;
        let text = text_of(&result);
        ensure!(result["isError"] != true, "{tool} failed: {text}");
        Ok(text)
    }

    /// Sends a request without waiting for its response.
    pub(crate) async fn start_request(&mut self, method: &str, mut params: Value) -> anyhow::Result<u64> {
        self.last_id += 1;
        let id = self.last_id;
        if self.kind.revision.is_modern() {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = self.kind.revision.name().into();
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": self.own_name, "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = self.declared.clone();
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.link.send_request(id, method, &message).await?;
        Ok(id)
    }

    /// As [`MatrixClient::start_request`], without capabilities in the request, so that the server cannot ask for
    /// input: the rounds of such a request have other IDs.
    pub(crate) async fn start_request_without_capabilities(
        &mut self,
        method: &str,
        params: Value,
    ) -> anyhow::Result<u64> {
        let capabilities = std::mem::replace(&mut self.declared, json!({}));
        let started = self.start_request(method, params).await;
        self.declared = capabilities;
        started
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) -> anyhow::Result<()> {
        self.link.notify(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await
    }

    /// The result of a request.
    pub(crate) async fn answer(&mut self, id: u64) -> anyhow::Result<Value> {
        loop {
            if let Some(mut response) = self.answers.remove(&id) {
                if !response["error"].is_null() {
                    bail!("error {}", response["error"]);
                }
                let result = response["result"].take();
                ensure!(result.is_object(), "no result and no error: {response}");
                let modern = self.kind.revision.is_modern();
                ensure!(!modern || result["resultType"].is_string(), "no resultType: {result}");
                return Ok(result);
            }
            ensure!(!self.ended.contains(&id), "the stream ended without a response");
            self.receive().await.context("no response")?;
        }
    }

    /// The first matching notification, received or awaited.
    pub(crate) async fn wait_for_notification(
        &mut self,
        method: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        loop {
            let matches = |notice: &Value| notice["method"] == method && fits(&notice["params"]);
            if let Some(index) = self.notifications.iter().position(matches) {
                return Ok(self.notifications.remove(index)["params"].take());
            }
            self.receive()
                .await
                .with_context(|| format!("no {method}; received {}", self.notification_texts()))?;
        }
    }

    /// Parameters of the received notifications with this method.
    pub(crate) fn notifications_of(&self, method: &str) -> Vec<&Value> {
        let fits = self.notifications.iter().filter(|notice| notice["method"] == method);
        fits.map(|notice| &notice["params"]).collect()
    }

    /// Drops all received notifications and server requests, to tell them from later ones.
    pub(crate) fn clear_received(&mut self) {
        self.notifications.clear();
        self.server_requests.clear();
    }

    /// Cancels a request in the way of this revision and transport.
    pub(crate) async fn cancel(&mut self, id: u64) -> anyhow::Result<()> {
        if self.kind.revision.is_modern() && self.kind.carrier == MatrixTransport::Http {
            self.link.drop_stream(id);
            return Ok(());
        }
        self.notify("notifications/cancelled", json!({"requestId": id, "reason": "cancelled by the test"}))
            .await
    }

    /// `true` if the response to a request has arrived.
    pub(crate) fn has_answer(&self, id: u64) -> bool {
        self.answers.contains_key(&id)
    }

    fn notification_texts(&self) -> String {
        let notices = self.notifications.iter().map(Value::to_string);
        notices.collect::<Vec<_>>().join(" ")
    }

    /// Receives and handles the next message.
    async fn receive(&mut self) -> anyhow::Result<()> {
        let received = timeout(RESPONSE_TIMEOUT, self.inbox.recv()).await.context("no message in time")?;
        let InboxMessage { origin, message } = received.context("the connection is closed")?;
        let Some(message) = message? else {
            if let MessageOrigin::Request(id) = origin {
                self.ended.push(id);
            }
            return Ok(());
        };
        ensure!(message["jsonrpc"] == "2.0", "no JSON-RPC message: {message}");
        match (message["method"].as_str(), message["id"].as_u64()) {
            (None, Some(id)) => {
                ensure!(id <= self.last_id, "response without a request: {message}");
                ensure!(self.answers.insert(id, message).is_none(), "second response to {id}");
            }
            (Some(method), _) if !message["id"].is_null() => {
                let answer = self.answer_to(method, &message)?;
                self.link.notify(&answer).await?;
            }
            (Some(_), _) => self.notifications.push(message),
            (None, None) => bail!("no request, notification or response: {message}"),
        }
        Ok(())
    }
}

/// The text of a tool result.
pub(crate) fn text_of(result: &Value) -> String {
    let content = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    content.iter().filter_map(|content| content["text"].as_str()).collect::<Vec<_>>().join("\n")
}
