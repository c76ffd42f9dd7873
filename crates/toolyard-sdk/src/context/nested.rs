//! Calls of other tools of the same server.

use std::sync::{Arc, Weak};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_core::output_schema::STRUCTURED;
use toolyard_core::{
    Call, CallOutput, CallTarget, Client, ClientNotification, ClientWrapper, ErrorCode, Gateway,
    InputRequestError, Json, Object, Outcome, ToolError,
};
use toolyard_mcp::wire::{meta, parse_ask};

use super::Context;
use crate::client::from_structured;
use crate::content::Content;

/// Maximum depth of nested calls. A tool that calls itself is stopped here.
const MAX_DEPTH: u64 = 16;

/// Maximum number of rounds that a called tool may ask for.
const MAX_ROUNDS: usize = 16;

/// The member of `_meta` with the nesting depth of a call. A client that sets it can only make its own calls fail
/// earlier.
const DEPTH_KEY: &str = "toolyard/depth";

/// Error of a nested call. A tool that ran and failed is a [`NestedCallResult`] instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NestedCallError {
    /// The arguments cannot be serialized as a JSON object.
    #[error("the arguments are not a JSON object")]
    Arguments,
    /// Too many nested calls.
    #[error("more than {MAX_DEPTH} nested tool calls")]
    TooDeep,
    /// The tool asks too often for input, or continues as a task, which a handler cannot follow.
    #[error("the tool did not finish within one call")]
    Unfinished,
    /// The tool is unknown, its arguments are invalid, or it does not answer.
    #[error(transparent)]
    Failed(#[from] ToolError),
    /// The tool needed an answer that the client did not give.
    #[error(transparent)]
    Ask(#[from] InputRequestError),
}

/// The result of a called tool.
#[derive(Debug, Clone)]
pub struct NestedCallResult(CallOutput);

impl NestedCallResult {
    /// True if the tool reports a failure.
    ///
    /// ```
    /// # use toolyard_sdk::NestedCallResult;
    /// fn outcome(result: &NestedCallResult) -> &'static str {
    ///     if result.is_error() { "failed" } else { "done" }
    /// }
    /// ```
    #[must_use]
    pub const fn is_error(&self) -> bool {
        self.0.is_error
    }

    /// The content blocks.
    ///
    /// ```
    /// # use toolyard_sdk::NestedCallResult;
    /// fn images(result: &NestedCallResult) -> usize {
    ///     result.content().iter().filter(|content| content.kind() == "image").count()
    /// }
    /// ```
    #[must_use]
    pub fn content(&self) -> Vec<Content> {
        let items = self.0.body.get("content").and_then(|content| content.to_items().ok());
        items.into_iter().flatten().filter_map(|item| Content::from_json(&item).ok()).collect()
    }

    /// The text of all content blocks.
    ///
    /// ```
    /// # use toolyard_sdk::NestedCallResult;
    /// fn first_line(result: &NestedCallResult) -> Option<String> {
    ///     result.text().lines().next().map(str::to_owned)
    /// }
    /// ```
    #[must_use]
    pub fn text(&self) -> String {
        let content = self.content();
        content.iter().filter_map(Content::as_text).collect()
    }

    /// The structured content as a `T`, or its `result` if it has no other member: lists and numbers are sent in this
    /// way.
    ///
    /// # Errors
    /// If there is none, or it is not a `T`.
    ///
    /// ```
    /// # use toolyard_sdk::{NestedCallResult, ToolFailure};
    /// # #[derive(serde::Deserialize)]
    /// # struct Weather { celsius: f64 }
    /// fn is_warm(result: &NestedCallResult) -> Result<bool, ToolFailure> {
    ///     Ok(result.structured::<Weather>()?.celsius > 20.0)
    /// }
    /// ```
    pub fn structured<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        from_structured(self.0.body.get(STRUCTURED).map_or(Value::Null, Json::to_value))
    }

    /// The whole result in MCP's JSON.
    ///
    /// ```
    /// # use toolyard_sdk::NestedCallResult;
    /// fn trace(result: &NestedCallResult) -> serde_json::Value {
    ///     result.raw()["_meta"]["example.com/trace"].clone()
    /// }
    /// ```
    #[must_use]
    pub fn raw(&self) -> Value {
        self.0.body.to_json().to_value()
    }
}

impl Context {
    /// Calls another tool of the same server for the same client: its arguments are checked, it can log and ask the
    /// client, and it shares the deadline of this call. Its progress is not reported, because it would mix with that of
    /// this call. If the tool returns [`InputRequired`](crate::InputRequired), its questions are asked before this
    /// method returns.
    ///
    /// # Errors
    /// If the tool does not exist or does not answer, the arguments are invalid, or calls are nested more than 16
    /// levels deep.
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
    pub async fn call_tool<A>(&self, name: &str, arguments: &A) -> Result<NestedCallResult, NestedCallError>
    where
        A: Serialize + Sync + ?Sized,
    {
        let mut call = self.nested(name, arguments)?;
        let gateway = self.shared().gateway.get().and_then(Weak::upgrade);
        let gateway: Arc<Gateway> =
            gateway.ok_or_else(|| ToolError::new(ErrorCode::Unavailable, "The server has ended"))?;
        for _ in 0..MAX_ROUNDS {
            match gateway.invoke(call.clone()).await? {
                Outcome::Done(output) => return Ok(NestedCallResult(output)),
                Outcome::NeedsInput(body) => answer(&mut call, &body).await?,
                Outcome::Task(_) => return Err(NestedCallError::Unfinished),
            }
        }
        Err(NestedCallError::Unfinished)
    }

    fn nested<A: Serialize + ?Sized>(&self, name: &str, arguments: &A) -> Result<Call, NestedCallError> {
        let outer = self.call();
        let depth = depth(&outer.meta).saturating_add(1);
        if depth > MAX_DEPTH {
            return Err(NestedCallError::TooDeep);
        }
        let json = serde_json::to_vec(arguments).ok().and_then(|text| Json::parse(text).ok());
        // A unit stands for no arguments and is serialized as `null`.
        let arguments =
            json.filter(|json| json.is_object() || json.is_null()).ok_or(NestedCallError::Arguments)?;
        let mut meta = outer.meta.clone();
        meta.remove(meta::PROGRESS_TOKEN);
        meta.set(DEPTH_KEY, Json::unsigned(depth));
        Ok(Call {
            target: CallTarget::Tool(name.into()),
            params: Object::new().with("arguments", arguments),
            meta,
            caller: outer.caller.clone(),
            origin: outer.origin.clone(),
            deadline: outer.deadline,
            handler_deadline: None,
            parent: outer.parent.clone(),
            client: Arc::new(NestedClient(outer.client.clone())),
        })
    }
}

/// The nesting depth of a call. A value that is not a count comes from a client and is ignored.
fn depth(meta: &Object) -> u64 {
    meta.get(DEPTH_KEY).and_then(|depth| depth.to_value().as_u64()).unwrap_or(0)
}

/// Asks the client the questions of a call, and adds the answers to the call for the next round.
async fn answer(call: &mut Call, body: &Object) -> Result<(), NestedCallError> {
    let requests =
        body.get("inputRequests").and_then(|requests| requests.to_object().ok()).unwrap_or_default();
    let mut answers = Object::new();
    for (key, request) in requests.iter() {
        let ask = parse_ask(request).ok_or(NestedCallError::Unfinished)?;
        answers.set(&key, call.client.ask(ask).await?);
    }
    call.params.set("inputResponses", answers.to_json());
    match body.get("requestState") {
        Some(state) => call.params.set("requestState", state.clone()),
        None => _ = call.params.remove("requestState"),
    }
    Ok(())
}

/// The client of a nested call: like the client of the outer call, without progress.
#[derive(Debug)]
struct NestedClient(Arc<dyn Client>);

impl ClientWrapper for NestedClient {
    fn inner(&self) -> &dyn Client {
        &*self.0
    }

    fn listens(&self) -> bool {
        false
    }

    /// `false`: a program reads the result.
    fn calls_tools(&self) -> bool {
        false
    }

    /// `false`: a program reads the result as it was declared.
    fn expects_objects(&self) -> bool {
        false
    }

    /// `false`: a program waits for the result.
    fn takes_tasks(&self) -> bool {
        false
    }

    fn notify(&self, notice: ClientNotification) {
        if let ClientNotification::Log(_) = notice {
            self.0.notify(notice);
        }
    }
}
