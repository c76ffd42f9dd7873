//! Opening a connection: detects the era of the server, and opens a session with a legacy server.

use std::sync::Arc;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::registry::EntryKind;
use toolyard_core::{Json, LogLevel, NoClient, Object};

use super::capabilities::ServerCapabilities;
use super::declared_capabilities::DeclaredCapabilities;
use super::{ConnectError, UpstreamConnection, no_client, refusal_error};
use crate::client::catalog::change_stream::follow_changes;
use crate::client::catalog::list_invalidation::ListSet;
use crate::client::server_requests::ServerRequestRouter;
use crate::client::transport::endpoint::HttpStyle;
use crate::client::transport::function::FunctionTransport;
use crate::client::transport::sse::SseTransport;
use crate::client::transport::stdio::StdioTransport;
use crate::client::transport::streamable_http::HttpTransport;
use crate::client::transport::{
    ClientTransport, ConnectionSignals, OutgoingRequest, TransportError, UpstreamResult,
};
use crate::client::{ClientOptions, ServerEndpoint, convert};
use crate::wire::{ProtocolEra, ProtocolRevision, RequestId, RpcError, error, headers, message, method};

/// Maximum time that the first call of a client with capabilities waits for the stream of requests from the server.
const LIST_STREAM_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for the answer to the probe after the legacy handshake: servers that handle requests side by side may answer the
/// second one first.
const LATE_ANSWER_TIME: Duration = Duration::from_millis(100);

/// The era in which a connection is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum EraRule {
    /// The era that `server/discover` reveals. A program that dies of it is started again.
    Detect,
    /// The same, with a single start.
    DetectOnce,
    /// The legacy era, unless the server turns out to be modern.
    ProbablyLegacy,
    /// This era, or none.
    Only(ProtocolEra),
}

/// The era of a server, as `server/discover` reveals it.
enum ServerEra {
    /// The modern era, with these capabilities.
    Modern(ServerCapabilities),
    /// The legacy era, or a modern server that supports older revisions only.
    Legacy,
}

/// The pending answer to `server/discover`.
type EraProbe = BoxFuture<'static, Result<ServerEra, ConnectError>>;

impl UpstreamConnection {
    /// Opens a connection on the first route on which the server is found.
    ///
    /// # Errors
    /// Those of [`UpstreamConnection::open`], and [`ConnectError::NoServerFound`] if no route leads to a server.
    pub(in crate::client) async fn connect(
        name: &Arc<str>,
        endpoint: &ServerEndpoint,
        options: &Arc<ClientOptions>,
        declared: &DeclaredCapabilities,
        rule: EraRule,
    ) -> Result<Self, ConnectError> {
        let ServerEndpoint::Http(http) = endpoint else {
            return Self::open(name, endpoint, options.clone(), declared, rule).await;
        };
        let mut refusals = Vec::new();
        for route in http.routes() {
            let there = ServerEndpoint::Http(http.with_route(route.clone()));
            match Self::open(name, &there, options.clone(), declared, rule).await {
                Ok(connection) => {
                    http.remember_route(name, &route);
                    return Ok(connection);
                }
                Err(error) if error.allows_next_route() => refusals.push(format!("{}: {error}", route.style)),
                Err(error) => return Err(error),
            }
        }
        Err(ConnectError::NoServerFound(refusals.join("; ")))
    }

    /// Detects the era of the server, unless it is known, and opens a session with a legacy server (2026-07-28,
    /// basic/versioning, backward compatibility). A legacy server is told the `declared` capabilities.
    pub(super) async fn open(
        name: &Arc<str>,
        endpoint: &ServerEndpoint,
        options: Arc<ClientOptions>,
        declared: &DeclaredCapabilities,
        rule: EraRule,
    ) -> Result<Self, ConnectError> {
        let mut connection = Self::create(name, endpoint, options.clone(), declared).await?;
        // HTTP+SSE exists in the legacy era only, and functions start with its handshake.
        let has_no_modern_form =
            matches!(connection.transport, ClientTransport::Sse(_) | ClientTransport::Function(_));
        let is_legacy = matches!(rule, EraRule::ProbablyLegacy | EraRule::Only(ProtocolEra::Legacy));
        if is_legacy || has_no_modern_form {
            connection.initialize(rule).await?;
            return Ok(connection);
        }
        let mut probe = connection.discover();
        // The connect timeout limits a server that is known to be modern: no other era would be tried.
        let limit = match rule {
            EraRule::Only(ProtocolEra::Modern) => Duration::MAX,
            _ => options.discover_timeout,
        };
        match timeout(limit, &mut probe).await {
            Ok(Ok(ServerEra::Modern(capabilities))) => connection.start_modern(capabilities),
            Ok(Err(error @ ConnectError::UnsupportedVersion(_))) => return Err(error),
            // A process may have died of the unknown request.
            Ok(Err(ConnectError::Transport(TransportError::Broken(_))))
                if matches!(endpoint, ServerEndpoint::Stdio { .. }) && rule != EraRule::DetectOnce =>
            {
                connection = Self::create(name, endpoint, options, declared).await?;
                connection.initialize(rule).await?;
            }
            Ok(Err(ConnectError::Transport(
                error @ (TransportError::Unreachable(_) | TransportError::Broken(_)),
            ))) => return Err(error.into()),
            Ok(Ok(ServerEra::Legacy) | Err(_)) => connection.initialize(rule).await?,
            Err(_) => connection.initialize_beside(probe, rule).await?,
        }
        Ok(connection)
    }

    /// Opens a session with a server that has not answered the probe yet. A server that starts slowly answers it late,
    /// and shows by that that it speaks the modern era.
    async fn initialize_beside(&mut self, mut probe: EraProbe, rule: EraRule) -> Result<(), ConnectError> {
        let mut late = None;
        let mut handshake = Box::pin(self.initialize(rule));
        let outcome = loop {
            tokio::select! {
                outcome = &mut handshake => break outcome,
                era = &mut probe, if late.is_none() => late = Some(era),
            }
        };
        drop(handshake);
        if late.is_none() {
            late = timeout(LATE_ANSWER_TIME, probe).await.ok();
        }
        let Some(Ok(ServerEra::Modern(capabilities))) = late else { return outcome };
        match outcome {
            Ok(()) => self.speaks_modern_too = self.revision.era() == ProtocolEra::Legacy,
            // A server of the modern era only.
            Err(ConnectError::Refused { .. }) => {
                self.revision = ProtocolRevision::LATEST_MODERN;
                self.start_modern(capabilities);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn create(
        name: &Arc<str>,
        endpoint: &ServerEndpoint,
        options: Arc<ClientOptions>,
        declared: &DeclaredCapabilities,
    ) -> Result<Self, ConnectError> {
        let signals = Arc::new(ConnectionSignals::default());
        let server_requests =
            Arc::new(ServerRequestRouter::new(declared.clone(), options.dropped_notices.clone()));
        let transport = match endpoint {
            ServerEndpoint::Http(http) => match http.route().style {
                HttpStyle::Streamable => {
                    let (signals, server_requests) = (signals.clone(), server_requests.clone());
                    ClientTransport::Http(HttpTransport::new(
                        name,
                        http.clone(),
                        &options,
                        signals,
                        server_requests,
                    ))
                }
                HttpStyle::Sse => {
                    let (signals, server_requests) = (signals.clone(), server_requests.clone());
                    ClientTransport::Sse(
                        SseTransport::open(name, http, &options, signals, server_requests).await?,
                    )
                }
            },
            ServerEndpoint::Stdio { program, processes } => {
                let (signals, server_requests) = (signals.clone(), server_requests.clone());
                let stdio =
                    StdioTransport::start(name, processes, program, &options, signals, server_requests);
                ClientTransport::Stdio(Arc::new(stdio.await?))
            }
            ServerEndpoint::Function(exchange) => {
                ClientTransport::Function(FunctionTransport::new(exchange.clone(), &options))
            }
        };
        let info = Object::new().with("name", Json::string(&options.name));
        let info = info.with("version", Json::string(&options.version)).to_json();
        Ok(Self {
            transport,
            revision: ProtocolRevision::LATEST_MODERN,
            capabilities: ServerCapabilities::default(),
            info,
            options,
            ids: Arc::new(AtomicU64::new(1)),
            header_params: RwLock::default(),
            signals,
            is_session_lost: AtomicBool::new(false),
            log_level: AtomicUsize::new(LogLevel::ALL.len()),
            has_warned_of_filter: AtomicBool::new(false),
            server_requests,
            list_listener: JoinSet::new(),
            speaks_modern_too: false,
            name: name.clone(),
        })
    }

    /// Sends `server/discover`. The future is independent of the connection, which may go on meanwhile.
    fn discover(&self) -> EraProbe {
        let mut params = Object::new();
        let request = self.build_request(method::DISCOVER, |id, info| {
            convert::set_meta(&mut params, Object::new(), id, self.revision, info, &NoClient);
            params
        });
        match &self.transport {
            ClientTransport::Http(http) => {
                let http = http.clone();
                async move { era_of_answer(http.request(request, &no_client()).await?.0) }.boxed()
            }
            ClientTransport::Stdio(stdio) => {
                let stdio = stdio.clone();
                async move { era_of_answer(stdio.request(request, &no_client()).await?) }.boxed()
            }
            // They have no modern form.
            ClientTransport::Sse(_) | ClientTransport::Function(_) => {
                std::future::ready(Ok(ServerEra::Legacy)).boxed()
            }
        }
    }

    fn start_modern(&mut self, capabilities: ServerCapabilities) {
        let filter = list_change_filter(&capabilities);
        self.capabilities = capabilities;
        match &self.transport {
            ClientTransport::Stdio(stdio) => {
                stdio.enqueue(vec![listen_request(&self.ids, &self.info, &filter).message])
            }
            ClientTransport::Http(http) => {
                let (ids, info) = (self.ids.clone(), self.info.clone());
                let (name, signals) = (self.name.clone(), self.signals.clone());
                let listen = move || Some(listen_request(&ids, &info, &filter));
                self.list_listener.spawn(follow_list_changes(name, http.clone(), signals, listen));
            }
            // HTTP+SSE has a single stream, which is read already.
            ClientTransport::Sse(_) => {}
            // A function sends no notifications.
            ClientTransport::Function(_) => {}
        }
    }

    /// Opens a session, unless the server turns out to be modern.
    async fn initialize(&mut self, rule: EraRule) -> Result<(), ConnectError> {
        if rule == EraRule::Only(ProtocolEra::Modern) {
            return Err(ConnectError::NotModern);
        }
        let params = Object::new()
            .with("protocolVersion", Json::string(ProtocolRevision::LATEST_LEGACY.as_str()))
            .with("capabilities", self.server_requests.declared().to_json())
            .with("clientInfo", self.info.clone());
        self.revision = ProtocolRevision::LATEST_LEGACY;
        let mut request = self.build_request(method::INITIALIZE, |_, _| params);
        if rule == EraRule::Only(ProtocolEra::Legacy) {
            // A server that speaks the modern era too may expect the header in every request (2026-07-28,
            // basic/transports/streamable-http, standard headers).
            request.headers.push((headers::METHOD, HeaderValue::from_static(method::INITIALIZE)));
        }
        let (answer, head) = match &self.transport {
            ClientTransport::Http(http) => http.request(request, &no_client()).await?,
            ClientTransport::Sse(sse) => (sse.request(request, &no_client()).await?, HeaderMap::new()),
            ClientTransport::Stdio(stdio) => (stdio.request(request, &no_client()).await?, HeaderMap::new()),
            ClientTransport::Function(answerer) => (answerer.request(request).await?, HeaderMap::new()),
        };
        let is_modern = |error: &RpcError| matches!(era_of_error(error), Ok(ServerEra::Modern(_)));
        if rule != EraRule::Only(ProtocolEra::Legacy) && answer.as_ref().is_err_and(is_modern) {
            // A slow start: the late answer to `server/discover` has committed the server to the modern era.
            self.revision = ProtocolRevision::LATEST_MODERN;
            self.start_modern(ServerCapabilities::default());
            return Ok(());
        }
        (self.revision, self.capabilities) = negotiated(answer)?;
        let ready = message::notification(method::INITIALIZED, &Object::new());
        match &mut self.transport {
            ClientTransport::Stdio(stdio) => stdio.notify(vec![ready]).await?,
            ClientTransport::Sse(sse) => sse.notify(ready).await?,
            ClientTransport::Function(_) => self.capabilities.drop_unsolicited(),
            ClientTransport::Http(http) => {
                *http = http.clone().with_session_headers(session_headers(&head, self.revision));
                http.notify(ready).await?;
                let (name, signals) = (self.name.clone(), self.signals.clone());
                self.list_listener.spawn(follow_list_changes(name, http.clone(), signals, || None));
                if !self.server_requests.declared().is_empty() {
                    // The server sends its requests on this stream as well, and drops them while it is closed.
                    let _too_slow =
                        timeout(LIST_STREAM_TIMEOUT, self.signals.list_stream_opened.notified()).await;
                }
            }
        }
        Ok(())
    }
}

/// Returns the filter of the list changes to subscribe to.
fn list_change_filter(capabilities: &ServerCapabilities) -> Object {
    let each = [
        (EntryKind::Tools, "toolsListChanged"),
        (EntryKind::Prompts, "promptsListChanged"),
        (EntryKind::Resources, "resourcesListChanged"),
    ];
    let listable = each.into_iter().filter(|(kind, _)| capabilities.may_list(*kind));
    listable.fold(Object::new(), |filter, (_, name)| filter.with(name, Json::boolean(true)))
}

/// Reads the stream of list changes and of other messages that belong to no request.
async fn follow_list_changes(
    name: Arc<str>,
    http: HttpTransport,
    signals: Arc<ConnectionSignals>,
    listen: impl Fn() -> Option<OutgoingRequest>,
) {
    let missed = || signals.list_invalidation.invalidate(ListSet::ALL);
    follow_changes(name, http, signals.clone(), signals.list_stream_opened.clone(), listen, missed).await;
}

/// Builds a `subscriptions/listen` request.
pub(in crate::client) fn listen_request(ids: &AtomicU64, info: &Json, filter: &Object) -> OutgoingRequest {
    let id = ids.fetch_add(1, Ordering::Relaxed);
    let mut params = Object::new().with("notifications", filter.to_json());
    convert::set_meta(&mut params, Object::new(), id, ProtocolRevision::LATEST_MODERN, info, &NoClient);
    let message = message::request(&RequestId::number(id), method::LISTEN, &params);
    let headers = headers::method_headers(ProtocolRevision::LATEST_MODERN, method::LISTEN);
    OutgoingRequest { id, message, headers, deadline: None, owner: None }
}

/// Returns the era of a server by its answer to `server/discover`.
fn era_of_answer(answer: UpstreamResult) -> Result<ServerEra, ConnectError> {
    match answer {
        Ok(result) => {
            let result = result.to_object().unwrap_or_default();
            era_of_versions(result.get("supportedVersions"), ServerCapabilities::of(&result))
        }
        Err(error) => era_of_error(&error),
    }
}

/// Returns the era of a server that answered `server/discover` with an error.
fn era_of_error(error: &RpcError) -> Result<ServerEra, ConnectError> {
    if error.code == error::UNSUPPORTED_VERSION {
        let data = error.body().to_object().ok().and_then(|body| body.get("data")?.to_object().ok());
        let supported = data.and_then(|data| data.get("supported").cloned());
        return era_of_versions(supported.as_ref(), ServerCapabilities::default());
    }
    let is_modern = error::is_modern(error.code.into());
    Ok(if is_modern { ServerEra::Modern(ServerCapabilities::default()) } else { ServerEra::Legacy })
}

/// Returns the era to use with a server that supports these revisions.
fn era_of_versions(
    offered: Option<&Json>,
    capabilities: ServerCapabilities,
) -> Result<ServerEra, ConnectError> {
    let offered = offered.ok_or(ConnectError::Malformed(method::DISCOVER))?;
    let versions = offered.to_items().map_err(|_| ConnectError::Malformed(method::DISCOVER))?;
    let parse = |version: &Json| ProtocolRevision::parse(&version.to_str()?);
    match versions.iter().filter_map(parse).max().map(ProtocolRevision::era) {
        Some(ProtocolEra::Modern) => Ok(ServerEra::Modern(capabilities)),
        Some(ProtocolEra::Legacy) => Ok(ServerEra::Legacy),
        None => Err(ConnectError::UnsupportedVersion(offered.as_text().to_owned())),
    }
}

/// Returns the revision and the capabilities that a server has negotiated in `initialize`.
fn negotiated(answer: UpstreamResult) -> Result<(ProtocolRevision, ServerCapabilities), ConnectError> {
    let result = answer.map_err(|error| refusal_error(method::INITIALIZE, &error))?;
    let result = result.to_object().map_err(|_| ConnectError::Malformed(method::INITIALIZE))?;
    let version = result.get_str("protocolVersion").ok_or(ConnectError::Malformed(method::INITIALIZE))?;
    let revision = ProtocolRevision::parse(&version).filter(|revision| revision.era() == ProtocolEra::Legacy);
    let revision = revision.ok_or_else(|| ConnectError::UnsupportedVersion(version.into_owned()))?;
    Ok((revision, ServerCapabilities::of(&result)))
}

/// Returns the headers of all further requests of a session.
fn session_headers(head: &HeaderMap, revision: ProtocolRevision) -> HeaderMap {
    let mut fixed = HeaderMap::new();
    fixed.insert(headers::PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
    if let Some(session) = head.get(headers::SESSION_ID) {
        fixed.insert(headers::SESSION_ID, session.clone());
    }
    fixed
}
