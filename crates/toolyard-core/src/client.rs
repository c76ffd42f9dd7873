//! The client of a running call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::error::{ErrorCode, ToolError};
use crate::json::{Json, Object};
use crate::log_level::LogLevel;

/// The client of a running call, as backends see it.
pub trait Client: Send + Sync + fmt::Debug {
    /// Returns the capabilities that the backend may use during this call, as MCP clients declare them. `None` if the
    /// client cannot be asked anything.
    fn capabilities(&self) -> Option<&Json>;

    /// Returns `true` if the client can be asked anything at all.
    fn can_be_asked(&self) -> bool {
        self.capabilities().is_some_and(|capabilities| capabilities.as_bytes() != b"{}")
    }

    /// Returns `true` if progress notifications reach the client; otherwise a backend can save the work.
    fn listens(&self) -> bool;

    /// Returns the least severe log level that the client wants for this call; `None` for no log messages.
    fn log_level(&self) -> Option<LogLevel> {
        None
    }

    /// Returns `true` if the reader of the result can call further tools, as a model can. Large results may then be
    /// stored where tools find them. REST callers get their result whole.
    fn calls_tools(&self) -> bool {
        false
    }

    /// Returns `true` if structured results have to be objects, as in MCP before 2026-07-28.
    fn expects_objects(&self) -> bool {
        false
    }

    /// Returns `true` if the outcome of the call may be a task, which the client polls.
    fn takes_tasks(&self) -> bool {
        false
    }

    /// Sends a notification to the client while its call runs. Never waits: if the client is too slow, notifications
    /// are dropped, never the outcome.
    fn notify(&self, notice: ClientNotification);

    /// Asks the client and returns its answer, the result as the client sent it. Dropping the future withdraws the
    /// request.
    fn ask(&self, ask: InputRequest) -> BoxFuture<'_, Result<Json, InputRequestError>> {
        std::future::ready(Err(InputRequestError::Unsupported(ask.required()))).boxed()
    }

    /// Returns the time that this client has been asked so far, including an open request. It is not part of the call's
    /// time.
    fn asked_for(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the session of the client, in which it can be asked after the call. `None` if it has none.
    fn session(&self) -> Option<Arc<dyn ClientSession>> {
        None
    }
}

/// The session of a client, in which it can be asked independently of its calls.
pub trait ClientSession: Send + Sync + fmt::Debug {
    /// Asks the client, as [`Client::ask`] does.
    fn ask(&self, ask: InputRequest) -> BoxFuture<'_, Result<Json, InputRequestError>>;

    /// Waits for the end of the session.
    fn ended(&self) -> BoxFuture<'_, ()>;
}

/// A client in front of another one, which changes some of its methods. It is a [`Client`], and delegates every method
/// that it does not override.
pub trait ClientWrapper: Send + Sync + fmt::Debug {
    /// Returns the wrapped client.
    fn inner(&self) -> &dyn Client;

    /// See [`Client::capabilities`].
    fn capabilities(&self) -> Option<&Json> {
        self.inner().capabilities()
    }

    /// See [`Client::can_be_asked`].
    fn can_be_asked(&self) -> bool {
        self.inner().can_be_asked()
    }

    /// See [`Client::listens`].
    fn listens(&self) -> bool {
        self.inner().listens()
    }

    /// See [`Client::log_level`].
    fn log_level(&self) -> Option<LogLevel> {
        self.inner().log_level()
    }

    /// See [`Client::calls_tools`].
    fn calls_tools(&self) -> bool {
        self.inner().calls_tools()
    }

    /// See [`Client::expects_objects`].
    fn expects_objects(&self) -> bool {
        self.inner().expects_objects()
    }

    /// See [`Client::takes_tasks`].
    fn takes_tasks(&self) -> bool {
        self.inner().takes_tasks()
    }

    /// See [`Client::notify`].
    fn notify(&self, notice: ClientNotification) {
        self.inner().notify(notice);
    }

    /// See [`Client::ask`].
    fn ask(&self, ask: InputRequest) -> BoxFuture<'_, Result<Json, InputRequestError>> {
        self.inner().ask(ask)
    }

    /// See [`Client::asked_for`].
    fn asked_for(&self) -> Duration {
        self.inner().asked_for()
    }

    /// See [`Client::session`].
    fn session(&self) -> Option<Arc<dyn ClientSession>> {
        self.inner().session()
    }
}

// Every method is listed: a missing one would silently fall back to the default for all wrappers.
#[deny(clippy::missing_trait_methods)]
impl<W: ClientWrapper> Client for W {
    fn capabilities(&self) -> Option<&Json> {
        ClientWrapper::capabilities(self)
    }

    fn can_be_asked(&self) -> bool {
        ClientWrapper::can_be_asked(self)
    }

    fn listens(&self) -> bool {
        ClientWrapper::listens(self)
    }

    fn log_level(&self) -> Option<LogLevel> {
        ClientWrapper::log_level(self)
    }

    fn calls_tools(&self) -> bool {
        ClientWrapper::calls_tools(self)
    }

    fn expects_objects(&self) -> bool {
        ClientWrapper::expects_objects(self)
    }

    fn takes_tasks(&self) -> bool {
        ClientWrapper::takes_tasks(self)
    }

    fn notify(&self, notice: ClientNotification) {
        ClientWrapper::notify(self, notice);
    }

    fn ask(&self, ask: InputRequest) -> BoxFuture<'_, Result<Json, InputRequestError>> {
        ClientWrapper::ask(self, ask)
    }

    fn asked_for(&self) -> Duration {
        ClientWrapper::asked_for(self)
    }

    fn session(&self) -> Option<Arc<dyn ClientSession>> {
        ClientWrapper::session(self)
    }
}

/// A notification of a running call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientNotification {
    /// Progress of the work. The frontend of the call sets the token.
    Progress(NotificationBody),
    /// A log message.
    Log(NotificationBody),
    /// A notification that only the server and the client understand.
    Other {
        /// Method of the notification.
        method: Arc<str>,
        /// Content of the notification.
        body: NotificationBody,
    },
}

/// The content of a notification as it arrived.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotificationBody {
    /// Parameters of the notification.
    pub params: Object,
    /// Members beside the parameters that MCP does not define.
    pub envelope: Object,
}

impl From<Object> for NotificationBody {
    fn from(params: Object) -> Self {
        Self { params, envelope: Object::new() }
    }
}

/// The kinds of requests to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InputRequestKind {
    /// Input or consent of the user (elicitation).
    Elicit,
    /// A completion by the client's model (sampling).
    Sample,
    /// The folders that servers may work on (roots).
    Roots,
}

impl InputRequestKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Elicit, Self::Sample, Self::Roots];

    /// Returns the capability that a client declares for this kind.
    #[must_use]
    pub const fn capability(self) -> &'static str {
        match self {
            Self::Elicit => "elicitation",
            Self::Sample => "sampling",
            Self::Roots => "roots",
        }
    }
}

/// A request to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRequest {
    /// Kind of the request.
    pub kind: InputRequestKind,
    /// Parameters of the request.
    pub params: Object,
}

impl InputRequest {
    /// Returns `true` if the model of a client with these capabilities can be given tools (2025-11-25, client/sampling,
    /// capabilities).
    #[must_use]
    pub fn can_give_tools(capabilities: Option<&Json>) -> bool {
        let params = Object::new().with("tools", Json::array([]));
        Self { kind: InputRequestKind::Sample, params }.is_for(capabilities)
    }

    /// Returns `true` if a client with these capabilities supports the request.
    #[must_use]
    pub fn is_for(&self, capabilities: Option<&Json>) -> bool {
        let member = |object: &Json, name: &str| object.to_object().ok()?.get(name).cloned();
        let capability = capabilities.and_then(|all| member(all, self.kind.capability()));
        let Some(capability) = capability.filter(Json::is_object) else { return false };
        let has = |part| member(&capability, part).is_some_and(|part| part.is_object());
        match self.part() {
            // Without further members a client supports forms (2025-11-25, client/elicitation, capabilities).
            Some("form") => has("form") || !has("url"),
            Some(part) => has(part),
            None => true,
        }
    }

    /// Returns the capability that a client has to declare for this request.
    #[must_use]
    pub fn required(&self) -> Object {
        let inner =
            self.part().map_or_else(Object::new, |part| Object::new().with(part, Object::new().to_json()));
        Object::new().with(self.kind.capability(), inner.to_json())
    }

    /// Returns the member of the kind's capability that this request needs.
    fn part(&self) -> Option<&'static str> {
        let has = |name| self.params.get(name).is_some();
        match self.kind {
            InputRequestKind::Elicit if self.params.get_str("mode").as_deref() == Some("url") => Some("url"),
            InputRequestKind::Elicit => Some("form"),
            InputRequestKind::Sample => (has("tools") || has("toolChoice")).then_some("tools"),
            InputRequestKind::Roots => None,
        }
    }
}

/// The reason why a client did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputRequestError {
    /// The client has not declared support: the required capability, whole.
    #[error("the client does not support {}", path_of(.0))]
    Unsupported(Object),
    /// The client answered with an error: the JSON-RPC error object.
    #[error("the client refused: {}", message_of(.0))]
    Refused(Json),
    /// The request is invalid, and was not sent.
    #[error("the question cannot be asked: {0}")]
    BadQuestion(String),
    /// The answer does not fit the request.
    #[error("the client's answer does not fit: {0}")]
    BadAnswer(String),
    /// The client took longer than a request may stay open.
    #[error("the client did not answer in time")]
    TooLate,
    /// The client is gone, or has too many open requests.
    #[error("the client cannot be asked")]
    Gone,
}

/// Returns a capability as a path, such as `sampling.tools`.
fn path_of(capability: &Object) -> String {
    let Some((name, inner)) = capability.iter().next() else { return String::new() };
    match inner.to_object().ok().filter(|inner| !inner.is_empty()) {
        Some(inner) => format!("{name}.{}", path_of(&inner)),
        None => name.into_owned(),
    }
}

fn message_of(error: &Json) -> String {
    let message =
        error.to_object().ok().and_then(|error| error.get_str("message").map(|text| text.into_owned()));
    message.unwrap_or_else(|| "no message".to_owned())
}

/// The error of a call that cannot continue without the answer.
impl From<InputRequestError> for ToolError {
    fn from(error: InputRequestError) -> Self {
        match error {
            InputRequestError::Unsupported(capability) => Self::missing_capability(capability),
            InputRequestError::TooLate => Self::new(ErrorCode::Timeout, "The client did not answer in time"),
            InputRequestError::Refused(_)
            | InputRequestError::BadQuestion(_)
            | InputRequestError::BadAnswer(_)
            | InputRequestError::Gone => {
                Self::new(ErrorCode::ExecutionFailed, "The client did not give what it was asked for")
                    .caused_by(error)
            }
        }
    }
}

/// A client that receives no notifications and cannot be asked.
#[derive(Debug, Clone, Copy)]
pub struct NoClient;

impl Client for NoClient {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn listens(&self) -> bool {
        false
    }

    fn notify(&self, _notice: ClientNotification) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that answers every method.
    #[derive(Debug)]
    struct AnsweringClient(Json);

    impl Client for AnsweringClient {
        fn capabilities(&self) -> Option<&Json> {
            Some(&self.0)
        }

        fn listens(&self) -> bool {
            true
        }

        fn log_level(&self) -> Option<LogLevel> {
            Some(LogLevel::Alert)
        }

        fn takes_tasks(&self) -> bool {
            true
        }

        fn notify(&self, _notice: ClientNotification) {}

        fn ask(&self, _ask: InputRequest) -> BoxFuture<'_, Result<Json, InputRequestError>> {
            std::future::ready(Err(InputRequestError::TooLate)).boxed()
        }

        fn asked_for(&self) -> Duration {
            Duration::from_secs(7)
        }

        fn session(&self) -> Option<Arc<dyn ClientSession>> {
            Some(Arc::new(EndedSession))
        }
    }

    #[derive(Debug)]
    struct EndedSession;

    impl ClientSession for EndedSession {
        fn ask(&self, _ask: InputRequest) -> BoxFuture<'_, Result<Json, InputRequestError>> {
            std::future::ready(Err(InputRequestError::Gone)).boxed()
        }

        fn ended(&self) -> BoxFuture<'_, ()> {
            std::future::ready(()).boxed()
        }
    }

    #[derive(Debug)]
    struct Deaf(AnsweringClient);

    impl ClientWrapper for Deaf {
        fn inner(&self) -> &dyn Client {
            &self.0
        }

        fn listens(&self) -> bool {
            false
        }
    }

    #[test]
    fn tools_for_a_model_need_a_capability_of_their_own() {
        let check = |capabilities: &str, expected: bool| {
            let capabilities = Json::parse(capabilities.to_owned()).unwrap();
            assert_eq!(InputRequest::can_give_tools(Some(&capabilities)), expected, "{capabilities:?}");
        };
        check("{}", false);
        check(r#"{"sampling":{}}"#, false);
        check(r#"{"sampling":{"context":{}}}"#, false);
        check(r#"{"sampling":{"tools":{}}}"#, true);
        assert!(!InputRequest::can_give_tools(None));
    }

    #[test]
    fn wrapper_changes_only_its_own_answers() {
        let answers = |client: &dyn Client| {
            let ask = InputRequest { kind: InputRequestKind::Roots, params: Object::new() };
            let input = client.ask(ask).now_or_never();
            let can = (client.capabilities().cloned(), client.can_be_asked(), client.log_level());
            let (asked_for, takes_tasks) = (client.asked_for(), client.takes_tasks());
            let answers = format!("{can:?} {input:?} {asked_for:?} {takes_tasks} {:?}", client.session());
            (client.listens(), answers)
        };
        let inner = || AnsweringClient(Json::parse(r#"{"roots":{}}"#).unwrap());
        let (direct, wrapped) = (answers(&inner()), answers(&Deaf(inner())));
        assert_eq!((direct.0, wrapped.0), (true, false));
        assert_eq!(direct.1, wrapped.1);
    }
}
