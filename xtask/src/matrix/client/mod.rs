//! A client that speaks one revision exactly as its specification has it, and refuses what that has not.

mod http;
mod link;
mod params;
mod questions;
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
use tokio::time::timeout;

use link::{Heard, Link, Origin};

/// How long anything may take that is not waiting for a person.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How often a modern server may ask before it answers.
const ROUNDS: usize = 5;

pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The revisions of the protocol, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl Revision {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Whether every request stands for itself.
    pub(crate) fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// What a client of this revision can declare.
    fn capabilities(self) -> Value {
        let mut declared = json!({"roots": {}, "sampling": {}});
        if self >= Self::V2025_06_18 {
            declared["elicitation"] = json!({});
        }
        if self.is_modern() {
            declared["extensions"] = json!({TASKS: {}});
        }
        declared
    }
}

/// What carries a client's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// HTTP+SSE, of 2024-11-05.
    Sse,
    /// Streamable HTTP.
    Http,
    /// `toolyard stdio`.
    Stdio,
}

/// A kind of client: a row of the matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) revision: Revision,
    pub(crate) carrier: Carrier,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let carrier = match self.carrier {
            Carrier::Sse => "HTTP+SSE",
            Carrier::Http => "streamable HTTP",
            Carrier::Stdio => "stdio",
        };
        write!(out, "{} over {carrier}", self.revision.name())
    }
}

/// Where the gateway is for each of the carriers.
#[derive(Clone, Copy)]
pub(crate) struct Door<'a> {
    pub(crate) address: std::net::SocketAddr,
    /// The manifest that `toolyard stdio` is started with.
    pub(crate) manifest: &'a Path,
    pub(crate) log: &'a Path,
}

/// One client, connected.
pub(crate) struct Client {
    pub(crate) kind: Kind,
    /// What the server said of itself.
    pub(crate) about: Value,
    /// What this client answers to questions; nobody else answers so.
    pub(crate) own_name: String,
    /// What was asked, by method.
    pub(crate) asked: Vec<String>,
    declared: Value,
    link: Link,
    inbox: UnboundedReceiver<Heard>,
    answers: HashMap<u64, Value>,
    ended: Vec<u64>,
    notices: Vec<Value>,
    last_id: u64,
}

impl Client {
    /// Connects and shakes hands.
    pub(crate) async fn open(kind: Kind, own_name: &str, door: Door<'_>) -> anyhow::Result<Self> {
        let declared = kind.revision.capabilities();
        let (link, inbox) = Link::open(kind, door).await?;
        let mut client = Self {
            kind,
            about: Value::Null,
            own_name: own_name.to_owned(),
            asked: Vec::new(),
            declared,
            link,
            inbox,
            answers: HashMap::new(),
            ended: Vec::new(),
            notices: Vec::new(),
            last_id: 0,
        };
        client.about = client.shake_hands().await.context("handshake")?;
        Ok(client)
    }

    async fn shake_hands(&mut self) -> anyhow::Result<Value> {
        let revision = self.kind.revision;
        if revision.is_modern() {
            let about = self.request("server/discover", json!({})).await?;
            let supported = about["supportedVersions"].as_array().cloned().unwrap_or_default();
            ensure!(
                supported.contains(&json!(revision.name())),
                "{} is not offered: {about}",
                revision.name()
            );
            return Ok(about);
        }
        let info = json!({"name": self.own_name, "version": "1"});
        let version = revision.name();
        let params = json!({"protocolVersion": version, "capabilities": self.declared, "clientInfo": info});
        let about = self.request("initialize", params).await?;
        ensure!(
            about["protocolVersion"] == version,
            "asked for {version} and got {}",
            about["protocolVersion"]
        );
        self.link.agree(revision);
        self.tell("notifications/initialized", json!({})).await?;
        self.link.listen().await?;
        Ok(about)
    }

    /// A request and its result, after all the rounds that a modern server makes of it.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let mut sent = params.clone();
        for _ in 0..ROUNDS {
            let id = self.begin(method, sent).await?;
            let result = self.answer(id).await.with_context(|| method.to_owned())?;
            if method == "tools/list" {
                self.link.learn(&result)?;
            }
            if result["resultType"] != "input_required" {
                return Ok(result);
            }
            sent = self.answered(&params, &result)?;
        }
        bail!("{method} asked {ROUNDS} times")
    }

    /// Calls a tool and gives all its text.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> anyhow::Result<String> {
        self.call_with(tool, arguments, json!({})).await
    }

    /// The same, with members of `_meta`.
    pub(crate) async fn call_with(
        &mut self,
        tool: &str,
        arguments: Value,
        meta: Value,
    ) -> anyhow::Result<String> {
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let result = self.request("tools/call", params).await?;
        let said = text_of(&result);
        ensure!(result["isError"] != true, "{tool} failed: {said}");
        Ok(said)
    }

    /// Sends a request and does not wait.
    pub(crate) async fn begin(&mut self, method: &str, mut params: Value) -> anyhow::Result<u64> {
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

    /// The same, as a client that can be asked nothing, where each request says that for itself: one that is asked goes on
    /// with another request.
    pub(crate) async fn begin_unasked(&mut self, method: &str, params: Value) -> anyhow::Result<u64> {
        let declared = std::mem::replace(&mut self.declared, json!({}));
        let begun = self.begin(method, params).await;
        self.declared = declared;
        begun
    }

    pub(crate) async fn tell(&mut self, method: &str, params: Value) -> anyhow::Result<()> {
        self.link.tell(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await
    }

    /// The result of a request.
    pub(crate) async fn answer(&mut self, id: u64) -> anyhow::Result<Value> {
        loop {
            if let Some(mut response) = self.answers.remove(&id) {
                if !response["error"].is_null() {
                    bail!("error {}", response["error"]);
                }
                let result = response["result"].take();
                ensure!(result.is_object(), "neither a result nor an error: {response}");
                let modern = self.kind.revision.is_modern();
                ensure!(!modern || result["resultType"].is_string(), "no resultType: {result}");
                return Ok(result);
            }
            ensure!(!self.ended.contains(&id), "the stream of the request ended without an answer");
            self.hear().await.context("no answer")?;
        }
    }

    /// The first notification that fits, of those that have come and those that come.
    pub(crate) async fn notice(
        &mut self,
        method: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        loop {
            let found = |notice: &Value| notice["method"] == method && fits(&notice["params"]);
            if let Some(place) = self.notices.iter().position(found) {
                return Ok(self.notices.remove(place)["params"].take());
            }
            self.hear().await.with_context(|| format!("no {method}; heard {}", self.heard()))?;
        }
    }

    /// The parameters of the notifications of this method that have come.
    pub(crate) fn noticed(&self, method: &str) -> Vec<&Value> {
        let fits = self.notices.iter().filter(|notice| notice["method"] == method);
        fits.map(|notice| &notice["params"]).collect()
    }

    /// Forgets what has been said before, so that nobody takes it for what is said next.
    pub(crate) fn forget(&mut self) {
        self.notices.clear();
        self.asked.clear();
    }

    /// Withdraws a request, as this revision does over this carrier.
    pub(crate) async fn cancel(&mut self, id: u64) -> anyhow::Result<()> {
        if self.kind.revision.is_modern() && self.kind.carrier == Carrier::Http {
            self.link.drop_stream(id);
            return Ok(());
        }
        self.tell("notifications/cancelled", json!({"requestId": id, "reason": "changed my mind"})).await
    }

    /// Whether a request was answered, so far.
    pub(crate) fn has_answer(&self, id: u64) -> bool {
        self.answers.contains_key(&id)
    }

    fn heard(&self) -> String {
        let notices = self.notices.iter().map(Value::to_string);
        notices.collect::<Vec<_>>().join(" ")
    }

    /// Takes the next message.
    async fn hear(&mut self) -> anyhow::Result<()> {
        let heard = timeout(PATIENCE, self.inbox.recv()).await.context("nothing comes")?;
        let Heard { origin, message } = heard.context("the gateway is gone")?;
        let Some(message) = message? else {
            if let Origin::Request(id) = origin {
                self.ended.push(id);
            }
            return Ok(());
        };
        ensure!(message["jsonrpc"] == "2.0", "no message: {message}");
        match (message["method"].as_str(), message["id"].as_u64()) {
            (None, Some(id)) => {
                ensure!(id <= self.last_id, "an answer to nothing: {message}");
                ensure!(self.answers.insert(id, message).is_none(), "a second answer to {id}");
            }
            (Some(method), _) if !message["id"].is_null() => {
                let answer = self.answer_to(method, &message)?;
                self.link.tell(&answer).await?;
            }
            (Some(_), _) => self.notices.push(message),
            (None, None) => bail!("neither a request, a notification nor an answer: {message}"),
        }
        Ok(())
    }
}

/// All the text of a result of a tool.
pub(crate) fn text_of(result: &Value) -> String {
    let content = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    content.iter().filter_map(|content| content["text"].as_str()).collect::<Vec<_>>().join("\n")
}
