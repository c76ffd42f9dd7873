//! Servers that have more than tools.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use tokio::sync::broadcast;
use toolyard_server::Running;

use crate::client::{Client, MODERN_META, Response, Speech};
use crate::json;
use crate::upstream::{Era, Received, Reply, Script, Server, TOOL};

/// What such servers offer in the tests that do not say otherwise. The prompt has a name that models do not take.
pub(crate) const PROMPT: &str = r#"{"name":"a.b","arguments":[{"name":"x","vendor":1.10}],"vendor":1.10}"#;
pub(crate) const RESOURCE: &str = r#"{"uri":"res://one","name":"One","size":48e0,"vendor":{"b":1,"a":[ ]}}"#;
pub(crate) const TEMPLATE: &str = r#"{"uriTemplate":"doc://{id}/x","name":"Documents","vendor":1.10}"#;

/// The methods that list, and the members of their results that are the lists.
pub(crate) const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

/// A server with lists of every kind. What it does not list is for `call` to answer.
#[derive(Clone)]
pub(crate) struct Stocked {
    server: Arc<Server>,
    capabilities: &'static str,
    /// The members of the results of lists, by their methods.
    lists: Arc<Mutex<HashMap<&'static str, String>>>,
    /// What is said on every stream of changes.
    news: broadcast::Sender<String>,
}

/// Everything that a server can have.
const EVERYTHING: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}}"#;

impl Stocked {
    pub(crate) fn new(era: Era, call: impl Script) -> Self {
        let lists = LISTS.into_iter().zip([TOOL, PROMPT, RESOURCE, TEMPLATE]);
        let lists = lists.map(|((method, member), item)| (method, format!("\"{member}\":[{item}]")));
        Self {
            server: Arc::new(Server::new(era, &[], call)),
            capabilities: EVERYTHING,
            lists: Arc::new(Mutex::new(lists.collect())),
            news: broadcast::Sender::new(16),
        }
    }

    /// The same server, which says that it can do this.
    pub(crate) fn with_capabilities(self, capabilities: &'static str) -> Self {
        Self { capabilities, ..self }
    }

    /// Has a list be another one: the members of its result.
    pub(crate) fn set(&self, method: &'static str, members: &str) {
        self.lists.lock().unwrap().insert(method, members.to_owned());
    }

    /// Says something on every stream of changes.
    pub(crate) fn say(&self, method: &str, params: &str) {
        let message = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        let _nobody = self.news.send(format!("data: {message}\n\n"));
    }

    /// What is said on a stream of changes, which a modern one begins with what it will tell.
    fn news(&self, request: &Received) -> Reply {
        let news = stream::unfold(self.news.subscribe(), |mut news| async move {
            let said = news.recv().await.ok()?;
            Some((Bytes::from(said), news))
        });
        let open = match self.server.era {
            Era::Legacy => Bytes::from_static(b": open\n\n"),
            Era::Modern => acknowledged(request),
        };
        Reply::live("text/event-stream", stream::iter([open]).chain(news))
    }
}

/// What a modern server says first on a stream of changes: that it tells of all that it is asked for.
pub(crate) fn acknowledged(request: &Received) -> Bytes {
    let method = "notifications/subscriptions/acknowledged";
    let params = format!(r#"{{"notifications":{}}}"#, request.params().get("notifications").text());
    format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n\n").into()
}

impl Script for Stocked {
    fn reply(&self, request: &Received) -> Reply {
        let method = &*request.method();
        if let Some(members) = self.lists.lock().unwrap().get(method) {
            return Reply::result(request, &format!("{{{members}}}"));
        }
        match (method, self.server.era) {
            ("server/discover", Era::Modern) => {
                let rest = r#""resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"public""#;
                Reply::result(request, &format!(r#"{{{rest},"capabilities":{}}}"#, self.capabilities))
            }
            ("initialize", Era::Legacy) => {
                let rest = r#""protocolVersion":"2025-11-25","serverInfo":{"name":"legacy","version":"1"}"#;
                Reply::result(request, &format!(r#"{{{rest},"capabilities":{}}}"#, self.capabilities))
            }
            ("GET", Era::Legacy) | ("subscriptions/listen", Era::Modern) => self.news(request),
            (
                "prompts/get"
                | "resources/read"
                | "completion/complete"
                | "resources/subscribe"
                | "resources/unsubscribe"
                | "logging/setLevel",
                _,
            ) => self.server.call.reply(request),
            _ => self.server.reply(request),
        }
    }
}

// === who asks them ===

pub(crate) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

pub(crate) fn never(_: &Received) -> Reply {
    Reply::never()
}

/// Sends a request with these members as its parameters, in the way of the client.
pub(crate) async fn ask(client: &mut Client, method: &str, members: &str) -> Response {
    let own = if client.speech == Speech::Modern { MODERN_META } else { "" };
    let comma = if members.is_empty() { "" } else { "," };
    client.ask(method, &format!(r#"{{{members}{comma}"_meta":{{{own}}}}}"#)).await
}

/// A client of each kind.
pub(crate) async fn clients(running: &Running) -> [Client; 3] {
    let address = running.address();
    [
        Client::in_session(address).await,
        Client::new(address, Speech::Bare).await,
        Client::new(address, Speech::Modern).await,
    ]
}

/// What is on a list, as the client has it.
pub(crate) async fn listed(client: &mut Client, (method, member): (&str, &str)) -> String {
    json::read(&ask(client, method, "").await.body).get("result").get(member).text()
}

/// Everything that a gateway lists.
pub(crate) async fn everything(running: &Running) -> String {
    let mut client = Client::new(running.address(), Speech::Bare).await;
    let mut lists = Vec::new();
    for list in LISTS {
        lists.push(listed(&mut client, list).await);
    }
    lists.join("\n")
}
