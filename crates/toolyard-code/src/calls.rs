//! The calls of one script, within its limits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use toolyard_core::nearest::nearest_tools;
use toolyard_core::{ErrorCode, Json, NestedCalls, Registry, ToolError};
use toolyard_functions::runtime::{ProgressReport, ToolHost};
use toolyard_manifest::CodeSettings;
use toolyard_sdk::Context;

use crate::names::ToolPaths;
use crate::results::{self, LIMIT_REACHED};
use crate::shapes::ObservedShapes;

/// Maximum length of the text of a progress report, in characters.
const MAX_PROGRESS_CHARS: usize = 500;

/// Limits of the calls of one script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Maximum number of calls.
    pub calls: usize,
    /// Maximum number of calls at the same time.
    pub concurrent: usize,
    /// Maximum size of all results together, in bytes.
    pub result_bytes: usize,
}

impl CallLimits {
    /// Returns the configured limits.
    #[must_use]
    pub const fn new(settings: &CodeSettings) -> Self {
        let CodeSettings { calls, concurrent_calls, result_bytes, .. } = settings;
        Self { calls: *calls, concurrent: *concurrent_calls, result_bytes: *result_bytes }
    }
}

/// The calls of one script.
pub struct ScriptCalls {
    nested: NestedCalls,
    /// The tools of the caller when the script began.
    view: Arc<Registry>,
    paths: OnceLock<ToolPaths>,
    limits: CallLimits,
    deadline: Instant,
    shapes: Arc<ObservedShapes>,
    context: Context,
    state: Mutex<CallRecord>,
}

/// The calls that a script has made, and its printed output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallRecord {
    /// Number of calls, and of failed ones among them, by the published name of the tool.
    pub by_tool: BTreeMap<Arc<str>, CallCount>,
    /// Printed output.
    pub log: String,
    /// Number of requested calls, including refused ones.
    pub(crate) requested: usize,
    /// Size of all results so far.
    pub(crate) result_bytes: usize,
}

/// Calls of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCount {
    /// Number of calls.
    pub calls: usize,
    /// Number of failed calls among them.
    pub failed: usize,
}

impl ScriptCalls {
    /// Creates the calls of a script that runs until `deadline`.
    #[must_use]
    pub fn new(
        nested: NestedCalls,
        view: Arc<Registry>,
        limits: CallLimits,
        deadline: Instant,
        shapes: Arc<ObservedShapes>,
        context: Context,
    ) -> Self {
        let (paths, state) = (OnceLock::new(), Mutex::default());
        Self { nested, view, paths, limits, deadline, shapes, context, state }
    }

    /// Returns the calls and the printed output so far.
    #[must_use]
    pub fn record(&self) -> CallRecord {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn run(&self, reference: &str, arguments: Json) -> Result<Json, Json> {
        self.admit(reference)?;
        let Some(tool) = self.resolve(reference) else {
            // Refused by the gateway, which records it as it does any unknown name.
            let _refused = self.nested.call(reference, arguments, Some(self.deadline)).await;
            return Err(self.unknown(reference));
        };
        if !arguments.is_object() {
            let invalid = ErrorCode::InvalidArguments.row().wire;
            return Err(results::refusal(&tool, invalid, "the arguments are not an object"));
        }
        let ended = self.call(&tool, arguments).await;
        self.count(&tool, ended.is_err());
        ended
    }

    async fn call(&self, tool: &Arc<str>, arguments: Json) -> Result<Json, Json> {
        let entry = self.view.tool(tool).ok();
        let output = self.nested.call(tool, arguments, Some(self.deadline)).await;
        let output = output.map_err(|error| results::call_error(tool, &error))?;
        self.take_bytes(tool, output.body.to_json().as_bytes().len())?;
        if output.is_error {
            return Err(results::tool_failure(tool, &output));
        }
        let value = results::value(&output, entry.map(|entry| &**entry));
        let is_declared =
            entry.and_then(|entry| entry.tool.as_ref()).is_some_and(|tool| tool.output_schema().is_some());
        if !is_declared {
            self.shapes.observe(self.nested.caller().principal.as_ref(), tool, &value.to_value());
        }
        Ok(value)
    }

    /// Counts a requested call, unless the script has made too many.
    fn admit(&self, reference: &str) -> Result<(), Json> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.requested >= self.limits.calls {
            let reason = format!("the script has made {} calls, its maximum", self.limits.calls);
            return Err(results::refusal(reference, LIMIT_REACHED, &reason));
        }
        state.requested += 1;
        Ok(())
    }

    /// Counts the bytes of a result, unless the script has got too many.
    fn take_bytes(&self, tool: &str, bytes: usize) -> Result<(), Json> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let total = state.result_bytes.saturating_add(bytes);
        if total > self.limits.result_bytes {
            let reason =
                format!("the results of the script exceed {} bytes, its maximum", self.limits.result_bytes);
            return Err(results::refusal(tool, LIMIT_REACHED, &reason));
        }
        state.result_bytes = total;
        Ok(())
    }

    fn count(&self, tool: &Arc<str>, has_failed: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let count = state.by_tool.entry(tool.clone()).or_default();
        count.calls += 1;
        count.failed += usize::from(has_failed);
    }

    /// Returns the published name of the tool that a script means.
    fn resolve(&self, reference: &str) -> Option<Arc<str>> {
        self.paths().resolve(&self.view, reference)
    }

    fn paths(&self) -> &ToolPaths {
        self.paths.get_or_init(|| ToolPaths::of(&self.view))
    }

    /// Returns the exception for a name that the caller does not have, with similar ones.
    fn unknown(&self, reference: &str) -> Json {
        let near = nearest_tools(&self.view, reference);
        let near: Vec<_> = near.iter().map(|name| self.paths().path(name).unwrap_or(name)).collect();
        results::call_error(reference, &ToolError::unknown_tool_but(reference, &near))
    }
}

impl ToolHost for ScriptCalls {
    fn concurrent(&self) -> usize {
        self.limits.concurrent
    }

    fn call(&self, tool: String, arguments: Json) -> BoxFuture<'_, Result<Json, Json>> {
        Box::pin(async move { self.run(&tool, arguments).await })
    }

    fn progress(&self, report: ProgressReport) {
        let message: Option<String> =
            report.message.map(|text| text.chars().take(MAX_PROGRESS_CHARS).collect());
        self.context.progress(report.done, report.total, message.as_deref());
    }

    fn printed(&self, log: &str) {
        log.clone_into(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).log);
    }
}
