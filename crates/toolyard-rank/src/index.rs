//! All tools, as a snapshot that never changes: a change makes another one, which shares with it what stayed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::lexicon::Lexicon;
use crate::pairs::Pair;
use crate::ranking::{FIELDS, Ranking};
use crate::shelf::{Counts, Shelf};
use crate::tool::Tool;

/// A change of one server's tools.
#[derive(Clone, Debug)]
pub enum Change {
    /// These are its tools now, whatever they were.
    Put {
        /// What the server is called. Its words count for each of its tools.
        server: String,
        /// All of its tools.
        tools: Vec<Tool>,
    },
    /// It is gone.
    Remove {
        /// What the server is called.
        server: String,
    },
}

/// All tools, to be searched. It is shared as it is: a search takes no lock, and [`Index::apply`] makes another one.
#[derive(Clone)]
pub struct Index {
    pub(crate) lexicon: Arc<Lexicon>,
    pub(crate) ranking: Ranking,
    pub(crate) terms: HashMap<Arc<str>, Arc<Vec<Posting>>>,
    /// The tools. A slot is empty where one was removed, until it is taken again.
    pub(crate) slots: Vec<Option<Slot>>,
    /// What one word in each field of a tool counts, by slot.
    pub(crate) worth: Vec<[f32; FIELDS]>,
    /// How many tools each server has, by its number; 0 is a number that nobody has.
    pub(crate) sizes: Vec<usize>,
    pub(crate) tools: usize,
    servers: BTreeMap<String, Place>,
}

/// A term in one tool.
#[derive(Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) slot: u32,
    pub(crate) counts: Counts,
}

/// A tool in the index.
#[derive(Clone)]
pub(crate) struct Slot {
    pub(crate) key: Arc<str>,
    /// Its server's number.
    pub(crate) server: usize,
    pub(crate) lengths: [u16; FIELDS],
    pub(crate) pairs: Arc<[Pair]>,
}

/// Where the tools of a server are.
#[derive(Clone)]
struct Place {
    number: usize,
    shelf: Arc<Shelf>,
    /// In the order of the shelf, and of the slots.
    slots: Arc<[u32]>,
}

impl Index {
    /// An index without tools.
    pub fn new(lexicon: Arc<Lexicon>, ranking: Ranking) -> Self {
        Self {
            lexicon,
            ranking,
            terms: HashMap::new(),
            slots: Vec::new(),
            worth: Vec::new(),
            sizes: Vec::new(),
            tools: 0,
            servers: BTreeMap::new(),
        }
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.tools
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tools == 0
    }

    /// The same tools, ranked otherwise.
    pub fn with_ranking(&self, ranking: Ranking) -> Self {
        let mut next = Self { ranking, ..self.clone() };
        next.weigh();
        next
    }

    /// The index after these changes, made in their order. Only the texts of tools that are put are read. What comes of it
    /// depends on which tools there are, and not on the way there.
    pub fn apply(&self, changes: impl IntoIterator<Item = Change>) -> Self {
        let mut next = self.clone();
        for change in changes {
            match change {
                Change::Put { server, tools } => {
                    next.remove(&server);
                    next.put(server, &tools);
                }
                Change::Remove { server } => next.remove(&server),
            }
        }
        next.weigh();
        next
    }

    fn put(&mut self, server: String, tools: &[Tool]) {
        if tools.is_empty() {
            return;
        }
        let shelf = Shelf::new(&server, tools, &self.lexicon);
        let number = self.free_number();
        let slots = self.free_slots(tools.len());
        self.sizes[number] = tools.len();
        self.tools += tools.len();
        for (tool, slot) in shelf.tools.iter().zip(&slots) {
            let (key, pairs) = (Arc::clone(&tool.key), Arc::clone(&tool.pairs));
            self.slots[*slot as usize] = Some(Slot { key, server: number, lengths: tool.lengths, pairs });
        }
        for (term, places) in &shelf.terms {
            let postings = self.terms.entry(Arc::clone(term)).or_default();
            let of_shelf = places.iter().map(|place| Posting { slot: slots[place.at], counts: place.counts });
            Arc::make_mut(postings).extend(of_shelf);
        }
        self.servers.insert(server, Place { number, shelf: Arc::new(shelf), slots: slots.into() });
    }

    fn remove(&mut self, server: &str) {
        let Some(place) = self.servers.remove(server) else { return };
        self.sizes[place.number] = 0;
        self.tools -= place.slots.len();
        for slot in place.slots.iter() {
            self.slots[*slot as usize] = None;
        }
        for (term, _) in &place.shelf.terms {
            let Some(postings) = self.terms.get_mut(term) else { continue };
            let kept = Arc::make_mut(postings);
            kept.retain(|posting| place.slots.binary_search(&posting.slot).is_err());
            if kept.is_empty() {
                self.terms.remove(term);
            }
        }
    }

    fn free_number(&mut self) -> usize {
        if self.servers.len() == self.sizes.len() {
            self.sizes.push(0);
        }
        let free = self.sizes.iter().rposition(|size| *size == 0);
        free.unwrap_or_default()
    }

    /// Slots that are empty, in their order, so that the tools of a server stay in theirs.
    fn free_slots(&mut self, wanted: usize) -> Vec<u32> {
        let mut free = Vec::with_capacity(wanted);
        if self.tools < self.slots.len() {
            let empty = self.slots.iter().enumerate().filter(|(_, slot)| slot.is_none());
            free.extend(empty.map(|(at, _)| at as u32).take(wanted));
        }
        while free.len() < wanted {
            free.push(self.slots.len() as u32);
            self.slots.push(None);
        }
        free
    }

    /// Finds out what a word counts in each field of each tool. It depends on how long that field is in all tools.
    fn weigh(&mut self) {
        let mut sums = [0_u64; FIELDS];
        for slot in self.slots.iter().flatten() {
            for (sum, length) in sums.iter_mut().zip(slot.lengths) {
                *sum += u64::from(length);
            }
        }
        let averages = sums.map(|sum| (sum as f64 / self.tools.max(1) as f64) as f32);
        let worth = |slot: &Option<Slot>| slot.as_ref().map(|slot| worth(&self.ranking, slot, &averages));
        self.worth = self.slots.iter().map(|slot| worth(slot).unwrap_or_default()).collect();
    }
}

fn worth(ranking: &Ranking, slot: &Slot, averages: &[f32; FIELDS]) -> [f32; FIELDS] {
    let mut worth = [0.0; FIELDS];
    for (field, weight) in ranking.fields().iter().enumerate() {
        if slot.lengths[field] > 0 {
            let length = f32::from(slot.lengths[field]) / averages[field];
            worth[field] = weight.weight / (1.0 - weight.loss + weight.loss * length);
        }
    }
    worth
}
