//! Which tools a host has, and who runs them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use futures_util::future::{BoxFuture, FutureExt};
use toolyard_core::{Caller, Gateway};

use super::wire::{ToolError, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration};

/// Runs calls of a registered tool.
pub trait Executor: Send + Sync {
    /// Runs a call. Dropping the future withdraws it.
    ///
    /// # Errors
    /// Where there is no answer of the tool. One that ran and failed answers.
    fn execute(&self, request: ToolInvokeRequest) -> BoxFuture<'_, Result<ToolInvokeResponse, ToolError>>;
}

/// A tool of this name is there already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Tool '{0}' is already registered.")]
pub struct AlreadyRegistered(pub String);

/// The tools of a host, by their names, which are told apart by their case, too. It may be shared, and changed by
/// several at a time.
#[derive(Default)]
pub struct ToolRegistry {
    tools: RwLock<BTreeMap<String, Registered>>,
}

#[derive(Clone)]
struct Registered {
    registration: ToolRegistration,
    executor: Arc<dyn Executor>,
}

impl ToolRegistry {
    /// A registry without tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// Where there is one of its name; that one stays.
    pub fn register(
        &self,
        registration: ToolRegistration,
        executor: Arc<dyn Executor>,
    ) -> Result<(), AlreadyRegistered> {
        let mut tools = self.write();
        if tools.contains_key(&registration.name) {
            return Err(AlreadyRegistered(registration.name));
        }
        tools.insert(registration.name.clone(), Registered { registration, executor });
        Ok(())
    }

    /// Removes a tool. Whether there was one.
    pub fn unregister(&self, name: &str) -> bool {
        self.write().remove(name).is_some()
    }

    /// The tools that there are now, in the order of their names.
    #[must_use]
    pub fn get_tools(&self) -> Vec<ToolRegistration> {
        self.read().values().map(|tool| tool.registration.clone()).collect()
    }

    /// Who runs the calls of a tool.
    #[must_use]
    pub fn get_executor(&self, name: &str) -> Option<Arc<dyn Executor>> {
        self.read().get(name).map(|tool| tool.executor.clone())
    }

    /// Runs a call, whoever does that.
    ///
    /// # Errors
    /// Where nobody does, or as [`Executor::execute`].
    pub async fn invoke(&self, request: ToolInvokeRequest) -> Result<ToolInvokeResponse, ToolError> {
        match self.get_executor(&request.tool_name) {
            Some(executor) => executor.execute(request).await,
            None => Err(request.not_registered()),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Registered>> {
        self.tools.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, Registered>> {
        self.tools.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows the names.
impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.read().keys()).finish()
    }
}

/// Has calls run by the gateway, through its one door.
pub struct GatewayExecutor {
    gateway: Arc<Gateway>,
    caller: Caller,
}

impl GatewayExecutor {
    /// Who runs calls for this caller: with its rights, at its expense.
    #[must_use]
    pub const fn new(gateway: Arc<Gateway>, caller: Caller) -> Self {
        Self { gateway, caller }
    }
}

impl Executor for GatewayExecutor {
    fn execute(&self, request: ToolInvokeRequest) -> BoxFuture<'_, Result<ToolInvokeResponse, ToolError>> {
        async move {
            let mut call = request.to_call()?;
            call.caller = self.caller.clone();
            request.answer(self.gateway.invoke(call).await)
        }
        .boxed()
    }
}
