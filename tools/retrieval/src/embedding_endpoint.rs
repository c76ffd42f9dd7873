//! A client of an OpenAI-compatible embeddings endpoint, and the ranking with its vectors.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use toolyard_net::body;
use toolyard_net::client::HttpClient;
use toolyard_rank::{
    EmbeddingVector, FUSED_RANKS, SearchLexicon, VectorIndex, embedded_query, embedded_text, fuse,
    parse_embeddings, response_limit,
};

use super::figures::{MAX_RANK, SetFigures};
use super::rankers::{self, to_ranked_tool};
use super::sets::RetrievalSet;

/// Variables with the base URL, without `/embeddings`, the id of the model, and the key.
const URL_VARIABLE: &str = "TOOLYARD_EMBEDDING_URL";
const MODEL_VARIABLE: &str = "TOOLYARD_EMBEDDING_MODEL";
const KEY_VARIABLE: &str = "TOOLYARD_EMBEDDING_KEY";

/// Number of texts in a request, and its time limit.
const BATCH: usize = 32;
const TIME: Duration = Duration::from_secs(600);

/// An endpoint.
pub(super) struct EmbeddingEndpoint {
    client: HttpClient,
    runtime: Runtime,
    url: String,
    pub(super) model: String,
    key: Option<String>,
}

/// Maximum number of tools and of queries of a set that get vectors: an endpoint on a processor needs a second for a few
/// of them.
pub(super) const MAX_TOOLS: usize = 1000;
pub(super) const MAX_QUERIES: usize = 200;

/// Weights of the ranking by vectors that are compared.
pub(super) const WEIGHTS: [f64; 6] = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0];

/// The figures of a sample of a set with words alone, with vectors alone, and with both.
pub(super) struct HybridFigures {
    pub(super) name: String,
    pub(super) tools: usize,
    pub(super) words: SetFigures,
    pub(super) vectors: SetFigures,
    /// Both fused, by the weights of the vectors.
    pub(super) fused: [SetFigures; WEIGHTS.len()],
}

impl EmbeddingEndpoint {
    /// Returns the configured endpoint, if there is one.
    pub(super) fn configured() -> anyhow::Result<Option<Self>> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let Some(base) = variable(URL_VARIABLE) else { return Ok(None) };
        let model = variable(MODEL_VARIABLE).with_context(|| format!("{MODEL_VARIABLE} is not set"))?;
        let is_tls = base.starts_with("https:");
        let client = if is_tls { HttpClient::with_system_roots()? } else { HttpClient::without_roots()? };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let url = format!("{}/embeddings", base.trim_end_matches('/'));
        Ok(Some(Self { client, runtime, url, model, key: variable(KEY_VARIABLE) }))
    }

    /// Measures the ranking by words, that by vectors and their fusion, on a sample of a set.
    pub(super) fn measure(
        &self,
        set: &RetrievalSet,
        lexicon: &Arc<SearchLexicon>,
    ) -> anyhow::Result<HybridFigures> {
        let set = set.sample(MAX_TOOLS, MAX_QUERIES);
        let index = rankers::index(&set, lexicon);
        let texts: Vec<String> = set
            .tools
            .iter()
            .map(|tool| embedded_text(tool.server(), &to_ranked_tool(tool, String::new())))
            .collect();
        let keys = set.tools.iter().map(|tool| Arc::<str>::from(tool.id.as_str()));
        let vectors = VectorIndex::new(keys.zip(self.vectors(&texts)?).collect());
        let queries: Vec<String> =
            set.queries.iter().map(|query| embedded_query(&query.text).to_owned()).collect();
        let by_query: HashMap<&str, EmbeddingVector> =
            set.queries.iter().map(|query| query.text.as_str()).zip(self.vectors(&queries)?).collect();
        let nearest = |query: &str| -> Vec<Arc<str>> {
            let hits = by_query.get(query).map(|vector| vectors.nearest(vector)).unwrap_or_default();
            hits.into_iter().take(FUSED_RANKS).collect()
        };
        let strings = |keys: &[Arc<str>]| keys.iter().take(MAX_RANK).map(|key| key.to_string()).collect();
        let fused = |weight| {
            SetFigures::measure(&set, |query| {
                let hits = index.search(query, FUSED_RANKS);
                let words: Vec<Arc<str>> = hits.into_iter().map(|hit| hit.key).collect();
                strings(&fuse(&words, &nearest(query), weight, MAX_RANK))
            })
        };
        Ok(HybridFigures {
            name: set.name.clone(),
            tools: set.tools.len(),
            words: rankers::ours(&set, &index),
            vectors: SetFigures::measure(&set, |query| strings(&nearest(query))),
            fused: WEIGHTS.map(fused),
        })
    }

    /// The vectors of these texts.
    fn vectors(&self, texts: &[String]) -> anyhow::Result<Vec<EmbeddingVector>> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            let answer = self.runtime.block_on(async { timeout(TIME, self.ask(batch)).await });
            vectors.extend(answer.context("the embedding endpoint is too slow")??);
        }
        Ok(vectors)
    }

    async fn ask(&self, texts: &[String]) -> anyhow::Result<Vec<EmbeddingVector>> {
        let body = json!({"model": self.model, "input": texts}).to_string();
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&self.url)
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        let response = self.client.send(request.body(Full::new(body.into()))?).await?;
        ensure!(
            response.status().is_success(),
            "the embedding endpoint answered with status {}",
            response.status()
        );
        let body = body::read(response.into_body(), response_limit(texts.len(), None)).await?;
        parse_embeddings(&body, texts.len(), None)
            .context("the response of the embedding endpoint is unusable")
    }
}
