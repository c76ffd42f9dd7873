//! Calls that a tool of the gateway makes for its caller: scripts over tools, pipelines, and agents of the gateway.
//!
//! Such a call passes [`Gateway::invoke`] like any other, as the caller of the tool that makes it, so that its policy,
//! quota, audit and trace are the caller's.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::access::{AccessGrant, AccessScope};
use crate::call::{Call, Caller, SESSION_META};
use crate::client::{Client, ClientWrapper, NoClient};
use crate::error::{ErrorCode, ToolError};
use crate::gateway::Gateway;
use crate::json::{Json, Object};
use crate::outcome::CallOutput;
use crate::registry::Registry;

/// Maximum number of calls within each other. A tool that makes calls may be called by one.
const MAX_DEPTH: u8 = 8;

/// Members of `_meta` that a nested call has from its parent: its trace (W3C Trace Context), and its session.
const INHERITED_META: [&str; 4] = ["traceparent", "tracestate", "baggage", SESSION_META];

/// The call that has made another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentCall {
    /// Id of the activity that makes the call, such as that of a subagent. The audit trail has it.
    pub id: Arc<str>,
    /// Handler of the parent while that runs: it holds a permit of the handler and one of the gateway, so that the
    /// nested call takes neither. Calls that wait for each other would otherwise use up all permits. `None` for an
    /// activity that has outlived its call.
    pub running_in: Option<Arc<str>>,
    /// Number of calls around this one.
    pub depth: u8,
}

/// Current rights of callers whose activity outlives their call.
pub trait CallerDirectory: Send + Sync {
    /// Returns the caller with its current rights.
    ///
    /// # Errors
    /// If the key of the caller was revoked or has expired, or if it cannot be read now.
    fn current<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Caller, ToolError>>;
}

/// The gateway, for the tools of one of its handlers.
#[derive(Clone)]
pub struct NestedGateway {
    gateway: Weak<Gateway>,
    handler: Arc<str>,
    callers: Option<Arc<dyn CallerDirectory>>,
}

impl NestedGateway {
    /// Creates it for the tools of this handler.
    #[must_use]
    pub fn new(gateway: Weak<Gateway>, handler: impl Into<Arc<str>>) -> Self {
        Self { gateway, handler: handler.into(), callers: None }
    }

    /// Reads the rights of callers again before each call of an activity that outlives its call.
    #[must_use]
    pub fn refreshed_by(self, callers: Arc<dyn CallerDirectory>) -> Self {
        Self { callers: Some(callers), ..self }
    }

    /// Returns the nested calls of a call that runs. They end with it.
    #[must_use]
    pub fn within(&self, call: &Call, id: impl Into<Arc<str>>) -> NestedCalls {
        let running_in = Some(self.handler.clone());
        NestedCalls { deadline: call.deadline, ..self.calls(call, id.into(), running_in) }
    }

    /// Returns the nested calls of an activity that a call has started, and that outlives it.
    #[must_use]
    pub fn after(&self, call: &Call, id: impl Into<Arc<str>>) -> NestedCalls {
        self.calls(call, id.into(), None)
    }

    fn calls(&self, call: &Call, id: Arc<str>, running_in: Option<Arc<str>>) -> NestedCalls {
        let depth = call.parent.as_ref().map_or(0, |parent| parent.depth).saturating_add(1);
        let mut meta = Object::new();
        for name in INHERITED_META {
            if let Some(value) = call.meta.get(name) {
                meta.set(name, value.detach());
            }
        }
        let origin = call.origin.clone().filter(|_| running_in.is_some());
        // The calls have no client.
        let caller = Caller { lends_model: false, ..call.caller.clone() };
        let template = Call {
            meta,
            caller,
            origin,
            parent: Some(Arc::new(ParentCall { id, running_in, depth })),
            ..Call::tool("", Json::null())
        };
        NestedCalls { gateway: self.clone(), template: Arc::new(template), deadline: None, excluded: &[] }
    }
}

/// A model that reads results: large ones are stored, and tools read them in parts.
#[derive(Debug)]
struct ModelReader;

impl ClientWrapper for ModelReader {
    fn inner(&self) -> &dyn Client {
        &NoClient
    }

    fn calls_tools(&self) -> bool {
        true
    }
}

/// Calls as the caller of a tool. The calls have no client: a tool that asks for input fails.
#[derive(Clone)]
pub struct NestedCalls {
    gateway: NestedGateway,
    template: Arc<Call>,
    deadline: Option<Instant>,
    /// Tools of the handler that the calls cannot reach, in any way.
    excluded: &'static [&'static str],
}

impl NestedCalls {
    /// Excludes these tools of the gateway's handler: they are neither listed nor found, and no other tool reaches them.
    #[must_use]
    pub fn without(self, excluded: &'static [&'static str]) -> Self {
        Self { excluded, ..self }
    }

    /// Cuts large results as for the model of a client. Without it, results are whole, for a program.
    #[must_use]
    pub fn read_by_model(self) -> Self {
        let template = Call { client: Arc::new(ModelReader), ..(*self.template).clone() };
        Self { template: Arc::new(template), ..self }
    }

    /// Returns the caller, with the rights that it had at its call.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.template.caller
    }

    /// Checks that the caller may still call tools.
    ///
    /// # Errors
    /// The error of the [`CallerDirectory`].
    pub async fn check_caller(&self) -> Result<(), ToolError> {
        self.current_caller().await.map(drop)
    }

    /// Returns the tools that the caller may list and call now.
    ///
    /// # Errors
    /// [`ErrorCode::Unavailable`] if the gateway stops, or the error of the [`CallerDirectory`].
    pub async fn registry(&self) -> Result<Arc<Registry>, ToolError> {
        let (gateway, caller) = (self.gateway()?, self.current_caller().await?);
        Ok(gateway.settled_for(&caller).await)
    }

    /// Calls a tool by its published name, at most until `deadline`.
    ///
    /// # Errors
    /// As [`Gateway::invoke_to_end`], [`ErrorCode::InvalidArguments`] if calls are nested too deeply, or the error of
    /// the [`CallerDirectory`].
    pub async fn call(
        &self,
        tool: &str,
        arguments: Json,
        deadline: Option<Instant>,
    ) -> Result<CallOutput, ToolError> {
        let parent = self.template.parent.as_ref();
        if parent.is_some_and(|parent| parent.depth > MAX_DEPTH) {
            let text =
                format!("calls are nested more than {MAX_DEPTH} deep: a tool calls itself through others");
            return Err(ToolError::new(ErrorCode::InvalidArguments, text));
        }
        let gateway = self.gateway()?;
        let mut call = self.template.of(tool, arguments);
        call.caller = self.current_caller().await?;
        call.deadline = [self.deadline, deadline].into_iter().flatten().min();
        gateway.invoke_to_end(call).await
    }

    fn gateway(&self) -> Result<Arc<Gateway>, ToolError> {
        let gateway = self.gateway.gateway.upgrade();
        gateway.ok_or_else(|| ToolError::new(ErrorCode::Unavailable, "the gateway is stopping"))
    }

    async fn current_caller(&self) -> Result<Caller, ToolError> {
        let is_background = self.template.parent.as_ref().is_some_and(|parent| parent.running_in.is_none());
        let started_by = &self.template.caller;
        let (caller, lost_exclusions) = match self.gateway.callers.as_ref().filter(|_| is_background) {
            // The current rights of a key do not have the exclusions of the activity that has started this one.
            Some(callers) => {
                let scope = started_by.grant.as_ref().map(|grant| &grant.scope);
                (callers.current(started_by).await?, scope.filter(|scope| scope.has_exclusions()))
            }
            None => (started_by.clone(), None),
        };
        if self.excluded.is_empty() && lost_exclusions.is_none() {
            return Ok(caller);
        }
        let everything = || AccessGrant { scope: AccessScope::all(), ..AccessGrant::default() };
        let mut grant = caller.grant.as_ref().map_or_else(everything, |grant| (**grant).clone());
        grant.scope = grant.scope.without(&self.gateway.handler, self.excluded);
        if let Some(scope) = lost_exclusions {
            grant.scope = grant.scope.with_exclusions_of(scope);
        }
        Ok(Caller { grant: Some(Arc::new(grant)), ..caller })
    }
}

#[cfg(test)]
mod tests;
