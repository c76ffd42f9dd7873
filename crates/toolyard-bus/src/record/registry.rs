//! The tools of a host and their executors.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use futures_util::future::{BoxFuture, FutureExt};
use toolyard_core::{Caller, Gateway};

use super::wire::{ToolInvokeError, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration};

/// Executor of the calls of a registered tool.
pub trait ToolExecutor: Send + Sync {
    /// Executes a call. Dropping the future cancels the call.
    ///
    /// # Errors
    /// Returns an error if there is no response of the tool. A tool that ran and failed has a response.
    fn execute(
        &self,
        request: ToolInvokeRequest,
    ) -> BoxFuture<'_, Result<ToolInvokeResponse, ToolInvokeError>>;
}

/// A tool of this name is already registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Tool '{0}' is already registered.")]
pub struct AlreadyRegistered(pub String);

/// The tools of a host by their names, which are case-sensitive. Safe for concurrent use.
#[derive(Default)]
pub struct ToolRegistry {
    tools: RwLock<BTreeMap<String, RegisteredTool>>,
}

#[derive(Clone)]
struct RegisteredTool {
    registration: ToolRegistration,
    executor: Arc<dyn ToolExecutor>,
}

impl ToolRegistry {
    /// Returns an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a tool.
    ///
    /// # Errors
    /// Returns an error if there is a tool of this name, which stays registered.
    pub fn register(
        &self,
        registration: ToolRegistration,
        executor: Arc<dyn ToolExecutor>,
    ) -> Result<(), AlreadyRegistered> {
        let mut tools = self.write();
        if tools.contains_key(&registration.name) {
            return Err(AlreadyRegistered(registration.name));
        }
        tools.insert(registration.name.clone(), RegisteredTool { registration, executor });
        Ok(())
    }

    /// Unregisters a tool. Returns `true` if it was registered.
    pub fn unregister(&self, name: &str) -> bool {
        self.write().remove(name).is_some()
    }

    /// Returns the registered tools in the order of their names.
    #[must_use]
    pub fn get_tools(&self) -> Vec<ToolRegistration> {
        self.read().values().map(|tool| tool.registration.clone()).collect()
    }

    /// Returns the executor of a tool.
    #[must_use]
    pub fn get_executor(&self, name: &str) -> Option<Arc<dyn ToolExecutor>> {
        self.read().get(name).map(|tool| tool.executor.clone())
    }

    /// Executes a call with the executor of its tool.
    ///
    /// # Errors
    /// Returns an error if the tool is not registered, or as [`ToolExecutor::execute`] does.
    pub async fn invoke(&self, request: ToolInvokeRequest) -> Result<ToolInvokeResponse, ToolInvokeError> {
        match self.get_executor(&request.tool_name) {
            Some(executor) => executor.execute(request).await,
            None => Err(request.not_registered()),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, RegisteredTool>> {
        self.tools.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, RegisteredTool>> {
        self.tools.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows the names only.
impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.read().keys()).finish()
    }
}

/// Executes calls through the gateway, with all of its layers.
pub struct GatewayExecutor {
    gateway: Arc<Gateway>,
    caller: Caller,
}

impl GatewayExecutor {
    /// Returns an executor that calls tools as this caller, with its permissions and quotas.
    #[must_use]
    pub const fn new(gateway: Arc<Gateway>, caller: Caller) -> Self {
        Self { gateway, caller }
    }
}

impl ToolExecutor for GatewayExecutor {
    fn execute(
        &self,
        request: ToolInvokeRequest,
    ) -> BoxFuture<'_, Result<ToolInvokeResponse, ToolInvokeError>> {
        async move {
            let mut call = request.to_call()?;
            call.caller = self.caller.clone();
            request.answer(self.gateway.invoke(call).await)
        }
        .boxed()
    }
}
