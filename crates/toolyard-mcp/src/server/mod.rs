//! The frontend: messages of clients become calls, outcomes become messages.
//!
//! The way of a `tools/call`: [`http`] or [`stdio`] (bytes -> message, session) -> `Frontend::answer`
//! (message -> call) -> [`toolyard_core::Gateway::invoke`], and back by the same stairs.

mod convert;
pub mod http;
mod listen;
mod modern;
mod reply;
mod requester;
mod session;
pub mod stdio;

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;
use toolyard_core::{Call, Caller, Client, Gateway, Json, Object, Target};

use crate::wire::{Era, Id, Revision, RpcError, meta, method};

pub use session::SessionLimits;

/// What the server says of itself.
#[derive(Debug, Clone)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What a model should know before it uses the tools.
    pub instructions: Option<String>,
}

/// A server of MCP over a gateway, whatever carries the messages.
pub struct Frontend {
    gateway: Arc<Gateway>,
    info: ServerInfo,
    /// What follows the tools in a list of the modern era, up to its end.
    list_rest: Bytes,
    /// Notices that may wait for one client; more are dropped.
    queued_notices: usize,
    /// Turns true when streams are to end.
    stopping: watch::Receiver<bool>,
}

/// A request, read.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) params: Object,
    pub(crate) meta: Object,
}

/// How long a client may keep what it was told of the list, in milliseconds. Changes are announced, so
/// that this only bounds what a client misses that does not listen.
const LIST_TTL: i64 = 30_000;

/// The pieces of a result, or the error.
pub(crate) type Answer = Result<Vec<Bytes>, RpcError>;

impl Frontend {
    /// A frontend of `gateway` that calls itself `info`. Of the notices for one request at most
    /// `queued_notices` wait to be sent. Streams of changes end once `stopping` is true.
    #[must_use]
    pub fn new(
        gateway: Arc<Gateway>,
        info: ServerInfo,
        queued_notices: usize,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let list_rest = list_rest(&info);
        Self { gateway, info, list_rest, queued_notices, stopping }
    }

    /// Answers a request of any method but those that open a stream.
    async fn answer(&self, request: Request, era: Era, caller: Caller, client: Arc<dyn Client>) -> Answer {
        match (&*request.method, era) {
            (method::TOOLS_CALL, _) => self.call_tool(request, era, caller, client).await,
            (method::TOOLS_LIST, _) => self.list_tools(&request.params, era).await,
            (method::DISCOVER, Era::Modern) => Ok(self.discover()),
            (method::PING, Era::Legacy) => Ok(vec![Bytes::from_static(b"{}")]),
            (method, _) => Err(RpcError::method_not_found(method)),
        }
    }

    async fn call_tool(&self, request: Request, era: Era, caller: Caller, client: Arc<dyn Client>) -> Answer {
        let Some(name) = request.params.get_str("name") else {
            return Err(RpcError::invalid_params("`params.name` is not a string"));
        };
        let target = Target::Tool(name.into());
        let Request { params, meta, .. } = request;
        let call = Call { target, params, meta, caller, deadline: None, client };
        convert::answer(self.gateway.invoke(call).await, era)
    }

    /// Every tool, on one page: the list is ready, and clients that stop at the first page miss nothing.
    async fn list_tools(&self, params: &Object, era: Era) -> Answer {
        if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
            return Err(RpcError::invalid_params("`params.cursor` is none that was given out"));
        }
        let list = self.gateway.settled().await.list().bytes();
        let rest = match era {
            Era::Legacy => Bytes::from_static(b"}"),
            Era::Modern => self.list_rest.clone(),
        };
        Ok(vec![Bytes::from_static(b"{\"tools\":"), list, rest])
    }

    fn discover(&self) -> Vec<Bytes> {
        let versions = Revision::ALL.iter().rev().map(|revision| Json::string(revision.as_str()));
        let result = Object::new()
            .with("supportedVersions", Json::array(&versions.collect::<Vec<_>>()))
            .with("capabilities", capabilities());
        vec![cacheable(self.with_instructions(result), &self.info).to_json().bytes()]
    }

    /// The result of `initialize`.
    fn initialize(&self, params: &Object) -> Answer {
        let Some(requested) = params.get_str("protocolVersion") else {
            return Err(RpcError::invalid_params("`params.protocolVersion` is not a string"));
        };
        let revision = Revision::negotiate(&requested);
        let result = Object::new()
            .with("protocolVersion", Json::string(revision.as_str()))
            .with("capabilities", capabilities())
            .with("serverInfo", describe(&self.info));
        Ok(vec![self.with_instructions(result).to_json().bytes()])
    }

    fn with_instructions(&self, result: Object) -> Object {
        match &self.info.instructions {
            Some(text) => result.with("instructions", Json::string(text)),
            None => result,
        }
    }
}

/// A result of the modern era that a client may keep for a while.
fn cacheable(result: Object, info: &ServerInfo) -> Object {
    let meta = Object::new().with(meta::SERVER_INFO, describe(info));
    result
        .with("ttlMs", Json::integer(LIST_TTL))
        .with("cacheScope", Json::string("public"))
        .with("resultType", Json::string("complete"))
        .with("_meta", meta.to_json())
}

fn list_rest(info: &ServerInfo) -> Bytes {
    let members = cacheable(Object::new(), info).to_json().bytes();
    // The members stand behind others: a comma takes the place of the opening brace.
    [b",", &members[1..]].concat().into()
}

fn describe(info: &ServerInfo) -> Json {
    let description = Object::new().with("name", Json::string(&info.name));
    description.with("version", Json::string(&info.version)).to_json()
}

fn capabilities() -> Json {
    Json::from_value(&serde_json::json!({"tools": {"listChanged": true}}))
}
