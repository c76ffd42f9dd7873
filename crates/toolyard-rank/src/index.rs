//! The index: an immutable snapshot of all tools. A change creates another one, which shares the unchanged parts.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::bigrams::{self, TermBigram};
use crate::lexicon::SearchLexicon;
use crate::ranking::{FIELDS, RankingWeights};
use crate::server_index::{FieldCounts, ServerIndex};
use crate::tool_document::ToolDocument;
use crate::vocabulary::WordVocabulary;

/// A change of one server's tools.
#[derive(Clone, Debug)]
pub enum IndexChange {
    /// Replaces all tools of a server.
    Put {
        /// The name of the server. Its words count for each of its tools.
        server: String,
        /// All of its tools.
        tools: Vec<ToolDocument>,
    },
    /// Removes a server.
    Remove {
        /// The name of the server.
        server: String,
    },
}

/// A searchable snapshot of all tools. A search takes no lock, and [`ToolIndex::apply`] returns another snapshot.
#[derive(Clone)]
pub struct ToolIndex {
    pub(crate) lexicon: Arc<SearchLexicon>,
    pub(crate) ranking: RankingWeights,
    terms: HashMap<Arc<str>, Arc<Vec<TermPosting>>>,
    pub(crate) vocabulary: WordVocabulary,
    /// The tools. The slot of a removed tool is empty until it is reused.
    pub(crate) slots: Vec<Option<ToolSlot>>,
    /// Weight of one word in each field of a tool, by slot.
    pub(crate) normalized_weights: Vec<[f32; FIELDS]>,
    /// Number of tools of each server, by server number; 0 for unused numbers.
    pub(crate) server_sizes: Vec<usize>,
    pub(crate) tools: usize,
    servers: BTreeMap<String, ServerEntry>,
}

/// The occurrences of a term in one tool.
#[derive(Clone, Copy)]
pub(crate) struct TermPosting {
    pub(crate) slot: u32,
    pub(crate) counts: FieldCounts,
}

/// A tool in the index.
#[derive(Clone)]
pub(crate) struct ToolSlot {
    pub(crate) key: Arc<str>,
    /// The number of its server.
    pub(crate) server: usize,
    pub(crate) lengths: [u16; FIELDS],
    pub(crate) bigrams: Arc<[TermBigram]>,
}

/// The tools of a server in the index.
#[derive(Clone)]
struct ServerEntry {
    number: usize,
    index: Arc<ServerIndex>,
    /// The slots, in ascending order and in the order of the tools.
    slots: Arc<[u32]>,
}

impl ToolIndex {
    /// Returns an index without tools.
    pub fn new(lexicon: Arc<SearchLexicon>, ranking: RankingWeights) -> Self {
        Self {
            lexicon,
            ranking,
            terms: HashMap::new(),
            vocabulary: WordVocabulary::default(),
            slots: Vec::new(),
            normalized_weights: Vec::new(),
            server_sizes: Vec::new(),
            tools: 0,
            servers: BTreeMap::new(),
        }
    }

    /// The number of tools.
    pub fn len(&self) -> usize {
        self.tools
    }

    /// `true` if there are no tools.
    pub fn is_empty(&self) -> bool {
        self.tools == 0
    }

    /// Returns the same tools with other weights.
    pub fn with_ranking(&self, ranking: RankingWeights) -> Self {
        let mut next = Self { ranking, ..self.clone() };
        next.update_normalized_weights();
        next
    }

    /// Returns the index after these changes, applied in order. Only the texts of new tools are read. The result
    /// depends on the resulting set of tools only, not on the sequence of changes.
    pub fn apply(&self, changes: impl IntoIterator<Item = IndexChange>) -> Self {
        let mut next = self.clone();
        for change in changes {
            match change {
                IndexChange::Put { server, tools } => {
                    next.remove(&server);
                    next.put(server, &tools);
                }
                IndexChange::Remove { server } => next.remove(&server),
            }
        }
        next.update_normalized_weights();
        next
    }

    /// The tools with a term.
    pub(crate) fn postings(&self, term: &str) -> &[TermPosting] {
        self.terms.get(term).map_or(&[], |postings| postings)
    }

    /// The tools in which two terms are adjacent.
    pub(crate) fn adjacent(&self, one: &str, other: &str) -> Vec<TermPosting> {
        let (first, second) = (self.postings(one), self.postings(other));
        let rarer = if first.len() < second.len() { first } else { second };
        let hash = bigrams::bigram_hash(bigrams::term_hash(one), bigrams::term_hash(other));
        let adjacent = |posting: &TermPosting| {
            let slot = self.slots[posting.slot as usize].as_ref()?;
            Some(TermPosting { slot: posting.slot, counts: bigrams::counts(&slot.bigrams, hash)? })
        };
        rarer.iter().filter_map(adjacent).collect()
    }

    fn put(&mut self, server: String, tools: &[ToolDocument]) {
        if tools.is_empty() {
            return;
        }
        let index = ServerIndex::new(&server, tools, &self.lexicon);
        self.vocabulary.add(&index.words);
        let number = self.free_server_number();
        let slots = self.free_slots(tools.len());
        self.server_sizes[number] = tools.len();
        self.tools += tools.len();
        for (tool, slot) in index.tools.iter().zip(&slots) {
            let (key, bigrams) = (Arc::clone(&tool.key), Arc::clone(&tool.bigrams));
            self.slots[*slot as usize] =
                Some(ToolSlot { key, server: number, lengths: tool.lengths, bigrams });
        }
        for (term, occurrences) in &index.terms {
            let postings = self.terms.entry(Arc::clone(term)).or_default();
            let added = occurrences.iter().map(|occurrence| TermPosting {
                slot: slots[occurrence.document],
                counts: occurrence.counts,
            });
            Arc::make_mut(postings).extend(added);
        }
        self.servers.insert(server, ServerEntry { number, index: Arc::new(index), slots: slots.into() });
    }

    fn remove(&mut self, server: &str) {
        let Some(entry) = self.servers.remove(server) else { return };
        self.server_sizes[entry.number] = 0;
        self.tools -= entry.slots.len();
        self.vocabulary.remove(&entry.index.words);
        for slot in entry.slots.iter() {
            self.slots[*slot as usize] = None;
        }
        for (term, _) in &entry.index.terms {
            let Some(postings) = self.terms.get_mut(term) else { continue };
            let postings = Arc::make_mut(postings);
            postings.retain(|posting| entry.slots.binary_search(&posting.slot).is_err());
            if postings.is_empty() {
                self.terms.remove(term);
            }
        }
    }

    fn free_server_number(&mut self) -> usize {
        if self.servers.len() == self.server_sizes.len() {
            self.server_sizes.push(0);
        }
        let free = self.server_sizes.iter().rposition(|size| *size == 0);
        free.unwrap_or_default()
    }

    /// Returns empty slots in ascending order, so that the tools of a server keep their order.
    fn free_slots(&mut self, count: usize) -> Vec<u32> {
        let mut free = Vec::with_capacity(count);
        if self.tools < self.slots.len() {
            let empty = self.slots.iter().enumerate().filter(|(_, slot)| slot.is_none());
            free.extend(empty.map(|(at, _)| at as u32).take(count));
        }
        while free.len() < count {
            free.push(self.slots.len() as u32);
            self.slots.push(None);
        }
        free
    }

    /// Computes the weight of a word in each field of each tool, which depends on the average length of that field.
    fn update_normalized_weights(&mut self) {
        let mut sums = [0_u64; FIELDS];
        for slot in self.slots.iter().flatten() {
            for (sum, length) in sums.iter_mut().zip(slot.lengths) {
                *sum += u64::from(length);
            }
        }
        let averages = sums.map(|sum| (sum as f64 / self.tools.max(1) as f64) as f32);
        let weights = |slot: &ToolSlot| normalized_weights(&self.ranking, slot, &averages);
        let weights = self.slots.iter().map(|slot| slot.as_ref().map(weights).unwrap_or_default());
        self.normalized_weights = weights.collect();
    }
}

/// The weights of the fields of a tool, normalized by their lengths as in BM25F.
fn normalized_weights(ranking: &RankingWeights, slot: &ToolSlot, averages: &[f32; FIELDS]) -> [f32; FIELDS] {
    let mut normalized = [0.0; FIELDS];
    for (field, weight) in ranking.fields().iter().enumerate() {
        if slot.lengths[field] > 0 {
            let length = f32::from(slot.lengths[field]) / averages[field];
            normalized[field] =
                weight.weight / (1.0 - weight.length_penalty + weight.length_penalty * length);
        }
    }
    normalized
}
