//! The tools of one server, as terms. A shelf is made once, and shared by all snapshots that have these tools.

use std::collections::HashMap;
use std::sync::Arc;

use crate::lexicon::Lexicon;
use crate::pairs::{self, Pair};
use crate::ranking::{FIELDS, Field};
use crate::tool::Tool;
use crate::words;

/// More is not read of all texts of a tool, in bytes.
const LONGEST_TOOL: usize = 64 << 10;

/// How often a term is in each field.
pub(crate) type Counts = [u8; FIELDS];

pub(crate) struct Shelf {
    pub(crate) tools: Vec<Shelved>,
    /// The terms, and in which tools they are.
    pub(crate) terms: Vec<(Arc<str>, Vec<Place>)>,
}

/// One tool.
pub(crate) struct Shelved {
    pub(crate) key: Arc<str>,
    /// In terms.
    pub(crate) lengths: [u16; FIELDS],
    /// The terms that stand side by side in its name or in its description.
    pub(crate) pairs: Arc<[Pair]>,
}

/// A term in a tool.
pub(crate) struct Place {
    /// The tool's place on the shelf.
    pub(crate) at: usize,
    pub(crate) counts: Counts,
}

impl Shelf {
    pub(crate) fn new(server: &str, tools: &[Tool], lexicon: &Lexicon) -> Self {
        let mut terms = HashMap::new();
        let shelve = |(at, tool)| {
            let reader = Reader { lexicon, terms: &mut terms, at, lengths: [0; FIELDS], rest: LONGEST_TOOL };
            reader.tool(server, tool)
        };
        let tools = tools.iter().enumerate().map(shelve).collect();
        let terms = terms.into_iter().map(|(term, places): (String, _)| (term.into(), places)).collect();
        Self { tools, terms }
    }
}

/// What reads a tool.
struct Reader<'s> {
    lexicon: &'s Lexicon,
    terms: &'s mut HashMap<String, Vec<Place>>,
    at: usize,
    lengths: [u16; FIELDS],
    /// How much may still be read, in bytes.
    rest: usize,
}

impl Reader<'_> {
    fn tool(mut self, server: &str, tool: &Tool) -> Shelved {
        self.text(Field::Server, server);
        let mut pairs = Vec::new();
        for name in [tool.name.as_str()].into_iter().chain(tool.title.as_deref()) {
            pairs.extend(self.text(Field::Name, name));
        }
        pairs.extend(self.text(Field::Description, &tool.description));
        for (name, text) in &tool.parameters {
            self.text(Field::Parameter, name);
            self.text(Field::ParameterText, text);
        }
        Shelved { key: tool.key.as_str().into(), lengths: self.lengths, pairs: pairs::merged(pairs) }
    }

    /// Reads a text, and gives the terms in it that stand side by side.
    fn text(&mut self, field: Field, text: &str) -> Vec<Pair> {
        let mut pairs = Vec::new();
        let mut before = String::new();
        let text = words::cut(text, self.rest);
        self.rest -= text.len();
        let lexicon = self.lexicon;
        lexicon.each_term(text, |term| {
            self.term(field, term);
            if matches!(field, Field::Name | Field::Description) {
                if !before.is_empty() {
                    pairs.push(Pair::new(&before, term, field));
                }
                before.clear();
                before.push_str(term);
            }
        });
        pairs
    }

    fn term(&mut self, field: Field, term: &str) {
        let field = field as usize;
        self.lengths[field] = self.lengths[field].saturating_add(1);
        let places = match self.terms.get_mut(term) {
            Some(places) => places,
            None => self.terms.entry(term.to_owned()).or_default(),
        };
        if places.last().is_none_or(|place| place.at != self.at) {
            places.push(Place { at: self.at, counts: [0; FIELDS] });
        }
        if let Some(Place { counts, .. }) = places.last_mut() {
            counts[field] = counts[field].saturating_add(1);
        }
    }
}
