//! Calls that go round by round: the answer is a list of questions, and the client calls again with the answers
//! (MCP 2026-07-28, basic/patterns/mrtr). Nothing is kept here meanwhile: what a call has to remember travels
//! through the client, sealed.

mod seal;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_core::{Ask, AskKind, Code, Json, Object, Outcome, ToolError};
use toolyard_mcp::wire::method_of;

use crate::context::Context;
use crate::elicit::{Elicit, Elicited, form};
use crate::failure::ToolFailure;
use crate::roots::{Root, RootsRequest};
use crate::sample::{Sample, SampleRequest};

/// What a client can be asked: an [`Elicit`], a [`SampleRequest`] or a [`RootsRequest`].
#[diagnostic::on_unimplemented(
    message = "a client cannot be asked `{Self}`",
    label = "not a question",
    note = "a question is an `Elicit`, a `SampleRequest` or a `RootsRequest`"
)]
pub trait Question: sealed::Sealed {
    /// What comes back.
    type Answer;

    #[doc(hidden)]
    fn prepare(self) -> Result<Prepared, BadQuestion>;

    #[doc(hidden)]
    fn read(answer: &Json) -> Result<Self::Answer, BadAnswer>;
}

pub(crate) mod sealed {
    /// Questions are those that MCP knows.
    pub trait Sealed {}
}

/// A question that can be sent.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Prepared {
    pub(crate) ask: Ask,
    pub(crate) need: Need,
}

/// A question that MCP does not allow: a form with something in it that is no text, number, boolean or choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nothing was asked: {0}")]
pub struct BadQuestion(pub(crate) String);

/// An answer that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its answer cannot be used: {0}")]
pub struct BadAnswer(pub(crate) String);

impl From<serde_json::Error> for BadAnswer {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

/// What a client must have declared to be asked something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Form,
    Url,
    Sample,
    SampleWithTools,
    Roots,
}

impl Need {
    /// The member of the capabilities, and the member of that one.
    const fn path(self) -> (AskKind, Option<&'static str>) {
        match self {
            Self::Form => (AskKind::Elicit, None),
            Self::Url => (AskKind::Elicit, Some("url")),
            Self::Sample => (AskKind::Sample, None),
            Self::SampleWithTools => (AskKind::Sample, Some("tools")),
            Self::Roots => (AskKind::Roots, None),
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
            // An empty object means forms alone (client/elicitation, capabilities).
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

/// How long a sealed state is good for: a user may have to read something or sign in somewhere first.
const VALID_FOR: Duration = Duration::from_secs(60 * 60);

/// What a handler returns to ask the client first. It is called again, with the same arguments, when the client
/// has the answers: [`Context::elicited`], [`Context::sampled`] and [`Context::rooted`] find them by their keys,
/// and [`Context::state`] what was to be remembered. An answer that is missing or does not fit is `None`: just ask
/// again.
///
/// In contrast to [`Context::elicit`] nothing waits here meanwhile, so that the next call may reach another process
/// ([`Server::state_key`](crate::Server::state_key) has to be the same then). Clients of older revisions are asked one
/// question after the other while their call waits; the handler sees no difference.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolyard_sdk::{Context, Elicit, Elicited, InputRequired, Reply};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Name {
///     name: String,
/// }
///
/// async fn greet(ctx: Context) -> Reply {
///     match ctx.elicited::<Name>("user_name") {
///         Some(Elicited::Accepted(user)) => Reply::new().text(format!("Hello, {}!", user.name)),
///         Some(_) => Reply::new().text("Hello, whoever you are."),
///         None => InputRequired::new().ask("user_name", Elicit::form::<Name>("What is your name?")).into(),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct InputRequired {
    questions: Vec<Keyed>,
    state: Option<Vec<u8>>,
    valid_for: Duration,
}

#[derive(Clone)]
struct Keyed {
    key: String,
    question: Result<Prepared, BadQuestion>,
    /// Left out where the client cannot be asked, instead of failing the call.
    optional: bool,
}

impl Default for InputRequired {
    fn default() -> Self {
        Self { questions: Vec::new(), state: None, valid_for: VALID_FOR }
    }
}

impl InputRequired {
    /// No questions yet. One without any, but with a state, asks the client to call again.
    ///
    /// ```
    /// # use toolyard_sdk::{InputRequired, RootsRequest};
    /// let asks = InputRequired::new().ask("folders", RootsRequest);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a question. A client that has not declared that it can be asked this fails the call with an error
    /// that names the capability; nothing is asked then.
    ///
    /// ```
    /// # use toolyard_sdk::{InputRequired, RootsRequest, SampleRequest};
    /// let asks = InputRequired::new()
    ///     .ask("capital", SampleRequest::new().user("What is the capital of France?"))
    ///     .ask("folders", RootsRequest);
    /// ```
    #[must_use]
    pub fn ask(self, key: impl Into<String>, question: impl Question) -> Self {
        self.with(key.into(), question.prepare(), false)
    }

    /// Adds a question that is left out where the client cannot be asked it. The call fails only when no question
    /// is left and there is no state.
    ///
    /// ```
    /// # use toolyard_sdk::{InputRequired, RootsRequest};
    /// let asks = InputRequired::new().ask_if_able("folders", RootsRequest);
    /// ```
    #[must_use]
    pub fn ask_if_able(self, key: impl Into<String>, question: impl Question) -> Self {
        self.with(key.into(), question.prepare(), true)
    }

    fn with(mut self, key: String, question: Result<Prepared, BadQuestion>, optional: bool) -> Self {
        self.questions.retain(|known| known.key != key);
        self.questions.push(Keyed { key, question, optional });
        self
    }

    /// Sets what the next round finds in [`Context::state`]. The client carries it, but can neither read nor
    /// change it, nor use it for another call, with other arguments or in another session. Within its time it can
    /// use it twice: what must happen only once has to be remembered here.
    ///
    /// # Errors
    /// When the state cannot be written as JSON.
    ///
    /// ```
    /// # use toolyard_sdk::{Context, Elicit, InputRequired, Reply, ToolFailure};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Color { color: String }
    /// # fn second(name: String) -> Result<Reply, ToolFailure> {
    /// let asks = InputRequired::new().ask("color", Elicit::form::<Color>("Which color?")).state(&name)?;
    /// # Ok(asks.into())
    /// # }
    /// ```
    pub fn state<S: Serialize + ?Sized>(mut self, state: &S) -> Result<Self, serde_json::Error> {
        self.state = Some(serde_json::to_vec(state)?);
        Ok(self)
    }

    /// Sets for how long the state is good; an hour if this is not called.
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

    /// What the call comes to.
    pub(crate) fn outcome(self, context: &Context) -> Result<Outcome, ToolError> {
        let mut requests = Object::new();
        let mut lacking = Object::new();
        let mut possible = self.state.is_some();
        for Keyed { key, question, optional } in self.questions {
            let Prepared { ask, need } = question.map_err(|error| {
                ToolError::new(Code::ExecutionFailed, "The tool asks for something that cannot be asked for")
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
            return Err(ToolError::new(Code::ExecutionFailed, "The tool asks for nothing"));
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

fn request(ask: &Ask) -> Json {
    let method = Json::string(method_of(ask.kind));
    Object::new().with("method", method).with("params", ask.params.to_json()).to_json()
}

/// Shows what is asked for, and nothing that the state holds.
impl fmt::Debug for InputRequired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.questions.iter().map(|question| &question.key).collect();
        f.debug_struct("InputRequired").field("questions", &keys).finish_non_exhaustive()
    }
}

impl Context {
    /// What the client answered to the question of this key, as it came; `None` where there is no answer.
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

    fn answered<Q: Question>(&self, key: &str) -> Option<Q::Answer> {
        Q::read(&self.raw_answer(key)?).ok()
    }

    /// What the user entered into the form of this key; `None` where there is no answer, or none that fits `T`.
    ///
    /// ```
    /// # use toolyard_sdk::{Context, Elicited};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Name { name: String }
    /// fn name(ctx: &Context) -> Option<String> {
    ///     ctx.elicited::<Name>("user_name")?.accepted().map(|user| user.name)
    /// }
    /// ```
    #[must_use]
    pub fn elicited<T: DeserializeOwned + JsonSchema>(&self, key: &str) -> Option<Elicited<T>> {
        form::check(&form::of::<T>().ok()?, &self.raw_answer(key)?).ok()?;
        self.answered::<Elicit>(key)?.parse().ok()
    }

    /// What the client's model said to the question of this key; `None` where there is no answer.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// fn capital(ctx: &Context) -> Option<String> {
    ///     Some(ctx.sampled("capital")?.text())
    /// }
    /// ```
    #[must_use]
    pub fn sampled(&self, key: &str) -> Option<Sample> {
        self.answered::<SampleRequest>(key)
    }

    /// The folders that the client gave for the question of this key; `None` where there is no answer.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// fn how_many(ctx: &Context) -> usize {
    ///     ctx.rooted("folders").map_or(0, |roots| roots.len())
    /// }
    /// ```
    #[must_use]
    pub fn rooted(&self, key: &str) -> Option<Vec<Root>> {
        self.answered::<RootsRequest>(key)
    }

    /// What the round before this one wanted to be remembered, with [`InputRequired::state`]; `None` in the first
    /// round.
    ///
    /// # Errors
    /// When the client sends a state that was not made for this call, was changed, or is too old. Pass it on with
    /// `?`: it becomes the JSON-RPC error -32602.
    ///
    /// ```
    /// # use toolyard_sdk::{Context, InputRequired, Reply, RootsRequest, ToolFailure};
    /// async fn count(ctx: Context) -> Result<Reply, ToolFailure> {
    ///     let round: u32 = ctx.state()?.unwrap_or(0);
    ///     if round < 2 {
    ///         return Ok(InputRequired::new().ask("folders", RootsRequest).state(&(round + 1))?.into());
    ///     }
    ///     Ok(Reply::new().text("That was the third round."))
    /// }
    /// ```
    pub fn state<S: DeserializeOwned>(&self) -> Result<Option<S>, ToolFailure> {
        let Some(state) = self.call().params.get("requestState") else { return Ok(None) };
        let opened = seal::open(self, state)?;
        let state =
            serde_json::from_slice(&opened).map_err(|_| seal::refused("it is not of the expected form"))?;
        Ok(Some(state))
    }

    /// Whether this is not the first round: such results depend on more than what a cache could know.
    pub(crate) fn is_retry(&self) -> bool {
        let params = &self.call().params;
        ["inputResponses", "requestState"].into_iter().any(|name| params.get(name).is_some())
    }
}
