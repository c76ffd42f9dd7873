//! A registered tool as a function that a model calls.

use std::sync::Arc;

use super::registry::ToolExecutor;
use super::wire::{ToolInvokeRequest, ToolRegistration};
use crate::envelope::new_id;

/// A tool on the side of the host. It never fails: an error is a text that the model reads.
#[derive(Clone)]
pub struct HostFunction {
    registration: ToolRegistration,
    executor: Arc<dyn ToolExecutor>,
    session_id: Option<String>,
}

impl HostFunction {
    /// Returns the function of a tool in a session.
    #[must_use]
    pub const fn new(
        registration: ToolRegistration,
        executor: Arc<dyn ToolExecutor>,
        session_id: Option<String>,
    ) -> Self {
        Self { registration, executor, session_id }
    }

    /// Returns the registration of the tool.
    #[must_use]
    pub const fn registration(&self) -> &ToolRegistration {
        &self.registration
    }

    /// Calls the tool under a new id, with the arguments as the model wrote them. Returns the text for the model: the
    /// tool's response, or `Error: ` and the message of the error.
    pub async fn call(&self, arguments: Option<&str>) -> String {
        let tool_call_id = match new_id() {
            Ok(id) => id,
            Err(error) => return format!("Error: {error}"),
        };
        let request = ToolInvokeRequest {
            tool_call_id,
            tool_name: self.registration.name.clone(),
            arguments: arguments.map(str::to_owned),
            session_id: self.session_id.clone(),
        };
        match self.executor.execute(request).await {
            Ok(response) if !response.is_error => response.content.unwrap_or_default(),
            Ok(response) => format!("Error: {}", response.content.unwrap_or_default()),
            Err(error) => format!("Error: {error}"),
        }
    }
}
