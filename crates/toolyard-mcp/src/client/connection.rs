//! One server, spoken to in its own era.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use http::{HeaderMap, HeaderValue};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::{Call, Client, Json, NoClient, Object, Outcome, Tool, ToolError};

use super::http::Http;
use super::stdio::Stdio;
use super::transport::{Answer, Outgoing, Signals, Transport, TransportError};
use super::{ClientOptions, Endpoint, convert, follow};
use crate::wire::headers::{self, HeaderParam};
use crate::wire::{Era, Id, Revision, RpcError, error, message, method};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error(transparent)]
    Transport(#[from] TransportError),
    #[error(transparent)]
    Spawn(#[from] toolyard_process::SpawnError),
    #[error("the server refused {method}: {error}")]
    Refused { method: &'static str, error: String },
    #[error("the server speaks no revision that is spoken here: {0}")]
    Revision(String),
    #[error("the server's answer to {0} is malformed")]
    Malformed(&'static str),
    #[error("the server took too long to connect")]
    TooSlow,
}

/// An open connection. Dropping it closes it; a process ends with it.
pub(super) struct Connection {
    transport: Transport,
    revision: Revision,
    info: Json,
    options: Arc<ClientOptions>,
    ids: AtomicU64,
    /// The arguments that tools of a modern HTTP server want mirrored, by the tool's name.
    mirrored: RwLock<HashMap<Arc<str>, Vec<HeaderParam>>>,
    signals: Arc<Signals>,
    /// Follows the stream of changes.
    follower: JoinSet<()>,
    name: Arc<str>,
}

/// What a server says to the first question.
enum Probe {
    /// It is of the modern era.
    Modern,
    /// It is not, or speaks older revisions only.
    Legacy,
}

/// How many pages a list may have: a server that always has one more must end somewhere.
const MAX_PAGES: usize = 1000;

impl Connection {
    /// Finds out the era of the server, and opens a session where it wants one
    /// (2026-07-28, basic/versioning, backward compatibility).
    pub(super) async fn open(
        name: &Arc<str>,
        endpoint: &Endpoint,
        options: Arc<ClientOptions>,
    ) -> Result<Self, OpenError> {
        let mut connection = Self::dial(name, endpoint, options.clone())?;
        match timeout(options.probe_time, connection.probe()).await {
            Ok(Ok(Probe::Modern)) => connection.be_modern(),
            Ok(Err(OpenError::Transport(error @ TransportError::Unreachable(_)))) => return Err(error.into()),
            Ok(Err(error @ OpenError::Revision(_))) => return Err(error),
            // It may have died of a question that it did not know.
            Ok(Err(OpenError::Transport(TransportError::Broken(_)))) => {
                connection = Self::dial(name, endpoint, options)?;
                connection.initialize().await?;
            }
            Ok(Ok(Probe::Legacy) | Err(_)) | Err(_) => connection.initialize().await?,
        }
        Ok(connection)
    }

    fn dial(name: &Arc<str>, endpoint: &Endpoint, options: Arc<ClientOptions>) -> Result<Self, OpenError> {
        let signals = Arc::new(Signals::default());
        let transport = match endpoint {
            Endpoint::Http { url, client } => {
                Transport::Http(Http::new(url.clone(), client.clone(), options.message_bytes))
            }
            Endpoint::Stdio(program) => {
                Transport::Stdio(Stdio::start(name, program, options.message_bytes, signals.clone())?)
            }
        };
        let info = Object::new().with("name", Json::string(&options.name));
        let info = info.with("version", Json::string(&options.version)).to_json();
        Ok(Self {
            transport,
            revision: Revision::LATEST_MODERN,
            info,
            options,
            ids: AtomicU64::new(1),
            mirrored: RwLock::default(),
            signals,
            follower: JoinSet::new(),
            name: name.clone(),
        })
    }

    pub(super) const fn revision(&self) -> Revision {
        self.revision
    }

    /// Waits until the list of tools may have changed.
    pub(super) async fn changed(&self) {
        self.signals.changed.notified().await;
    }

    /// Waits until the connection is of no use any more.
    pub(super) async fn lost(&self) {
        self.signals.lost.notified().await;
    }

    /// Ends a process as its transport asks for. A session of HTTP is left to end by itself: the server
    /// that keeps it may be gone.
    pub(super) async fn close(&self) {
        if let Transport::Stdio(stdio) = &self.transport {
            stdio.close().await;
        }
    }

    async fn probe(&self) -> Result<Probe, OpenError> {
        match self.ask(method::DISCOVER, Object::new()).await? {
            Ok(result) => {
                let versions =
                    result.to_object().ok().and_then(|result| result.get("supportedVersions").cloned());
                chosen(versions.as_ref())
            }
            Err(error) => said_by(&error),
        }
    }

    fn be_modern(&mut self) {
        let listen = self.outgoing(method::LISTEN, |id, info| {
            let filter = Object::new().with("toolsListChanged", Json::from_value(&true.into()));
            let mut params = Object::new().with("notifications", filter.to_json());
            convert::set_meta(&mut params, Object::new(), id, Revision::LATEST_MODERN, info, &NoClient);
            params
        });
        self.follow(Some(listen));
    }

    /// Opens a session, where the server does not turn out to be of the modern era.
    async fn initialize(&mut self) -> Result<(), OpenError> {
        let params = Object::new()
            .with("protocolVersion", Json::string(Revision::LATEST_LEGACY.as_str()))
            .with("capabilities", Object::new().to_json())
            .with("clientInfo", self.info.clone());
        self.revision = Revision::LATEST_LEGACY;
        let request = self.outgoing(method::INITIALIZE, |_, _| params);
        let (answer, head) = match &self.transport {
            Transport::Http(http) => http.exchange(request, &NoClient).await?,
            Transport::Stdio(stdio) => (stdio.request(request, &no_client()).await?, HeaderMap::new()),
        };
        if answer.as_ref().is_err_and(|error| matches!(said_by(error), Ok(Probe::Modern))) {
            // It took longer to start than anybody waited for its answer to the first question. By that
            // answer, which came after all, it is bound to the modern era.
            self.revision = Revision::LATEST_MODERN;
            self.be_modern();
            return Ok(());
        }
        self.revision = agreed(answer)?;
        let ready = message::notification(method::INITIALIZED, &Object::new());
        match &mut self.transport {
            Transport::Stdio(stdio) => stdio.tell(vec![ready]).await?,
            Transport::Http(http) => {
                *http = http.clone().with_fixed(session_headers(&head, self.revision));
                http.tell(ready).await?;
                self.follow(None);
            }
        }
        Ok(())
    }

    /// Has a task follow the stream of changes. On stdio there is one stream for everything.
    fn follow(&mut self, listen: Option<Outgoing>) {
        match (&self.transport, listen) {
            (Transport::Stdio(stdio), Some(listen)) => stdio.post(vec![listen.message]),
            (Transport::Stdio(_), None) => {}
            (Transport::Http(http), listen) => {
                self.follower.spawn(follow::follow(
                    self.name.clone(),
                    http.clone(),
                    listen,
                    self.signals.clone(),
                ));
            }
        }
    }

    /// Asks for all tools. What is no tool, or breaks a rule that clients must enforce, is left out.
    pub(super) async fn list_tools(&self) -> Result<Vec<Arc<Tool>>, OpenError> {
        let mut tools = Vec::new();
        let mut mirrored = HashMap::new();
        let mut cursor: Option<Json> = None;
        for _ in 0..MAX_PAGES {
            let params =
                cursor.iter().fold(Object::new(), |params, cursor| params.with("cursor", cursor.clone()));
            let page = self
                .ask(method::TOOLS_LIST, params)
                .await?
                .map_err(|error| refused(method::TOOLS_LIST, &error))?;
            let page = page.to_object().map_err(|_| OpenError::Malformed(method::TOOLS_LIST))?;
            let items = page.get("tools").and_then(|tools| tools.to_items().ok());
            for item in items.ok_or(OpenError::Malformed(method::TOOLS_LIST))? {
                if tools.len() < self.options.tools {
                    tools.extend(self.accept(&item, &mut mirrored));
                }
            }
            let next = page.get("nextCursor").filter(|cursor| !cursor.is_null()).map(Json::detach);
            if next.is_none() || next == cursor || tools.len() >= self.options.tools {
                break;
            }
            cursor = next;
        }
        *self.mirrored.write().unwrap_or_else(PoisonError::into_inner) = mirrored;
        Ok(tools)
    }

    fn accept(&self, item: &Json, mirrored: &mut HashMap<Arc<str>, Vec<HeaderParam>>) -> Option<Arc<Tool>> {
        let warn = |tool: &str, problem: &dyn std::fmt::Display| {
            tracing::warn!(handler = %self.name, tool, %problem, "a tool is left out");
        };
        let tool = Tool::from_definition(item).inspect_err(|problem| warn("", problem)).ok()?;
        if let (Transport::Http(_), Era::Modern) = (&self.transport, self.revision.era()) {
            let params =
                headers::header_params(tool.input_schema()).inspect_err(|problem| warn(&tool.name, problem));
            let params = params.ok()?;
            if !params.is_empty() {
                mirrored.insert(tool.name.clone(), params);
            }
        }
        Some(Arc::new(tool))
    }

    /// Runs a call.
    pub(super) async fn call(&self, call: Call) -> Result<Outcome, ToolError> {
        let client = call.client.clone();
        let id = self.next_id();
        let (name, params) = convert::call_params(call, id, self.revision, &self.info);
        let headers = self.call_headers(&name, &params);
        let message = message::request(&Id::number(id), method::TOOLS_CALL, &params);
        let answer = self.transport.request(Outgoing { id, message, headers }, &client).await;
        let answer = answer.inspect_err(|error| {
            if matches!(error, TransportError::Unreachable(_) | TransportError::SessionOver) {
                self.signals.lost.notify_one();
            }
        })?;
        if answer.as_ref().is_err_and(|error| error.code == error::HEADER_MISMATCH) {
            // The annotations are not what they were when the tools were listed.
            self.signals.changed.notify_one();
        }
        convert::outcome(answer)
    }

    /// What a modern HTTP server wants mirrored of a call.
    fn call_headers(&self, name: &Arc<str>, params: &Object) -> HeaderMap {
        let mut headers = self.method_headers(method::TOOLS_CALL);
        if headers.is_empty() {
            return headers;
        }
        headers.insert(headers::NAME, headers::encode(name));
        let mirrored = self.mirrored.read().unwrap_or_else(PoisonError::into_inner);
        let Some(mirrored) = mirrored.get(name) else { return headers };
        let arguments = params.get("arguments").and_then(|arguments| arguments.to_object().ok());
        let arguments = arguments.unwrap_or_default();
        for param in mirrored {
            if let Some(value) = param.value(&arguments) {
                headers.insert(param.header.clone(), headers::encode(&value));
            }
        }
        headers
    }

    fn method_headers(&self, method: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let (Transport::Http(_), Era::Modern) = (&self.transport, self.revision.era()) {
            headers.insert(headers::PROTOCOL_VERSION, HeaderValue::from_static(self.revision.as_str()));
            headers.insert(headers::METHOD, HeaderValue::from_static(method));
        }
        headers
    }

    /// A request of the gateway itself.
    async fn ask(&self, method: &'static str, mut params: Object) -> Result<Answer, TransportError> {
        let request = self.outgoing(method, |id, info| {
            convert::set_meta(&mut params, Object::new(), id, self.revision, info, &NoClient);
            params
        });
        self.transport.request(request, &no_client()).await
    }

    fn outgoing(&self, method: &'static str, params: impl FnOnce(u64, &Json) -> Object) -> Outgoing {
        let id = self.next_id();
        let message = message::request(&Id::number(id), method, &params(id, &self.info));
        Outgoing { id, message, headers: self.method_headers(method) }
    }

    fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }
}

fn no_client() -> Arc<dyn Client> {
    Arc::new(NoClient)
}

/// The era of a server that refused the first question.
fn said_by(error: &RpcError) -> Result<Probe, OpenError> {
    if error.code == error::UNSUPPORTED_VERSION {
        let data = error.body().to_object().ok().and_then(|body| body.get("data")?.to_object().ok());
        return chosen(data.and_then(|data| data.get("supported").cloned()).as_ref());
    }
    Ok(if error::is_modern(error.code.into()) { Probe::Modern } else { Probe::Legacy })
}

/// The era to speak with a server that offers these revisions.
fn chosen(offered: Option<&Json>) -> Result<Probe, OpenError> {
    let offered = offered.ok_or(OpenError::Malformed(method::DISCOVER))?;
    let versions = offered.to_items().map_err(|_| OpenError::Malformed(method::DISCOVER))?;
    let known = |version: &Json| Revision::parse(&version.to_str()?);
    match versions.iter().filter_map(known).max() {
        Some(Revision::LATEST_MODERN) => Ok(Probe::Modern),
        Some(_) => Ok(Probe::Legacy),
        None => Err(OpenError::Revision(offered.as_text().to_owned())),
    }
}

/// The revision that a server has agreed on in `initialize`.
fn agreed(answer: Answer) -> Result<Revision, OpenError> {
    let result = answer.map_err(|error| refused(method::INITIALIZE, &error))?;
    let result = result.to_object().map_err(|_| OpenError::Malformed(method::INITIALIZE))?;
    let version = result.get_str("protocolVersion").ok_or(OpenError::Malformed(method::INITIALIZE))?;
    let revision = Revision::parse(&version).filter(|revision| revision.era() == Era::Legacy);
    revision.ok_or_else(|| OpenError::Revision(version.into_owned()))
}

fn refused(method: &'static str, error: &RpcError) -> OpenError {
    OpenError::Refused { method, error: error.body().as_text().to_owned() }
}

/// What every further request of a session carries.
fn session_headers(head: &HeaderMap, revision: Revision) -> HeaderMap {
    let mut fixed = HeaderMap::new();
    fixed.insert(headers::PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
    if let Some(session) = head.get(headers::SESSION_ID) {
        fixed.insert(headers::SESSION_ID, session.clone());
    }
    fixed
}
