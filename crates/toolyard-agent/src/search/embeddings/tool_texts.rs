//! The texts of the tools that have vectors.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;
use toolyard_rank::embedded_text;

use super::cache::{TextDigest, VectorCache};
use crate::search::indexed_tool::IndexedTool;

/// The tools of each handler.
pub(in crate::search) type HandlerTools = BTreeMap<Arc<str>, Vec<IndexedTool>>;

/// The digests of the texts of all tools. The texts themselves are only kept until they have vectors.
#[derive(Default)]
pub(super) struct ToolTexts {
    handlers: BTreeMap<Arc<str>, HandlerTexts>,
}

#[derive(Clone)]
struct HandlerTexts {
    tools: Vec<IndexedTool>,
    /// The digests of their texts.
    digests: Arc<[TextDigest]>,
}

/// A text without a vector.
pub(super) struct MissingText {
    pub(super) digest: TextDigest,
    pub(super) text: String,
}

impl ToolTexts {
    /// Returns the texts of these tools, and those of them that are not in the cache. Reads only handlers whose tools
    /// have changed or miss vectors.
    pub(super) async fn after(
        self,
        tools: HandlerTools,
        cache: &Mutex<VectorCache>,
    ) -> (Self, Vec<MissingText>) {
        let digests: HashSet<TextDigest> = {
            let cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
            self.digests().into_iter().filter(|digest| cache.contains(digest)).collect()
        };
        let read = spawn_blocking(move || self.read(tools, &digests)).await;
        // The task panicked, or the process is ending.
        let (texts, mut missing) = read.unwrap_or_default();
        let cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
        missing.retain(|text: &MissingText| !cache.contains(&text.digest));
        (texts, missing)
    }

    fn read(self, tools: HandlerTools, known: &HashSet<TextDigest>) -> (Self, Vec<MissingText>) {
        let (mut handlers, mut missing) = (BTreeMap::new(), Vec::new());
        let mut new_digests = HashSet::new();
        for (name, tools) in tools {
            let before = self.handlers.get(&name).filter(|before| before.tools == tools);
            let before = before.filter(|before| before.digests.iter().all(|digest| known.contains(digest)));
            let digests = match before {
                Some(before) => before.digests.clone(),
                None => {
                    let texts = tools.iter().map(|tool| embedded_text(&name, &tool.ranked()));
                    let digests = texts.map(|text| {
                        let digest: TextDigest = Sha256::digest(&text).into();
                        if !known.contains(&digest) && new_digests.insert(digest) {
                            missing.push(MissingText { digest, text });
                        }
                        digest
                    });
                    digests.collect()
                }
            };
            handlers.insert(name, HandlerTexts { tools, digests });
        }
        (Self { handlers }, missing)
    }

    /// Returns the published names of the tools with the digests of their texts.
    pub(super) fn tools(&self) -> impl Iterator<Item = (&Arc<str>, &TextDigest)> {
        let handlers = self.handlers.values();
        handlers.flat_map(|handler| handler.tools.iter().map(IndexedTool::name).zip(&*handler.digests))
    }

    /// Returns the digests of all texts.
    pub(super) fn digests(&self) -> HashSet<TextDigest> {
        self.tools().map(|(_, digest)| *digest).collect()
    }

    /// Returns the number of tools.
    pub(super) fn len(&self) -> usize {
        self.handlers.values().map(|handler| handler.tools.len()).sum()
    }
}
