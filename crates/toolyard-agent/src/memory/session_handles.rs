//! The layer that hands out handles of working memory, and keeps them between the gateway and its clients.
//!
//! A handle is the right to change a namespace. Servers never get one, because they could use it; and they cannot set
//! one in their results, because the host would send it back and the model would save into their namespace.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use toolyard_core::layers::{CallResult, Layer, NextLayer};
use toolyard_core::{Call, CallTarget, Json, Object, Outcome, RegistryEntry, SESSION_META};

use super::namespace::MemoryCaller;
use super::session_ids::is_sealed_id;
use super::tools::NAMES;
use super::working_memory::WorkingMemory;

/// Member of results and requests that this layer changes.
const META: &str = "_meta";

/// The layer that hands out handles. It lies within the layer of large results, which reads the handle of a call.
pub struct SessionHandles {
    settings: watch::Receiver<Option<Arc<SessionHandleSettings>>>,
}

/// Settings of the layer, until the manifest changes.
#[derive(Debug)]
pub struct SessionHandleSettings {
    /// The working memory.
    pub memory: WorkingMemory,
    /// Handler that has the tools of that memory.
    pub handler: Arc<str>,
}

impl SessionHandles {
    /// Returns the layer. It does nothing while there are no settings.
    #[must_use]
    pub const fn new(settings: watch::Receiver<Option<Arc<SessionHandleSettings>>>) -> Self {
        Self { settings }
    }
}

impl Layer for SessionHandles {
    fn name(&self) -> &'static str {
        "session_handles"
    }

    fn call<'a>(&'a self, mut call: Call, next: NextLayer<'a>) -> BoxFuture<'a, CallResult> {
        let Some(settings) = self.settings.borrow().clone() else { return next.run(call) };
        if next.entry.handler.name != settings.handler {
            if call.meta.get_str(SESSION_META).is_some_and(|named| is_sealed_id(&named)) {
                call.meta.remove(SESSION_META);
            }
            let is_task = matches!(call.target, CallTarget::Task(_));
            return Box::pin(async move { Ok(without_handles(next.run(call).await?, is_task)) });
        }
        if !hands_out(&call, next.entry) {
            return next.run(call);
        }
        let caller = MemoryCaller::of_call(&call);
        Box::pin(async move {
            match next.run(call).await? {
                Outcome::Done(mut output) => {
                    let ttl = settings.memory.limits().longest_ttl;
                    if let Some(handle) = settings.memory.handle(caller, ttl).await {
                        set_handle(&mut output.body, &handle);
                    }
                    Ok(Outcome::Done(output))
                }
                other => Ok(other),
            }
        })
    }
}

/// Returns `true` if results of a tool have handles, for clients with a model.
fn hands_out(call: &Call, entry: &RegistryEntry) -> bool {
    let is_tool = matches!(call.target, CallTarget::Tool(_)) && NAMES.contains(&&*entry.own);
    is_tool && call.caller.session.is_none() && call.client.calls_tools()
}

/// Sets the handle in the `_meta` of a result.
pub(crate) fn set_handle(body: &mut Object, handle: &str) {
    let meta = body.get(META).and_then(|meta| meta.to_object().ok()).unwrap_or_default();
    body.set(META, meta.with(SESSION_META, Json::string(handle)).to_json());
}

/// Removes handles from the outcome of a server's call. The result of a task is a member of its description.
fn without_handles(outcome: Outcome, is_task: bool) -> Outcome {
    match outcome {
        Outcome::Done(mut output) => {
            remove_handle(&mut output.body);
            let result = output.body.get("result").filter(|_| is_task);
            if let Some(mut result) = result.and_then(|result| result.to_object().ok())
                && remove_handle(&mut result)
            {
                output.body.set("result", result.to_json());
            }
            Outcome::Done(output)
        }
        Outcome::NeedsInput(mut body) => {
            remove_handle(&mut body);
            Outcome::NeedsInput(body)
        }
        Outcome::Task(mut task) => {
            remove_handle(&mut task.body);
            Outcome::Task(task)
        }
    }
}

/// Removes the handle of a result. Returns `true` if there was one.
fn remove_handle(body: &mut Object) -> bool {
    let Some(mut meta) = body.get(META).and_then(|meta| meta.to_object().ok()) else { return false };
    let is_removed = meta.remove(SESSION_META).is_some();
    if is_removed && meta.is_empty() {
        body.remove(META);
    } else if is_removed {
        body.set(META, meta.to_json());
    }
    is_removed
}

impl WorkingMemory {
    /// Returns a handle for a caller; `None` if it needs none, or if the store fails.
    async fn handle(&self, caller: MemoryCaller, ttl: Duration) -> Option<String> {
        self.access(caller).await.ok()?.handle(ttl)
    }
}
