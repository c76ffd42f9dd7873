//! A registered tool as the function that a model calls.

use std::sync::Arc;

use super::registry::Executor;
use super::wire::{ToolInvokeRequest, ToolRegistration};
use crate::memory::working::random_hex;

/// A tool on the side of the host. It never fails: what goes wrong is a text, which the model reads.
#[derive(Clone)]
pub struct HostFunction {
    registration: ToolRegistration,
    executor: Arc<dyn Executor>,
    session_id: Option<String>,
}

impl HostFunction {
    /// The function of a tool in a session.
    #[must_use]
    pub const fn new(
        registration: ToolRegistration,
        executor: Arc<dyn Executor>,
        session_id: Option<String>,
    ) -> Self {
        Self { registration, executor, session_id }
    }

    /// What the model is told of it.
    #[must_use]
    pub const fn registration(&self) -> &ToolRegistration {
        &self.registration
    }

    /// Calls it, under an id that no other call has, with the arguments as the model wrote them. What the model reads: the
    /// tool's answer, or `Error: ` and what went wrong.
    pub async fn call(&self, arguments: Option<&str>) -> String {
        let request = ToolInvokeRequest {
            tool_call_id: random_hex::<16>(),
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
