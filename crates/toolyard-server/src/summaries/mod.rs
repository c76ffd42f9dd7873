//! What servers are for, in a line: as the manifest has it, else as a language model has written it, else by the names of
//! their tools. A model is asked in the background, when a server has other tools than before; nobody waits for it.

mod chat;
mod prompt;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use toolyard_agent::summary::{Summaries, of_tools};
use toolyard_core::registry::Handler;

pub use chat::{Chat, ChatError};
pub use writer::Writer;

/// The summaries that are known.
#[derive(Default)]
pub struct Written(RwLock<HashMap<Arc<str>, Summary>>);

/// What a model has written of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Summary {
    /// Of these tools, by the names that callers have for them, in the order of their bytes. Who sees others is told
    /// nothing of these.
    tools: Vec<Arc<str>>,
    text: Arc<str>,
}

impl Written {
    fn of_handler(&self, handler: &str, tools: &[&str]) -> Option<Arc<str>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let summary = known.get(handler).filter(|summary| summary.tools.len() == tools.len())?;
        let is_of = |tool: &&str| summary.tools.binary_search_by(|known| (**known).cmp(*tool)).is_ok();
        tools.iter().all(is_of).then(|| summary.text.clone())
    }

    fn learn(&self, handler: Arc<str>, summary: Summary) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(handler, summary);
    }

    /// Forgets what is of servers that are none of these.
    fn keep(&self, is_there: impl Fn(&str) -> bool) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|handler, _| is_there(handler));
    }
}

impl Summaries for Written {
    fn of(&self, handler: &Handler, tools: &[&str]) -> String {
        if let Some(description) = &handler.description {
            return description.to_string();
        }
        let written = self.of_handler(&handler.name, tools);
        written.map_or_else(|| of_tools(tools), |text| text.to_string())
    }
}
