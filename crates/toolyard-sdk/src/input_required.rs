//! Multi-round-trip calls: the reply is a list of questions, and the client calls again with the answers (MCP
//! 2026-07-28, basic/patterns/mrtr). The server keeps nothing between the rounds: the state of a call travels through
//! the client, sealed.

mod seal;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_core::{ErrorCode, InputRequest, InputRequestKind, Json, Object, Outcome, ToolError};
use toolyard_mcp::wire::ask_method;

use crate::context::Context;
use crate::elicit::{ElicitRequest, ElicitResult, form};
use crate::failure::ToolFailure;
use crate::roots::{Root, RootsRequest};
use crate::sample::{SampleRequest, SampleResult};

/// A question to the client: an [`ElicitRequest`], a [`SampleRequest`] or a [`RootsRequest`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a question to the client",
    label = "not a question",
    note = "a question is an `ElicitRequest`, a `SampleRequest` or a `RootsRequest`"
)]
pub trait ClientQuestion: sealed::Sealed {
    /// The type of the answer.
    type Answer;

    #[doc(hidden)]
    fn prepare(self) -> Result<PreparedQuestion, BadQuestion>;

    #[doc(hidden)]
    fn read(answer: &Json) -> Result<Self::Answer, BadAnswer>;
}

pub(crate) mod sealed {
    /// Restricts questions to those that MCP defines.
    pub trait Sealed {}
}

/// A question that is ready to be sent.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct PreparedQuestion {
    pub(crate) ask: InputRequest,
    pub(crate) need: RequiredCapability,
}

/// A question that MCP does not allow: a form with a field that is not a string, number, boolean or choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid question: {0}")]
pub struct BadQuestion(pub(crate) String);

/// An answer that does not have the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid answer: {0}")]
pub struct BadAnswer(pub(crate) String);

impl From<serde_json::Error> for BadAnswer {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

/// A capability that a client must declare to be asked a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredCapability {
    Form,
    Url,
    Sample,
    SampleWithTools,
    Roots,
}

impl RequiredCapability {
    /// The capability, and the member of it that is required.
    const fn path(self) -> (InputRequestKind, Option<&'static str>) {
        match self {
            Self::Form => (InputRequestKind::Elicit, None),
            Self::Url => (InputRequestKind::Elicit, Some("url")),
            Self::Sample => (InputRequestKind::Sample, None),
            Self::SampleWithTools => (InputRequestKind::Sample, Some("tools")),
            Self::Roots => (InputRequestKind::Roots, None),
        }
    }

    pub(crate) fn met_by(self, capabilities: Option<&Json>) -> bool {
        let (kind, part) = self.path();
        let member = |object: &Json, name: &str| object.to_object().ok()?.get(name).cloned();
        let Some(capability) = capabilities.and_then(|all| member(all, kind.capability())) else {
            return false;
        };
        let has = |part| member(&capability, part).is_some_and(|part| part.is_object());
        match part {
            Some(part) => has(part),
            // An empty object means forms only (client/elicitation, capabilities).
            None if self == Self::Form => capability.is_object() && (has("form") || !has("url")),
            None => capability.is_object(),
        }
    }

    fn add_to(self, capabilities: &mut Object) {
        let (kind, part) = self.path();
        let inner = capabilities.get(kind.capability()).and_then(|inner| inner.to_object().ok());
        let inner = part
            .into_iter()
            .fold(inner.unwrap_or_default(), |inner, part| inner.with(part, Object::new().to_json()));
        capabilities.set(kind.capability(), inner.to_json());
    }
}

/// Default validity of a sealed state: a user may have to read something or sign in first.
const STATE_TTL: Duration = Duration::from_secs(60 * 60);

/// A reply that asks the client first. When the client has the answers, the handler is called again with the same
/// arguments: [`Context::elicit_answer`], [`Context::sample_answer`] and [`Context::roots_answer`] return the answers
/// by key, and [`Context::state`] the saved state. A missing or invalid answer is `None`: ask again.
///
/// Unlike [`Context::elicit`], it leaves nothing waiting on the server, so the next call may reach another process (all
/// processes need the same [`Server::state_key`](crate::Server::state_key)). Clients of older revisions are asked one
/// question after another while their call waits; the handler sees no difference.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolyard_sdk::{Context, ElicitRequest, ElicitResult, InputRequired, ToolReply};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Name {
///     name: String,
/// }
///
/// async fn greet(ctx: Context) -> ToolReply {
///     match ctx.elicit_answer::<Name>("user_name") {
///         Some(ElicitResult::Accepted(user)) => ToolReply::new().text(format!("Hello, {}!", user.name)),
///         Some(_) => ToolReply::new().text("Hello, stranger."),
///         None => InputRequired::new().ask("user_name", ElicitRequest::form::<Name>("What is your name?")).into(),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct InputRequired {
    questions: Vec<KeyedQuestion>,
    state: Option<Vec<u8>>,
    valid_for: Duration,
}

#[derive(Clone)]
struct KeyedQuestion {
    key: String,
    question: Result<PreparedQuestion, BadQuestion>,
    /// Skipped if the client cannot be asked, instead of failing the call.
    optional: bool,
}

impl Default for InputRequired {
    fn default() -> Self {
        Self { questions: Vec::new(), state: None, valid_for: STATE_TTL }
    }
}

impl InputRequired {
    /// A reply without questions. A reply with a state and no questions asks the client to call again.
    ///
    /// ```
    /// # use toolyard_sdk::{InputRequired, RootsRequest};
    /// let asks = InputRequired::new().ask("folders", RootsRequest);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a question. If the client lacks the capability for it, the call fails with an error that names the
    /// capability, and nothing is asked.
    ///
    /// ```
    /// # use toolyard_sdk::{InputRequired, RootsRequest, SampleRequest};
    /// let asks = InputRequired::new()
    ///     .ask("capital", SampleRequest::new().user("What is the capital of France?"))
    ///     .ask("folders", RootsRequest);
    /// ```
    #[must_use]
    pub fn ask(self, key: impl Into<String>, question: impl ClientQuestion) -> Self {
        self.with(key.into(), question.prepare(), false)
    }

    /// Adds a question that is skipped if the client lacks the capability for it. The call fails only if no question is
    /// left and there is no state.
    ///
    /// ```
    /// # use toolyard_sdk::{InputRequired, RootsRequest};
    /// let asks = InputRequired::new().ask_if_supported("folders", RootsRequest);
    /// ```
    #[must_use]
    pub fn ask_if_supported(self, key: impl Into<String>, question: impl ClientQuestion) -> Self {
        self.with(key.into(), question.prepare(), true)
    }

    fn with(mut self, key: String, question: Result<PreparedQuestion, BadQuestion>, optional: bool) -> Self {
        self.questions.retain(|other| other.key != key);
        self.questions.push(KeyedQuestion { key, question, optional });
        self
    }

    /// Sets the value that the next round reads with [`Context::state`]. The client carries it, but can neither read
    /// nor change it, nor use it for another call, with other arguments or in another session. It can use it more than
    /// once while it is valid: track operations that must happen only once on the server.
    ///
    /// # Errors
    /// If the state cannot be serialized as JSON.
    ///
    /// ```
    /// # use toolyard_sdk::{Context, ElicitRequest, InputRequired, ToolReply, ToolFailure};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Color { color: String }
    /// # fn second(name: String) -> Result<ToolReply, ToolFailure> {
    /// let asks = InputRequired::new().ask("color", ElicitRequest::form::<Color>("Which color?")).state(&name)?;
    /// # Ok(asks.into())
    /// # }
    /// ```
    pub fn state<S: Serialize + ?Sized>(mut self, state: &S) -> Result<Self, serde_json::Error> {
        self.state = Some(serde_json::to_vec(state)?);
        Ok(self)
    }

    /// Sets the validity of the state; one hour by default.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use toolyard_sdk::{InputRequired, RootsRequest};
    /// let asks = InputRequired::new().ask("folders", RootsRequest).valid_for(Duration::from_secs(300));
    /// ```
    #[must_use]
    pub const fn valid_for(mut self, time: Duration) -> Self {
        self.valid_for = time;
        self
    }

    /// The outcome of the call.
    pub(crate) fn outcome(self, context: &Context) -> Result<Outcome, ToolError> {
        let mut requests = Object::new();
        let mut lacking = Object::new();
        let mut possible = self.state.is_some();
        for KeyedQuestion { key, question, optional } in self.questions {
            let PreparedQuestion { ask, need } = question.map_err(|error| {
                ToolError::new(ErrorCode::ExecutionFailed, "The tool asks an invalid question")
                    .caused_by(error)
            })?;
            if context.can(need) {
                requests.set(&key, request(&ask));
                possible = true;
            } else if optional {
                need.add_to(&mut lacking);
            } else {
                let mut required = Object::new();
                need.add_to(&mut required);
                return Err(ToolError::missing_capability(required));
            }
        }
        if !possible && lacking.is_empty() {
            return Err(ToolError::new(ErrorCode::ExecutionFailed, "The tool asks no question"));
        }
        if !possible {
            return Err(ToolError::missing_capability(lacking));
        }
        let mut body = Object::new().with("resultType", Json::string("input_required"));
        if !requests.is_empty() {
            body.set("inputRequests", requests.to_json());
        }
        if let Some(state) = self.state {
            body.set("requestState", Json::string(&seal::seal(context, &state, self.valid_for)));
        }
        Ok(Outcome::NeedsInput(body))
    }
}

fn request(ask: &InputRequest) -> Json {
    let method = Json::string(ask_method(ask.kind));
    Object::new().with("method", method).with("params", ask.params.to_json()).to_json()
}

/// Shows the keys of the questions, and nothing of the state.
impl fmt::Debug for InputRequired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.questions.iter().map(|question| &question.key).collect();
        f.debug_struct("InputRequired").field("questions", &keys).finish_non_exhaustive()
    }
}

impl Context {
    /// The client's untyped answer to the question with this key; `None` if there is none.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// fn seen(ctx: &Context) -> bool {
    ///     ctx.answer("user_name").is_some_and(|answer| answer["action"] == "accept")
    /// }
    /// ```
    #[must_use]
    pub fn answer(&self, key: &str) -> Option<Value> {
        self.raw_answer(key).map(|answer| answer.to_value())
    }

    fn raw_answer(&self, key: &str) -> Option<Json> {
        let answers = self.call().params.get("inputResponses")?.to_object().ok()?;
        answers.get(key).filter(|answer| answer.is_object()).cloned()
    }

    fn parsed_answer<Q: ClientQuestion>(&self, key: &str) -> Option<Q::Answer> {
        Q::read(&self.raw_answer(key)?).ok()
    }

    /// The values that the user entered in the form with this key; `None` if there is no answer, or none that fits `T`.
    ///
    /// ```
    /// # use toolyard_sdk::{Context, ElicitResult};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Name { name: String }
    /// fn name(ctx: &Context) -> Option<String> {
    ///     ctx.elicit_answer::<Name>("user_name")?.accepted().map(|user| user.name)
    /// }
    /// ```
    #[must_use]
    pub fn elicit_answer<T: DeserializeOwned + JsonSchema>(&self, key: &str) -> Option<ElicitResult<T>> {
        form::check(&form::of::<T>().ok()?, &self.raw_answer(key)?).ok()?;
        self.parsed_answer::<ElicitRequest>(key)?.parse().ok()
    }

    /// The response of the client's model to the question with this key; `None` if there is none.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// fn capital(ctx: &Context) -> Option<String> {
    ///     Some(ctx.sample_answer("capital")?.text())
    /// }
    /// ```
    #[must_use]
    pub fn sample_answer(&self, key: &str) -> Option<SampleResult> {
        self.parsed_answer::<SampleRequest>(key)
    }

    /// The client's folders in the answer to the question with this key; `None` if there is none.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// fn how_many(ctx: &Context) -> usize {
    ///     ctx.roots_answer("folders").map_or(0, |roots| roots.len())
    /// }
    /// ```
    #[must_use]
    pub fn roots_answer(&self, key: &str) -> Option<Vec<Root>> {
        self.parsed_answer::<RootsRequest>(key)
    }

    /// The state of the previous round, set with [`InputRequired::state`]; `None` in the first round.
    ///
    /// # Errors
    /// If the state was made for another call, was changed, or has expired. Pass the error on with `?`: it becomes the
    /// JSON-RPC error -32602.
    ///
    /// ```
    /// # use toolyard_sdk::{Context, InputRequired, ToolReply, RootsRequest, ToolFailure};
    /// async fn count(ctx: Context) -> Result<ToolReply, ToolFailure> {
    ///     let round: u32 = ctx.state()?.unwrap_or(0);
    ///     if round < 2 {
    ///         return Ok(InputRequired::new().ask("folders", RootsRequest).state(&(round + 1))?.into());
    ///     }
    ///     Ok(ToolReply::new().text("That was the third round."))
    /// }
    /// ```
    pub fn state<S: DeserializeOwned>(&self) -> Result<Option<S>, ToolFailure> {
        let Some(state) = self.call().params.get("requestState") else { return Ok(None) };
        let opened = seal::open(self, state)?;
        let state = serde_json::from_slice(&opened)
            .map_err(|_| seal::invalid_state("it does not have the expected type"))?;
        Ok(Some(state))
    }

    /// True after the first round: the result depends on more than a cache key contains.
    pub(crate) fn is_retry(&self) -> bool {
        let params = &self.call().params;
        ["inputResponses", "requestState"].into_iter().any(|name| params.get(name).is_some())
    }
}
