//! The client of a running call: the way back while it runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::error::{Code, ToolError};
use crate::json::{Json, Object};

/// The client of a running call, seen from the backend.
pub trait Client: Send + Sync + fmt::Debug {
    /// The capabilities that the backend may make use of during this call: an object as MCP clients
    /// declare it. `None` where nothing can be asked.
    fn capabilities(&self) -> Option<&Json>;

    /// Whether there is anything at all that the client can be asked.
    fn can_be_asked(&self) -> bool {
        self.capabilities().is_some_and(|capabilities| capabilities.as_bytes() != b"{}")
    }

    /// Whether notices of progress reach anybody: a backend may save itself the work.
    fn listens(&self) -> bool;

    /// The least severe log that the client wants of this call; `None` where it wants none.
    fn log_level(&self) -> Option<LogLevel> {
        None
    }

    /// Whether whoever reads what comes of the call can call tools because of it, as a model can. A large result may be put where
    /// tools find it, for such a one. Who calls by REST gets what it has asked for.
    fn calls_tools(&self) -> bool {
        false
    }

    /// Tells the client something while its call runs. Never waits: where the client does not keep
    /// up, notices are dropped, and the outcome is not.
    fn notify(&self, notice: Notice);

    /// Asks the client something, and waits for its answer: the result as the client gave it. Dropping the
    /// future withdraws the question.
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, AskError>> {
        std::future::ready(Err(AskError::Unsupported(ask.required()))).boxed()
    }

    /// How long this client has been asked so far, a question that is still open included. That time is the
    /// client's own, and not taken off the call's.
    fn asked_for(&self) -> Duration {
        Duration::ZERO
    }
}

/// A client that stands in front of another one and changes some of what that says and does. It is a [`Client`], and has
/// everything that it does not change from the one behind it.
pub trait ClientWrapper: Send + Sync + fmt::Debug {
    /// The client behind this.
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

    /// See [`Client::notify`].
    fn notify(&self, notice: Notice) {
        self.inner().notify(notice);
    }

    /// See [`Client::ask`].
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, AskError>> {
        self.inner().ask(ask)
    }

    /// See [`Client::asked_for`].
    fn asked_for(&self) -> Duration {
        self.inner().asked_for()
    }
}

// A method that is missing here would be lost by all of them in silence.
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

    fn notify(&self, notice: Notice) {
        ClientWrapper::notify(self, notice);
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Json, AskError>> {
        ClientWrapper::ask(self, ask)
    }

    fn asked_for(&self) -> Duration {
        ClientWrapper::asked_for(self)
    }
}

/// Something told while a call runs. The object is the notification's parameters as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// How far the work is. The token is put in by the door that made the call.
    Progress(Object),
    /// A line of log.
    Log(Object),
    /// What means something only to whoever said it and to the client.
    Other {
        /// The notification's method.
        method: Arc<str>,
        /// Its parameters.
        params: Object,
    },
}

/// What a client can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AskKind {
    /// The user, for some input or a consent.
    Elicit,
    /// The client's model, for a completion.
    Sample,
    /// Which folders it lets servers work on.
    Roots,
}

impl AskKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Elicit, Self::Sample, Self::Roots];

    /// The member of a client's capabilities that says that it can be asked this.
    #[must_use]
    pub const fn capability(self) -> &'static str {
        match self {
            Self::Elicit => "elicitation",
            Self::Sample => "sampling",
            Self::Roots => "roots",
        }
    }
}

/// One question to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// What is asked for.
    pub kind: AskKind,
    /// The particulars.
    pub params: Object,
}

impl Ask {
    /// Whether a client with these capabilities can be asked this.
    #[must_use]
    pub fn is_for(&self, capabilities: Option<&Json>) -> bool {
        let member = |object: &Json, name: &str| object.to_object().ok()?.get(name).cloned();
        let capability = capabilities.and_then(|all| member(all, self.kind.capability()));
        let Some(capability) = capability.filter(Json::is_object) else { return false };
        let has = |part| member(&capability, part).is_some_and(|part| part.is_object());
        match self.part() {
            // Forms are what clients without further words can show (2025-11-25, client/elicitation, capabilities).
            Some("form") => has("form") || !has("url"),
            Some(part) => has(part),
            None => true,
        }
    }

    /// The capability that a client has to declare to be asked this.
    #[must_use]
    pub fn required(&self) -> Object {
        let inner =
            self.part().map_or_else(Object::new, |part| Object::new().with(part, Object::new().to_json()));
        Object::new().with(self.kind.capability(), inner.to_json())
    }

    /// The member of the kind's capability that this takes.
    fn part(&self) -> Option<&'static str> {
        let has = |name| self.params.get(name).is_some();
        match self.kind {
            AskKind::Elicit if self.params.get_str("mode").as_deref() == Some("url") => Some("url"),
            AskKind::Elicit => Some("form"),
            AskKind::Sample => (has("tools") || has("toolChoice")).then_some("tools"),
            AskKind::Roots => None,
        }
    }
}

/// Why a client gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// It has not said that it can be asked this: the capability that it would have to declare, whole.
    #[error("the client does not support {}", path_of(.0))]
    Unsupported(Object),
    /// It answered with an error: the JSON-RPC error object.
    #[error("the client refused: {}", message_of(.0))]
    Refused(Json),
    /// What is to be asked is nothing that clients can be asked; it was not sent.
    #[error("the question cannot be asked: {0}")]
    BadQuestion(String),
    /// It gave an answer that does not fit the question.
    #[error("the client's answer does not fit: {0}")]
    BadAnswer(String),
    /// It took longer than a question may stay open.
    #[error("the client did not answer in time")]
    TooLate,
    /// It is gone, or too much is asked of it at once.
    #[error("the client cannot be asked")]
    Gone,
}

/// A capability in short, such as `sampling.tools`.
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

/// For who cannot go on without the answer.
impl From<AskError> for ToolError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Unsupported(capability) => Self::missing_capability(capability),
            AskError::TooLate => Self::new(Code::Timeout, "The client did not answer in time"),
            AskError::Refused(_) | AskError::BadQuestion(_) | AskError::BadAnswer(_) | AskError::Gone => {
                Self::new(Code::ExecutionFailed, "The client did not give what it was asked for")
                    .caused_by(error)
            }
        }
    }
}

/// How severe a line of log is (RFC 5424), least severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// For those who look for a fault.
    Debug,
    /// What normally happens.
    Info,
    /// Normal, but worth a look.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part has failed.
    Critical,
    /// Somebody must act at once.
    Alert,
    /// Nothing works any more.
    Emergency,
}

impl LogLevel {
    /// Every level, least severe first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Reads a level's name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }

    /// The name, as MCP writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

/// Nobody listens, and nobody can be asked.
#[derive(Debug, Clone, Copy)]
pub struct NoClient;

impl Client for NoClient {
    fn capabilities(&self) -> Option<&Json> {
        None
    }

    fn listens(&self) -> bool {
        false
    }

    fn notify(&self, _notice: Notice) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says of everything that is there.
    #[derive(Debug)]
    struct Somebody(Json);

    impl Client for Somebody {
        fn capabilities(&self) -> Option<&Json> {
            Some(&self.0)
        }

        fn listens(&self) -> bool {
            true
        }

        fn log_level(&self) -> Option<LogLevel> {
            Some(LogLevel::Alert)
        }

        fn notify(&self, _notice: Notice) {}

        fn ask(&self, _ask: Ask) -> BoxFuture<'_, Result<Json, AskError>> {
            std::future::ready(Err(AskError::TooLate)).boxed()
        }

        fn asked_for(&self) -> Duration {
            Duration::from_secs(7)
        }
    }

    #[derive(Debug)]
    struct Deaf(Somebody);

    impl ClientWrapper for Deaf {
        fn inner(&self) -> &dyn Client {
            &self.0
        }

        fn listens(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_wrapper_changes_what_it_says_and_nothing_else() {
        let said = |client: &dyn Client| {
            let ask = Ask { kind: AskKind::Roots, params: Object::new() };
            let asked = client.ask(ask).now_or_never();
            let can = (client.capabilities().cloned(), client.can_be_asked(), client.log_level());
            (client.listens(), format!("{can:?} {asked:?} {:?}", client.asked_for()))
        };
        let somebody = || Somebody(Json::parse(r#"{"roots":{}}"#).unwrap());
        let (there, behind) = (said(&somebody()), said(&Deaf(somebody())));
        assert_eq!((there.0, behind.0), (true, false));
        assert_eq!(there.1, behind.1);
    }
}
