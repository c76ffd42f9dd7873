//! The speed of our ranker, over as many tools as the largest gateways have.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolyard_rank::{IndexChange, RankingWeights, SearchLexicon, ToolIndex};

use super::figures::MAX_RANK;
use super::rankers::to_ranked_tool;
use super::sets::{self, RecordedServer, RetrievalSet};

/// Number of tools.
pub(super) const TOOLS: usize = 10_000;
/// Number of queries from each set.
const QUERIES: usize = 200;
/// Number of updates of one server's tools.
const CHANGES: usize = 100;

/// The measured times.
pub(super) struct RetrievalTiming {
    pub(super) servers: usize,
    pub(super) queries: usize,
    /// Time to build the index from the texts of all tools.
    pub(super) build: Duration,
    /// Median time to add or replace the tools of a server.
    pub(super) change: Duration,
    /// Median and 99th percentile of the time of a query.
    pub(super) median: Duration,
    pub(super) slow: Duration,
}

impl RetrievalTiming {
    pub(super) fn measure(
        corpora: &Path,
        sets: &[RetrievalSet],
        lexicon: &Arc<SearchLexicon>,
    ) -> anyhow::Result<Self> {
        let servers = sets::read_servers(&corpora.join("mcp/servers.jsonl.gz"), TOOLS)?;
        let changes: Vec<IndexChange> = servers.iter().map(put).collect();
        let started = Instant::now();
        let index = ToolIndex::new(Arc::clone(lexicon), RankingWeights::default()).apply(changes.clone());
        let build = started.elapsed();
        anyhow::ensure!(index.len() == TOOLS, "{} tools in the index, not {TOOLS}", index.len());
        let queries: Vec<&str> = sets
            .iter()
            .flat_map(|set| set.queries.iter().take(QUERIES))
            .map(|query| query.text.as_str())
            .collect();
        let searches = sort(queries.iter().map(|query| time_of(|| index.search(query, MAX_RANK))));
        let others = changes.into_iter().take(CHANGES);
        let changed = sort(others.map(|change| time_of(|| index.apply([change]))));
        Ok(Self {
            servers: servers.len(),
            queries: queries.len(),
            build,
            change: changed[changed.len() / 2],
            median: searches[searches.len() / 2],
            slow: searches[searches.len() * 99 / 100],
        })
    }
}

fn put(server: &RecordedServer) -> IndexChange {
    let key = |name: &str| format!("{}.{name}", server.id);
    let tools = server.tools.iter().map(|tool| to_ranked_tool(tool, key(&tool.name))).collect();
    IndexChange::Put { server: server.id.clone(), tools }
}

fn time_of<T>(work: impl FnOnce() -> T) -> Duration {
    let started = Instant::now();
    std::hint::black_box(work());
    started.elapsed()
}

fn sort(times: impl Iterator<Item = Duration>) -> Vec<Duration> {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times
}
