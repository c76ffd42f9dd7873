//! Outputs and summaries of wisps in working memory.
//!
//! Their keys begin with `wisp/`, which is a namespace of its own for callers whose keys reach it (`memory:wisp/*`). For all
//! others it is a path in their own namespace, which they read by the same keys.

use std::time::Duration;

use toolyard_agent::large::document::LongDocument;
use toolyard_agent::memory::{FullKey, MemoryCaller, MemoryError, NewEntry, RoomPolicy, WorkingMemory};

/// Category of outputs and summaries.
const CATEGORY: &str = "wisp";

/// Maximum length of a chunk of an input, in characters.
const CHUNK_CHARS: usize = 4_000;

/// Length of a message about chunks at which rows are left out, in characters.
const MESSAGE_CHARS: usize = 4_000;

/// Time limit for saving the chunks of an input.
const STORE_TIME: Duration = Duration::from_secs(10);

/// The working memory of the caller that has spawned wisps.
#[derive(Clone)]
pub(crate) struct WispMemory {
    memory: WorkingMemory,
    caller: MemoryCaller,
}

/// Returns the key of the output of a step.
pub(crate) fn output_key(wisp: &str, step: &str) -> String {
    format!("wisp/{wisp}/{step}/output")
}

/// Returns the key of the summary of a batch.
pub(crate) fn summary_key(batch: &str) -> String {
    format!("wisp/batch-{batch}/summary")
}

/// Returns the reason why something is not in working memory, for the agent.
pub(crate) fn reason(error: &MemoryError) -> String {
    match error {
        MemoryError::NoSession | MemoryError::InvalidHandle => {
            "this call has no namespace there, as it has neither a session, nor a key, nor a valid `toolyard/session`"
                .to_owned()
        }
        other => other.to_string(),
    }
}

impl WispMemory {
    /// Returns the memory of a caller.
    pub(crate) const fn new(memory: WorkingMemory, caller: MemoryCaller) -> Self {
        Self { memory, caller }
    }

    /// Saves texts under keys of one wisp or batch: all or none.
    ///
    /// # Errors
    /// If working memory refuses them, or the caller has no namespace.
    pub(crate) async fn save(&self, texts: &[(&str, &str)], ttl: Duration) -> Result<(), MemoryError> {
        let access = self.memory.access(self.caller.clone()).await?;
        let mut places = Vec::new();
        for (key, text) in texts {
            // The first is the one that the caller reads under this key.
            let place = access.candidates(key)?.into_iter().next().ok_or(MemoryError::NoSession)?;
            places.push((place, *text));
        }
        let Some((FullKey { namespace, .. }, _)) = places.first() else { return Ok(()) };
        let entries = places.iter().map(|(place, text)| NewEntry::new(&place.path, text));
        let entries: Vec<_> =
            entries.map(|entry| NewEntry { category: Some(CATEGORY), ttl: Some(ttl), ..entry }).collect();
        // Large results make room, since the agent reads the outputs of wisps first.
        self.memory.save_with(&access.address(), namespace, &entries, RoomPolicy::DropResults).await?;
        Ok(())
    }

    /// Saves an input in chunks, and returns the message with their keys for a model.
    ///
    /// # Errors
    /// The reason, for the agent, if working memory refuses it.
    pub(crate) async fn save_input(
        &self,
        wisp: &str,
        step: &str,
        text: &str,
        ttl: Duration,
    ) -> Result<String, String> {
        let name = format!("wisp/{wisp}/{step}/input");
        let document =
            LongDocument { name: &name, text, chunk_chars: CHUNK_CHARS, ttl, store_time: STORE_TIME };
        let stored = document.put(&self.memory, self.caller.clone()).await?;
        Ok(stored.message_about("The input is large", MESSAGE_CHARS))
    }
}
