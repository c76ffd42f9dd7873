//! The rankers that are compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolyard_rank::{Bm25Ranker, Bm25Texts, IndexChange, RankingWeights, SearchLexicon, ToolIndex};

use super::baseline::{BaselineBm25, BaselineReading};
use super::figures::{MAX_RANK, SetFigures};
use super::sets::{CatalogTool, RetrievalSet};

/// The figures of each ranker on one set.
pub(super) struct RankerComparison {
    pub(super) rockbot: SetFigures,
    pub(super) plain: SetFigures,
    pub(super) tuned: SetFigures,
    pub(super) ours: SetFigures,
}

impl RankerComparison {
    pub(super) fn measure(set: &RetrievalSet, index: &ToolIndex) -> Self {
        let plain = BaselineBm25::new(BaselineReading::Plain, &set.tools);
        Self {
            rockbot: rockbot(set),
            plain: SetFigures::measure(set, |query| plain.rank(query, MAX_RANK)),
            tuned: tuned(set),
            ours: ours(set, index),
        }
    }
}

/// Tuned BM25.
pub(super) fn tuned(set: &RetrievalSet) -> SetFigures {
    let tuned = BaselineBm25::new(BaselineReading::tuned(), &set.tools);
    SetFigures::measure(set, |query| tuned.rank(query, MAX_RANK))
}

/// The ranker of RockBot's agents, over names and descriptions.
fn rockbot(set: &RetrievalSet) -> SetFigures {
    let text = |tool: &CatalogTool| format!("{} {}", tool.name, tool.description());
    let texts = Bm25Texts::new(set.tools.iter().map(text));
    SetFigures::measure(set, |query| {
        let scores = texts.scores(&Bm25Ranker::default(), query);
        let mut ranked: Vec<_> = set.tools.iter().zip(scores).filter(|(_, score)| *score > 0.0).collect();
        ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        ranked.iter().take(MAX_RANK).map(|(tool, _)| tool.id.clone()).collect()
    })
}

/// Our ranker.
pub(super) fn ours(set: &RetrievalSet, index: &ToolIndex) -> SetFigures {
    SetFigures::measure(set, |query| {
        index.search(query, MAX_RANK).iter().map(|hit| hit.key.to_string()).collect()
    })
}

/// The index of a set, for our ranker.
pub(super) fn index(set: &RetrievalSet, lexicon: &Arc<SearchLexicon>) -> ToolIndex {
    let mut servers: BTreeMap<&str, Vec<toolyard_rank::ToolDocument>> = BTreeMap::new();
    for tool in &set.tools {
        servers.entry(tool.server()).or_default().push(to_ranked_tool(tool, tool.id.clone()));
    }
    let put = |(server, tools): (&str, _)| IndexChange::Put { server: server.to_owned(), tools };
    ToolIndex::new(Arc::clone(lexicon), RankingWeights::default()).apply(servers.into_iter().map(put))
}

/// Converts a tool for our ranker.
pub(super) fn to_ranked_tool(tool: &CatalogTool, key: String) -> toolyard_rank::ToolDocument {
    toolyard_rank::ToolDocument {
        key,
        name: tool.name.clone(),
        title: None,
        description: tool.description().to_owned(),
        parameters: tool.ranked_parameters(),
    }
}
