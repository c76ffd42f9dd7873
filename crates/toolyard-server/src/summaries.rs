//! One-line summaries of servers: from the manifest, else by a language model, else from tool names. The model is asked
//! in the background when the tools of a server have changed.

mod chat;
mod prompt;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::task::JoinSet;
use toolyard_agent::summary::{SummarySource, of_tools};
use toolyard_core::registry::HandlerEntry;

use crate::context::GatewayContext;
use crate::start::StartError;

pub use chat::{ChatClient, ChatError};
pub use writer::SummaryWriter;

/// The summaries written by a model.
#[derive(Default)]
pub struct ServerSummaries(RwLock<HashMap<Arc<str>, ServerSummary>>);

/// A summary of a server by a model.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServerSummary {
    /// The summarized tools by published name, sorted by bytes. A caller that sees other tools does not get the
    /// summary.
    tools: Vec<Arc<str>>,
    text: Arc<str>,
}

/// Starts the summary writer if a language model is configured.
///
/// # Errors
/// If the model is to be called with TLS and the system's root certificates cannot be read.
pub(crate) fn start(
    context: &GatewayContext,
    summaries: &Arc<ServerSummaries>,
) -> Result<JoinSet<()>, StartError> {
    let mut writing = JoinSet::new();
    if let Some(llm) = &context.process.llm {
        let chat = ChatClient::new(llm).map_err(StartError::Tls)?;
        let writer = SummaryWriter { summaries: summaries.clone(), chat, store: context.store.clone() };
        let registry = context.fleet.registry.clone();
        writing.spawn(async move { writer.follow(registry).await });
    }
    Ok(writing)
}

impl ServerSummaries {
    fn for_tools(&self, handler: &str, tools: &[&str]) -> Option<Arc<str>> {
        let summaries = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let summary = summaries.get(handler).filter(|summary| summary.tools.len() == tools.len())?;
        let has_tool = |tool: &&str| summary.tools.binary_search_by(|name| (**name).cmp(*tool)).is_ok();
        tools.iter().all(has_tool).then(|| summary.text.clone())
    }

    fn insert(&self, handler: Arc<str>, summary: ServerSummary) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(handler, summary);
    }

    /// Removes the summaries of servers for which `is_there` is false.
    fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|handler, _| is_there(handler));
    }
}

impl SummarySource for ServerSummaries {
    fn of(&self, handler: &HandlerEntry, tools: &[&str]) -> String {
        if let Some(description) = &handler.description {
            return description.to_string();
        }
        let summary = self.for_tools(&handler.name, tools);
        summary.map_or_else(|| of_tools(tools), |text| text.to_string())
    }
}
