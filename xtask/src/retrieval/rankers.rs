//! The rankers that are compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolyard_rank::{Bm25Ranker, Bm25Texts, Change, Index, Lexicon, Ranking};

use super::baseline::{Bm25, Reading};
use super::figures::{RANKS, Reached};
use super::sets::{Set, Tool};

/// Each ranker on one set.
pub(super) struct Compared {
    pub(super) rockbot: Reached,
    pub(super) plain: Reached,
    pub(super) tuned: Reached,
    pub(super) ours: Reached,
}

impl Compared {
    pub(super) fn on(set: &Set, index: &Index) -> Self {
        let plain = Bm25::new(Reading::Plain, &set.tools);
        let tuned = Bm25::new(Reading::tuned(), &set.tools);
        Self {
            rockbot: rockbot(set),
            plain: Reached::on(set, |query| plain.rank(query, RANKS)),
            tuned: Reached::on(set, |query| tuned.rank(query, RANKS)),
            ours: ours(set, index),
        }
    }
}

/// The ranker that agents of RockBot have, over names and descriptions.
fn rockbot(set: &Set) -> Reached {
    let text = |tool: &Tool| format!("{} {}", tool.name, tool.description());
    let texts = Bm25Texts::new(set.tools.iter().map(text));
    Reached::on(set, |query| {
        let scores = texts.scores(&Bm25Ranker::default(), query);
        let mut ranked: Vec<_> = set.tools.iter().zip(scores).filter(|(_, score)| *score > 0.0).collect();
        ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        ranked.iter().take(RANKS).map(|(tool, _)| tool.id.clone()).collect()
    })
}

/// Our ranker.
pub(super) fn ours(set: &Set, index: &Index) -> Reached {
    Reached::on(set, |query| index.search(query, RANKS).iter().map(|hit| hit.key.to_string()).collect())
}

/// The tools of a set, for our ranker.
pub(super) fn index(set: &Set, lexicon: &Arc<Lexicon>) -> Index {
    let mut servers: BTreeMap<&str, Vec<toolyard_rank::Tool>> = BTreeMap::new();
    for tool in &set.tools {
        servers.entry(tool.server()).or_default().push(as_ranked(tool, tool.id.clone()));
    }
    let put = |(server, tools): (&str, _)| Change::Put { server: server.to_owned(), tools };
    Index::new(Arc::clone(lexicon), Ranking::default()).apply(servers.into_iter().map(put))
}

/// A tool, as our ranker is told of it.
pub(super) fn as_ranked(tool: &Tool, key: String) -> toolyard_rank::Tool {
    toolyard_rank::Tool {
        key,
        name: tool.name.clone(),
        title: None,
        description: tool.description().to_owned(),
        parameters: tool.parameters(),
    }
}
