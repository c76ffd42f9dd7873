//! The beginning of a connection: which era the server is of, and the session where it wants one.

use std::sync::Arc;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::registry::Kind;
use toolyard_core::{Json, LogLevel, NoClient, Object};

use super::asked::Callers;
use super::capabilities::Capabilities;
use super::connection::{Connection, OpenError, no_client, refused};
use super::declared::Declared;
use super::endpoint::HttpStyle;
use super::exchange::Answerer;
use super::follow::follow;
use super::http::Http;
use super::sse::Sse;
use super::stale::Lists;
use super::stdio::Stdio;
use super::transport::{Answer, Outgoing, Signals, Transport, TransportError};
use super::{ClientOptions, Endpoint, convert};
use crate::wire::{Era, Id, Revision, RpcError, error, headers, message, method};

/// How long the first call of a client that can be asked waits until its questions have a way.
const LISTEN_TIME: Duration = Duration::from_secs(2);

/// What a server says to the first question.
enum Probe {
    /// It is of the modern era, and can do this.
    Modern(Capabilities),
    /// It is not, or speaks older revisions only.
    Legacy,
}

impl Connection {
    /// Opens a connection to wherever the server is.
    ///
    /// # Errors
    /// Those of [`Connection::open`], and [`OpenError::Nowhere`] when it is at none of the places where it may be.
    pub(super) async fn find(
        name: &Arc<str>,
        endpoint: &Endpoint,
        options: &Arc<ClientOptions>,
        declared: &Declared,
        known: Option<Era>,
    ) -> Result<Self, OpenError> {
        let Endpoint::Http(http) = endpoint else {
            return Self::open(name, endpoint, options.clone(), declared, known).await;
        };
        let mut refusals = Vec::new();
        for route in http.routes() {
            let there = Endpoint::Http(http.on(route.clone()));
            match Self::open(name, &there, options.clone(), declared, known).await {
                Ok(connection) => {
                    http.remember(name, &route);
                    return Ok(connection);
                }
                Err(error) if error.is_elsewhere() => refusals.push(format!("{}: {error}", route.style)),
                Err(error) => return Err(error),
            }
        }
        Err(OpenError::Nowhere(refusals.join("; ")))
    }

    /// Finds out the era of the server, unless it is `known`, and opens a session where it wants one
    /// (2026-07-28, basic/versioning, backward compatibility). A legacy server is told what is `declared`.
    pub(super) async fn open(
        name: &Arc<str>,
        endpoint: &Endpoint,
        options: Arc<ClientOptions>,
        declared: &Declared,
        known: Option<Era>,
    ) -> Result<Self, OpenError> {
        let mut connection = Self::dial(name, endpoint, options.clone(), declared).await?;
        // Only the legacy era has HTTP+SSE, and functions begin with its handshake.
        let is_legacy = matches!(connection.transport, Transport::Sse(_) | Transport::Exchange(_));
        if known == Some(Era::Legacy) || is_legacy {
            connection.initialize().await?;
            return Ok(connection);
        }
        match timeout(options.probe_time, connection.probe()).await {
            Ok(Ok(Probe::Modern(capabilities))) => connection.be_modern(capabilities),
            Ok(Err(error @ OpenError::Revision(_))) => return Err(error),
            // A process may have died of a question that it did not know.
            Ok(Err(OpenError::Transport(TransportError::Broken(_))))
                if matches!(endpoint, Endpoint::Stdio { .. }) =>
            {
                connection = Self::dial(name, endpoint, options, declared).await?;
                connection.initialize().await?;
            }
            Ok(Err(OpenError::Transport(
                error @ (TransportError::Unreachable(_) | TransportError::Broken(_)),
            ))) => return Err(error.into()),
            Ok(Ok(Probe::Legacy) | Err(_)) | Err(_) => connection.initialize().await?,
        }
        Ok(connection)
    }

    async fn dial(
        name: &Arc<str>,
        endpoint: &Endpoint,
        options: Arc<ClientOptions>,
        declared: &Declared,
    ) -> Result<Self, OpenError> {
        let signals = Arc::new(Signals::default());
        let callers = Arc::new(Callers::new(declared.clone()));
        let transport = match endpoint {
            Endpoint::Http(http) => match http.route().style {
                HttpStyle::Streamable => {
                    Transport::Http(Http::new(http.clone(), options.message_bytes, callers.clone()))
                }
                HttpStyle::Sse => {
                    let (signals, callers) = (signals.clone(), callers.clone());
                    Transport::Sse(Sse::open(name, http, &options, signals, callers).await?)
                }
            },
            Endpoint::Stdio { program, processes } => {
                let (signals, callers) = (signals.clone(), callers.clone());
                Transport::Stdio(Stdio::start(name, processes, program, &options, signals, callers).await?)
            }
            Endpoint::Exchange(exchange) => {
                Transport::Exchange(Answerer::new(exchange.clone(), options.message_bytes))
            }
        };
        let info = Object::new().with("name", Json::string(&options.name));
        let info = info.with("version", Json::string(&options.version)).to_json();
        Ok(Self {
            transport,
            revision: Revision::LATEST_MODERN,
            capabilities: Capabilities::default(),
            info,
            options,
            ids: Arc::new(AtomicU64::new(1)),
            mirrored: RwLock::default(),
            signals,
            is_forgotten: AtomicBool::new(false),
            log_level: AtomicUsize::new(LogLevel::ALL.len()),
            has_checked: AtomicBool::new(false),
            callers,
            follower: JoinSet::new(),
            name: name.clone(),
        })
    }

    async fn probe(&self) -> Result<Probe, OpenError> {
        match self.ask(method::DISCOVER, Object::new()).await? {
            Ok(result) => {
                let result = result.to_object().unwrap_or_default();
                chosen(result.get("supportedVersions"), Capabilities::of(&result))
            }
            Err(error) => said_by(&error),
        }
    }

    fn be_modern(&mut self, capabilities: Capabilities) {
        let filter = filter(&capabilities);
        self.capabilities = capabilities;
        self.signals.is_modern.store(true, Ordering::Relaxed);
        match &self.transport {
            Transport::Stdio(stdio) => stdio.post(vec![listen(&self.ids, &self.info, &filter).message]),
            Transport::Http(http) => {
                let (ids, info) = (self.ids.clone(), self.info.clone());
                let (name, signals) = (self.name.clone(), self.signals.clone());
                let listen = move || Some(listen(&ids, &info, &filter));
                self.follower.spawn(follow_lists(name, http.clone(), signals, listen));
            }
            // It has but one stream, and that is followed.
            Transport::Sse(_) => {}
            // It says nothing by itself.
            Transport::Exchange(_) => {}
        }
    }

    /// Opens a session, where the server does not turn out to be of the modern era.
    async fn initialize(&mut self) -> Result<(), OpenError> {
        let params = Object::new()
            .with("protocolVersion", Json::string(Revision::LATEST_LEGACY.as_str()))
            .with("capabilities", self.callers.declared().to_json())
            .with("clientInfo", self.info.clone());
        self.revision = Revision::LATEST_LEGACY;
        let request = self.outgoing(method::INITIALIZE, |_, _| params);
        let (answer, head) = match &self.transport {
            Transport::Http(http) => http.exchange(request, &no_client()).await?,
            Transport::Sse(sse) => (sse.request(request, &no_client()).await?, HeaderMap::new()),
            Transport::Stdio(stdio) => (stdio.request(request, &no_client()).await?, HeaderMap::new()),
            Transport::Exchange(answerer) => (answerer.request(request).await?, HeaderMap::new()),
        };
        if answer.as_ref().is_err_and(|error| matches!(said_by(error), Ok(Probe::Modern(_)))) {
            // It was slow to start: its late answer to the first question has committed it to the modern era.
            self.revision = Revision::LATEST_MODERN;
            self.be_modern(Capabilities::default());
            return Ok(());
        }
        (self.revision, self.capabilities) = agreed(answer)?;
        let ready = message::notification(method::INITIALIZED, &Object::new());
        match &mut self.transport {
            Transport::Stdio(stdio) => stdio.tell(vec![ready]).await?,
            Transport::Sse(sse) => sse.tell(ready).await?,
            Transport::Exchange(_) => self.capabilities.leave_to_connections(),
            Transport::Http(http) => {
                *http = http.clone().with_fixed(session_headers(&head, self.revision));
                http.tell(ready).await?;
                let (name, signals) = (self.name.clone(), self.signals.clone());
                self.follower.spawn(follow_lists(name, http.clone(), signals, || None));
                if !self.callers.declared().is_nothing() {
                    // Questions come there, too, and servers drop what nobody would hear.
                    let _too_slow = timeout(LISTEN_TIME, self.signals.listens.notified()).await;
                }
            }
        }
        Ok(())
    }
}

/// The changes of lists that are to be told of.
fn filter(capabilities: &Capabilities) -> Object {
    let each = [
        (Kind::Tools, "toolsListChanged"),
        (Kind::Prompts, "promptsListChanged"),
        (Kind::Resources, "resourcesListChanged"),
    ];
    let wanted = each.into_iter().filter(|(kind, _)| capabilities.may_list(*kind));
    wanted.fold(Object::new(), |filter, (_, name)| filter.with(name, Json::boolean(true)))
}

/// Follows what a server says of its lists, and whatever else belongs to no request.
async fn follow_lists(
    name: Arc<str>,
    http: Http,
    signals: Arc<Signals>,
    listen: impl Fn() -> Option<Outgoing>,
) {
    let missed = || signals.stale.note(Lists::ALL);
    follow(name, http, signals.clone(), signals.listens.clone(), listen, missed).await;
}

/// A request for a stream of changes.
pub(super) fn listen(ids: &AtomicU64, info: &Json, filter: &Object) -> Outgoing {
    let id = ids.fetch_add(1, Ordering::Relaxed);
    let mut params = Object::new().with("notifications", filter.to_json());
    convert::set_meta(&mut params, Object::new(), id, Revision::LATEST_MODERN, info, &NoClient);
    let message = message::request(&Id::number(id), method::LISTEN, &params);
    let headers = headers::of_method(Revision::LATEST_MODERN, method::LISTEN);
    Outgoing { id, message, headers, deadline: None }
}

/// The era of a server that refused the first question.
fn said_by(error: &RpcError) -> Result<Probe, OpenError> {
    if error.code == error::UNSUPPORTED_VERSION {
        let data = error.body().to_object().ok().and_then(|body| body.get("data")?.to_object().ok());
        let supported = data.and_then(|data| data.get("supported").cloned());
        return chosen(supported.as_ref(), Capabilities::default());
    }
    let is_modern = error::is_modern(error.code.into());
    Ok(if is_modern { Probe::Modern(Capabilities::default()) } else { Probe::Legacy })
}

/// The era to speak with a server that offers these revisions.
fn chosen(offered: Option<&Json>, capabilities: Capabilities) -> Result<Probe, OpenError> {
    let offered = offered.ok_or(OpenError::Malformed(method::DISCOVER))?;
    let versions = offered.to_items().map_err(|_| OpenError::Malformed(method::DISCOVER))?;
    let known = |version: &Json| Revision::parse(&version.to_str()?);
    match versions.iter().filter_map(known).max().map(Revision::era) {
        Some(Era::Modern) => Ok(Probe::Modern(capabilities)),
        Some(Era::Legacy) => Ok(Probe::Legacy),
        None => Err(OpenError::Revision(offered.as_text().to_owned())),
    }
}

/// The revision that a server has agreed on in `initialize`, and what it can do.
fn agreed(answer: Answer) -> Result<(Revision, Capabilities), OpenError> {
    let result = answer.map_err(|error| refused(method::INITIALIZE, &error))?;
    let result = result.to_object().map_err(|_| OpenError::Malformed(method::INITIALIZE))?;
    let version = result.get_str("protocolVersion").ok_or(OpenError::Malformed(method::INITIALIZE))?;
    let revision = Revision::parse(&version).filter(|revision| revision.era() == Era::Legacy);
    let revision = revision.ok_or_else(|| OpenError::Revision(version.into_owned()))?;
    Ok((revision, Capabilities::of(&result)))
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
