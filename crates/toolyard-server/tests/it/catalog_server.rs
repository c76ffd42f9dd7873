//! Upstreams with prompts, resources and templates besides tools.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use tokio::sync::{broadcast, watch};
use toolyard_server::RunningGateway;
use toolyard_testing::json;
use toolyard_testing::upstream::{
    ReceivedRequest, ReplyScript, ScriptedReply, ScriptedUpstream, TOOL, UpstreamEra,
};
use toolyard_testing::wire_client::{ClientMode, MODERN_META, WireClient, WireResponse};

/// The default definitions of such servers. The name of the prompt is one that models do not accept.
pub(crate) const PROMPT: &str = r#"{"name":"a.b","arguments":[{"name":"x","vendor":1.10}],"vendor":1.10}"#;
pub(crate) const RESOURCE: &str = r#"{"uri":"res://one","name":"One","size":48e0,"vendor":{"b":1,"a":[ ]}}"#;
pub(crate) const TEMPLATE: &str = r#"{"uriTemplate":"doc://{id}/x","name":"Documents","vendor":1.10}"#;

/// The methods that list, and the members of their results with the lists.
pub(crate) const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

/// A server with lists of every kind. `call` answers all other requests.
#[derive(Clone)]
pub(crate) struct CatalogServer {
    server: Arc<ScriptedUpstream>,
    capabilities: &'static str,
    /// The members of the results of list requests, by method.
    lists: Arc<Mutex<HashMap<&'static str, String>>>,
    /// Events for all streams of server notifications.
    news: broadcast::Sender<String>,
    /// Number of these events that were written.
    written: watch::Sender<usize>,
}

/// All server capabilities.
const EVERYTHING: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}}"#;

impl CatalogServer {
    pub(crate) fn new(era: UpstreamEra, call: impl ReplyScript) -> Self {
        let lists = LISTS.into_iter().zip([TOOL, PROMPT, RESOURCE, TEMPLATE]);
        let lists = lists.map(|((method, member), item)| (method, format!("\"{member}\":[{item}]")));
        Self {
            server: Arc::new(ScriptedUpstream::new(era, &[], call)),
            capabilities: EVERYTHING,
            lists: Arc::new(Mutex::new(lists.collect())),
            news: broadcast::Sender::new(16),
            written: watch::Sender::default(),
        }
    }

    /// Replaces the declared capabilities.
    pub(crate) fn with_capabilities(self, capabilities: &'static str) -> Self {
        Self { capabilities, ..self }
    }

    /// Replaces the members of the result of a list request.
    pub(crate) fn set(&self, method: &'static str, members: &str) {
        self.lists.lock().unwrap().insert(method, members.to_owned());
    }

    /// Sends a notification on every stream of server notifications.
    pub(crate) fn say(&self, method: &str, params: &str) {
        self.say_text(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
    }

    /// Sends a message on every stream of server notifications.
    pub(crate) fn say_text(&self, message: &str) {
        let _nobody = self.news.send(format!("data: {message}\n\n"));
    }

    /// Waits until so many server notifications were written.
    pub(crate) fn wait_until_written(&self, count: usize) -> impl Future<Output = ()> + Send + 'static {
        let mut written = self.written.subscribe();
        async move { drop(written.wait_for(|written| *written >= count).await) }
    }

    /// A stream of server notifications; a modern one begins with the acknowledgement.
    fn news(&self, request: &ReceivedRequest) -> ScriptedReply {
        let state = (self.news.subscribe(), false, self.written.clone());
        let news = stream::unfold(state, |(mut news, is_written, written)| async move {
            written.send_modify(|written| *written += usize::from(is_written));
            let event = news.recv().await.ok()?;
            Some((Bytes::from(event), (news, true, written)))
        });
        let open = match self.server.era {
            UpstreamEra::Legacy => Bytes::from_static(b": open\n\n"),
            UpstreamEra::Modern => acknowledged(request),
        };
        ScriptedReply::live("text/event-stream", stream::iter([open]).chain(news))
    }
}

/// The first event of a modern stream of server notifications, which confirms the whole requested filter.
pub(crate) fn acknowledged(request: &ReceivedRequest) -> Bytes {
    let method = "notifications/subscriptions/acknowledged";
    let params = format!(r#"{{"notifications":{}}}"#, request.params().get("notifications").text());
    format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n\n").into()
}

impl ReplyScript for CatalogServer {
    fn reply(&self, request: &ReceivedRequest) -> ScriptedReply {
        let method = &*request.method();
        if let Some(members) = self.lists.lock().unwrap().get(method) {
            return ScriptedReply::result(request, &format!("{{{members}}}"));
        }
        match (method, self.server.era) {
            ("server/discover", UpstreamEra::Modern) => {
                let rest = r#""resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"public""#;
                ScriptedReply::result(request, &format!(r#"{{{rest},"capabilities":{}}}"#, self.capabilities))
            }
            ("initialize", UpstreamEra::Legacy) => {
                let rest = r#""protocolVersion":"2025-11-25","serverInfo":{"name":"legacy","version":"1"}"#;
                ScriptedReply::result(request, &format!(r#"{{{rest},"capabilities":{}}}"#, self.capabilities))
            }
            ("GET", UpstreamEra::Legacy) | ("subscriptions/listen", UpstreamEra::Modern) => {
                self.news(request)
            }
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

// === clients ===

pub(crate) const ERAS: [UpstreamEra; 2] = [UpstreamEra::Legacy, UpstreamEra::Modern];

pub(crate) fn never(_: &ReceivedRequest) -> ScriptedReply {
    ScriptedReply::never()
}

/// Sends a request with these members of its parameters, in the mode of the client.
pub(crate) async fn ask(client: &mut WireClient, method: &str, members: &str) -> WireResponse {
    let own = if client.mode == ClientMode::Modern { MODERN_META } else { "" };
    let comma = if members.is_empty() { "" } else { "," };
    client.ask(method, &format!(r#"{{{members}{comma}"_meta":{{{own}}}}}"#)).await
}

/// One client of each mode.
pub(crate) async fn clients(running: &RunningGateway) -> [WireClient; 3] {
    let address = running.address();
    [
        WireClient::in_session(address).await,
        WireClient::new(address, ClientMode::Bare).await,
        WireClient::new(address, ClientMode::Modern).await,
    ]
}

/// One list, as the client gets it.
pub(crate) async fn list_text(client: &mut WireClient, (method, member): (&str, &str)) -> String {
    json::read(&ask(client, method, "").await.body).get("result").get(member).text()
}

/// All lists of a gateway.
pub(crate) async fn all_lists(running: &RunningGateway) -> String {
    let mut client = WireClient::new(running.address(), ClientMode::Bare).await;
    let mut lists = Vec::new();
    for list in LISTS {
        lists.push(list_text(&mut client, list).await);
    }
    lists.join("\n")
}
