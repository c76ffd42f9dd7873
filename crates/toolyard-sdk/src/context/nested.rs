//! Calling another tool of the same server.

use std::sync::{Arc, Weak};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_core::{
    AskError, Call, Client, ClientWrapper, Code, Gateway, Json, Notice, Object, Outcome, Output, Target,
    ToolError,
};
use toolyard_mcp::wire::{ask_of, meta};

use super::Context;
use crate::client::unwrapped;
use crate::content::Content;

/// How many calls may stand in each other. A tool that calls itself ends here.
const DEEPEST: u64 = 16;

/// How often a tool that was called may ask for more.
const MOST_ROUNDS: usize = 16;

/// The member of `_meta` that says in how many others a call stands. Whoever sends it from outside can only make its
/// own calls end sooner.
const DEPTH: &str = "toolyard/depth";

/// Why a tool could not be called. That it ran and failed is a [`CallResult`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The arguments cannot be written as a JSON object.
    #[error("the arguments are no JSON object")]
    Arguments,
    /// Too many calls stand in each other.
    #[error("{DEEPEST} tools are calling each other already")]
    TooDeep,
    /// The tool asks for more again and again, or goes on as a task, which nobody here can follow.
    #[error("the tool does not come to an end in one call")]
    Unfinished,
    /// There is no such tool, its arguments do not fit, or it does not answer.
    #[error(transparent)]
    Failed(#[from] ToolError),
    /// It needed an answer of the client that there is not.
    #[error(transparent)]
    Ask(#[from] AskError),
}

/// What a tool that was called said.
#[derive(Debug, Clone)]
pub struct CallResult(Output);

impl CallResult {
    /// Whether the tool says that it failed.
    ///
    /// ```
    /// # use toolyard_sdk::CallResult;
    /// fn outcome(result: &CallResult) -> &'static str {
    ///     if result.is_error() { "failed" } else { "done" }
    /// }
    /// ```
    #[must_use]
    pub const fn is_error(&self) -> bool {
        self.0.is_error
    }

    /// The content, piece by piece.
    ///
    /// ```
    /// # use toolyard_sdk::CallResult;
    /// fn images(result: &CallResult) -> usize {
    ///     result.content().iter().filter(|content| content.kind() == "image").count()
    /// }
    /// ```
    #[must_use]
    pub fn content(&self) -> Vec<Content> {
        let items = self.0.body.get("content").and_then(|content| content.to_items().ok());
        items.into_iter().flatten().filter_map(|item| Content::from_json(&item).ok()).collect()
    }

    /// All that is text in it.
    ///
    /// ```
    /// # use toolyard_sdk::CallResult;
    /// fn first_line(result: &CallResult) -> Option<String> {
    ///     result.text().lines().next().map(str::to_owned)
    /// }
    /// ```
    #[must_use]
    pub fn text(&self) -> String {
        let content = self.content();
        content.iter().filter_map(Content::as_text).collect()
    }

    /// The structured content, as a `T`; or its `result`, where that is all that it has: lists and numbers are sent
    /// in this way.
    ///
    /// # Errors
    /// When there is none, or it does not fit.
    ///
    /// ```
    /// # use toolyard_sdk::{CallResult, ToolFailure};
    /// # #[derive(serde::Deserialize)]
    /// # struct Weather { celsius: f64 }
    /// fn is_warm(result: &CallResult) -> Result<bool, ToolFailure> {
    ///     Ok(result.structured::<Weather>()?.celsius > 20.0)
    /// }
    /// ```
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        unwrapped(self.0.body.get("structuredContent").map_or(Value::Null, Json::to_value))
    }

    /// The whole result.
    ///
    /// ```
    /// # use toolyard_sdk::CallResult;
    /// fn trace(result: &CallResult) -> serde_json::Value {
    ///     result.raw()["_meta"]["example.com/trace"].clone()
    /// }
    /// ```
    #[must_use]
    pub fn raw(&self) -> Value {
        self.0.body.to_json().to_value()
    }
}

impl Context {
    /// Calls another tool of the same server, for the same client: its arguments are checked, it can log and ask the
    /// client, and it has no more time than this call. Its progress is not told, because it would mix with this
    /// call's. When the tool asks in rounds, its questions are asked before this returns.
    ///
    /// # Errors
    /// When there is no such tool, the arguments do not fit it, it does not answer, or 16 tools call each other
    /// already.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolyard_sdk::{Context, ToolFailure};
    ///
    /// async fn shout(ctx: Context) -> Result<String, ToolFailure> {
    ///     let reversed = ctx.call_tool("reverse_string", &json!({"input": "hello"})).await?;
    ///     Ok(reversed.text().to_uppercase())
    /// }
    /// ```
    pub async fn call_tool<A>(&self, name: &str, arguments: &A) -> Result<CallResult, CallError>
    where
        A: Serialize + Sync + ?Sized,
    {
        let mut call = self.nested(name, arguments)?;
        let gateway = self.shared().gateway.get().and_then(Weak::upgrade);
        let gateway: Arc<Gateway> =
            gateway.ok_or_else(|| ToolError::new(Code::Unavailable, "The server has ended"))?;
        for _ in 0..MOST_ROUNDS {
            match gateway.invoke(call.clone()).await? {
                Outcome::Done(output) => return Ok(CallResult(output)),
                Outcome::NeedsInput(body) => answer(&mut call, &body).await?,
                Outcome::Task(_) => return Err(CallError::Unfinished),
            }
        }
        Err(CallError::Unfinished)
    }

    fn nested<A: Serialize + ?Sized>(&self, name: &str, arguments: &A) -> Result<Call, CallError> {
        let outer = self.call();
        let depth = depth(&outer.meta).saturating_add(1);
        if depth > DEEPEST {
            return Err(CallError::TooDeep);
        }
        let written = serde_json::to_vec(arguments).ok().and_then(|text| Json::parse(text).ok());
        // A unit, which stands for no arguments, is written as `null`.
        let arguments =
            written.filter(|json| json.is_object() || json.is_null()).ok_or(CallError::Arguments)?;
        let mut meta = outer.meta.clone();
        meta.remove(meta::PROGRESS_TOKEN);
        meta.set(DEPTH, Json::unsigned(depth));
        Ok(Call {
            target: Target::Tool(name.into()),
            params: Object::new().with("arguments", arguments),
            meta,
            caller: outer.caller.clone(),
            origin: outer.origin.clone(),
            deadline: outer.deadline,
            client: Arc::new(Quiet(outer.client.clone())),
        })
    }
}

/// In how many others a call stands. What is no count of ours was sent by a client to its outermost call.
fn depth(meta: &Object) -> u64 {
    meta.get(DEPTH).and_then(|depth| depth.to_value().as_u64()).unwrap_or(0)
}

/// Asks the client what a call needs to know, and makes it the next round's.
async fn answer(call: &mut Call, body: &Object) -> Result<(), CallError> {
    let requests =
        body.get("inputRequests").and_then(|requests| requests.to_object().ok()).unwrap_or_default();
    let mut answers = Object::new();
    for (key, request) in requests.iter() {
        let ask = ask_of(request).ok_or(CallError::Unfinished)?;
        answers.set(&key, call.client.ask(ask).await?);
    }
    call.params.set("inputResponses", answers.to_json());
    match body.get("requestState") {
        Some(state) => call.params.set("requestState", state.clone()),
        None => _ = call.params.remove("requestState"),
    }
    Ok(())
}

/// The client of a call, for a call in it: it hears no progress.
#[derive(Debug)]
struct Quiet(Arc<dyn Client>);

impl ClientWrapper for Quiet {
    fn inner(&self) -> &dyn Client {
        &*self.0
    }

    fn listens(&self) -> bool {
        false
    }

    /// It is a program that reads what comes of it.
    fn calls_tools(&self) -> bool {
        false
    }

    fn notify(&self, notice: Notice) {
        if let Notice::Log(_) = notice {
            self.0.notify(notice);
        }
    }
}
