//! Embeddings of the tools, which follow the index, and the search that fuses them with the ranking by words.
//!
//! An endpoint computes the vectors. Whatever it does, a search has a result: that of the words.

mod cache;
mod endpoint_health;
#[cfg(test)]
mod tests;
mod tool_texts;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, join};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout};
use toolyard_core::{Registry, RegistryEntry};
use toolyard_manifest::EmbeddingSettings;
use toolyard_rank::{EmbeddingVector, FUSED_RANKS, VECTOR_WEIGHT, VectorIndex, embedded_query, fuse};

use self::cache::VectorCache;
use self::endpoint_health::EndpointHealth;
pub use self::endpoint_health::{EmbeddingReport, EmbeddingRequests};
use self::tool_texts::{MissingText, ToolTexts};
use super::tool_finder::ToolFinder;

/// Maximum number of texts of one index that the endpoint may refuse; with more, the endpoint is at fault.
const MAX_REFUSED: usize = 100;

/// Computes embeddings.
pub trait TextEmbedder: Send + Sync {
    /// Returns the vectors of some texts, in their order.
    fn embed<'a>(
        &'a self,
        texts: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Vec<EmbeddingVector>, TextEmbedderError>>;
}

/// An error of an embedder.
#[derive(Debug, thiserror::Error)]
pub enum TextEmbedderError {
    /// The endpoint refuses these texts, and may accept others.
    #[error(transparent)]
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// The endpoint cannot be reached or does not work.
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
    /// The endpoint did not answer in time.
    #[error("no answer within {} ms", .0.as_millis())]
    TooSlow(Duration),
    /// Vectors of a query and of tools have different numbers of dimensions.
    #[error("vectors have {0} dimensions instead of {1}: the model has changed")]
    Dimensions(usize, usize),
}

/// The embeddings of all tools.
pub struct ToolEmbeddings {
    embedder: Box<dyn TextEmbedder>,
    settings: EmbeddingSettings,
    vectors: watch::Sender<Arc<VectorIndex>>,
    cache: Mutex<VectorCache>,
    /// Number of tools in the index.
    tools: watch::Sender<usize>,
    /// Permits of requests for queries.
    queries: Semaphore,
    tool_health: EndpointHealth,
    query_health: EndpointHealth,
    /// Notified if all vectors have to be computed anew.
    model_changed: Notify,
    /// True once the maximum size was reached, which is logged once.
    is_full: AtomicBool,
}

impl ToolEmbeddings {
    /// Returns the embeddings of no tools yet.
    #[must_use]
    pub fn new(embedder: Box<dyn TextEmbedder>, settings: EmbeddingSettings) -> Self {
        Self {
            embedder,
            vectors: watch::Sender::default(),
            cache: Mutex::new(VectorCache::new(settings.bytes)),
            tools: watch::Sender::new(0),
            queries: Semaphore::new(settings.concurrent.min(Semaphore::MAX_PERMITS)),
            tool_health: EndpointHealth::new("tools"),
            query_health: EndpointHealth::new("queries"),
            model_changed: Notify::new(),
            is_full: AtomicBool::new(false),
            settings,
        }
    }

    /// Returns the best matches of a query among the tools that are advertised in `view`, the best first: those of
    /// [`ToolFinder::search`], fused with the nearest ones if there are vectors of tools and, in time, of the query.
    pub async fn search(
        &self,
        finder: &ToolFinder,
        view: &Registry,
        query: &str,
        limit: usize,
        deadline: Option<Instant>,
    ) -> Vec<Arc<RegistryEntry>> {
        let by_words = finder.search(view, query, limit.max(FUSED_RANKS));
        let (mut by_words, vector) = join(by_words, self.query_vector(query, deadline)).await;
        let Some(vector) = vector else {
            by_words.truncate(limit);
            return by_words;
        };
        let vectors = self.vectors.borrow().clone();
        let nearest = vectors.nearest(&vector).into_iter().filter_map(|key| view.tool(&key).ok());
        let nearest = nearest.filter(|entry| finder.finds(entry)).take(FUSED_RANKS);
        let names: Vec<Arc<str>> = by_words.iter().map(|entry| entry.name.clone()).collect();
        let nearest: Vec<Arc<str>> = nearest.map(|entry| entry.name.clone()).collect();
        let fused = fuse(&names, &nearest, VECTOR_WEIGHT, limit);
        fused.iter().filter_map(|name| view.tool(name).ok().cloned()).collect()
    }

    /// Returns the vector of a query. `None`: without tools to compare it with, and if the endpoint is slow, busy or
    /// faulty.
    async fn query_vector(&self, query: &str, deadline: Option<Instant>) -> Option<EmbeddingVector> {
        let expected = self.vectors.borrow().dimensions()?;
        if !self.query_health.may_be_asked() {
            return None;
        }
        let _permit = self.queries.try_acquire().ok()?;
        let of_call = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()) / 2);
        let limit = of_call.unwrap_or(Duration::MAX).min(self.settings.query_timeout);
        let texts = [embedded_query(query)];
        let answer = match timeout(limit, self.embedder.embed(&texts)).await {
            Ok(answer) => answer,
            // The call has little time left, which is no fault of the endpoint.
            Err(_) if limit < self.settings.query_timeout => return None,
            Err(_) => Err(TextEmbedderError::TooSlow(limit)),
        };
        let vector = answer.map(|vectors| vectors.into_iter().next()).and_then(|vector| match vector {
            Some(vector) if vector.len() != expected => {
                self.model_changed.notify_one();
                Err(TextEmbedderError::Dimensions(vector.len(), expected))
            }
            vector => Ok(vector),
        });
        match vector {
            Ok(vector) => {
                self.query_health.succeed();
                vector
            }
            // Another query may be accepted.
            Err(TextEmbedderError::Refused(_)) => {
                self.query_health.refuse();
                None
            }
            Err(error) => {
                self.query_health.fail(&error);
                None
            }
        }
    }

    /// Computes the vectors of new and changed tools, in batches, for as long as the future is polled.
    pub async fn follow(&self, finder: &ToolFinder) {
        let mut indexes = finder.indexed_tools();
        let mut texts = ToolTexts::default();
        loop {
            let handlers = indexes.borrow_and_update().clone();
            let (next, missing) = texts.after(handlers.tools(), &self.cache).await;
            texts = next;
            self.tools.send_replace(texts.len());
            self.publish(&texts);
            let outcome = self.embed_all(&texts, missing).await;
            if let Err(error) = &outcome {
                self.tool_health.fail(error);
            }
            let retry = async {
                match outcome {
                    Ok(()) => std::future::pending().await,
                    Err(_) => sleep_until(self.tool_health.next_attempt()).await,
                }
            };
            tokio::select! {
                changed = indexes.changed() => if changed.is_err() { return },
                () = self.model_changed.notified() => self.forget(),
                () = retry => {}
            }
            // A change of the tools is no reason to ask a failing endpoint earlier.
            sleep_until(self.tool_health.next_attempt()).await;
        }
    }

    /// Computes missing vectors, and publishes them after each batch.
    async fn embed_all(&self, texts: &ToolTexts, missing: Vec<MissingText>) -> Result<(), TextEmbedderError> {
        let mut refused = 0;
        for batch in missing.chunks(self.settings.batch) {
            if !self.cache().has_room(batch.len()) && !self.make_room(texts, batch.len()) {
                return Ok(());
            }
            let answer = self.embed(batch).await;
            match answer {
                Err(TextEmbedderError::Refused(_)) if batch.len() > 1 => {
                    // One text may be too long for the model: the others need not miss their vectors.
                    for single in batch.chunks(1) {
                        match self.embed(single).await {
                            Err(TextEmbedderError::Refused(error)) => {
                                refused += 1;
                                if refused > MAX_REFUSED || self.cache().is_empty() {
                                    return Err(TextEmbedderError::Refused(error));
                                }
                            }
                            answer => answer?,
                        }
                    }
                }
                Err(TextEmbedderError::Refused(_)) if !self.cache().is_empty() => {}
                answer => answer?,
            }
            self.publish(texts);
        }
        if refused > 0 {
            tracing::debug!(refused, "the embedding endpoint refuses texts of tools");
        }
        Ok(())
    }

    async fn embed(&self, batch: &[MissingText]) -> Result<(), TextEmbedderError> {
        let texts: Vec<&str> = batch.iter().map(|missing| &*missing.text).collect();
        let time = self.settings.timeout;
        let vectors = timeout(time, self.embedder.embed(&texts)).await;
        let vectors = vectors.map_err(|_| TextEmbedderError::TooSlow(time))?;
        if let Err(TextEmbedderError::Refused(_)) = &vectors {
            self.tool_health.refuse();
        }
        let vectors = vectors?;
        let mut cache = self.cache();
        for (missing, vector) in batch.iter().zip(vectors) {
            if let Err(expected) = cache.insert(missing.digest, &vector) {
                cache.clear();
                return Err(TextEmbedderError::Dimensions(vector.len(), expected));
            }
        }
        drop(cache);
        self.tool_health.succeed();
        Ok(())
    }

    /// Removes vectors that no tool has. Returns false if there is still no room.
    fn make_room(&self, texts: &ToolTexts, count: usize) -> bool {
        let mut cache = self.cache();
        cache.retain(&texts.digests());
        let has_room = cache.has_room(count);
        if !has_room && !self.is_full.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                tools = texts.len(),
                vectors = cache.len(),
                "builtins.search.embedding.bytes is reached: further tools are ranked by words only"
            );
        }
        has_room
    }

    /// Publishes the vectors that there are.
    fn publish(&self, texts: &ToolTexts) {
        let cache = self.cache();
        let tools = texts.tools().filter_map(|(name, digest)| Some((name.clone(), cache.get(digest)?)));
        let vectors = VectorIndex::new(tools.collect());
        drop(cache);
        self.vectors.send_replace(Arc::new(vectors));
    }

    fn forget(&self) {
        self.cache().clear();
        self.vectors.send_replace(Arc::default());
    }

    fn cache(&self) -> MutexGuard<'_, VectorCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of the embeddings.
    #[must_use]
    pub fn report(&self) -> EmbeddingReport {
        EmbeddingReport {
            tools: *self.tools.borrow(),
            vectors: self.vectors.borrow().len(),
            tool_error: self.tool_health.error(),
            query_error: self.query_health.error(),
        }
    }

    /// Returns the number of requests since the start.
    #[must_use]
    pub fn requests(&self) -> EmbeddingRequests {
        self.tool_health.requests() + self.query_health.requests()
    }
}
