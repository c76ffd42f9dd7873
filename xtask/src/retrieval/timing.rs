//! How fast our ranker is, over as many tools as the largest gateways have.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolyard_rank::{Change, Index, Lexicon, Ranking};

use super::figures::RANKS;
use super::rankers::as_ranked;
use super::sets::{self, Server, Set};

/// Over so many tools.
pub(super) const TOOLS: usize = 10_000;
/// Of each set, the first queries.
const QUERIES: usize = 200;
/// How often one server's tools are put again.
const CHANGES: usize = 100;

/// What was measured.
pub(super) struct Timing {
    pub(super) servers: usize,
    pub(super) queries: usize,
    /// The index, from the texts of all tools.
    pub(super) build: Duration,
    /// One server more, the median.
    pub(super) change: Duration,
    /// One query, the median and the 99th percentile.
    pub(super) median: Duration,
    pub(super) slow: Duration,
}

impl Timing {
    pub(super) fn of(corpora: &Path, sets: &[Set], lexicon: &Arc<Lexicon>) -> anyhow::Result<Self> {
        let servers = sets::servers(&corpora.join("mcp/servers.jsonl.gz"), TOOLS)?;
        let changes: Vec<Change> = servers.iter().map(put).collect();
        let begun = Instant::now();
        let index = Index::new(Arc::clone(lexicon), Ranking::default()).apply(changes.clone());
        let build = begun.elapsed();
        anyhow::ensure!(index.len() == TOOLS, "{} tools are in the index, not {TOOLS}", index.len());
        let queries: Vec<&str> = sets
            .iter()
            .flat_map(|set| set.queries.iter().take(QUERIES))
            .map(|query| query.text.as_str())
            .collect();
        let searches = sorted(queries.iter().map(|query| timed(|| index.search(query, RANKS))));
        let others = changes.into_iter().take(CHANGES);
        let changed = sorted(others.map(|change| timed(|| index.apply([change]))));
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

fn put(server: &Server) -> Change {
    let key = |name: &str| format!("{}.{name}", server.id);
    let tools = server.tools.iter().map(|tool| as_ranked(tool, key(&tool.name))).collect();
    Change::Put { server: server.id.clone(), tools }
}

fn timed<T>(what: impl FnOnce() -> T) -> Duration {
    let begun = Instant::now();
    std::hint::black_box(what());
    begun.elapsed()
}

fn sorted(times: impl Iterator<Item = Duration>) -> Vec<Duration> {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times
}
