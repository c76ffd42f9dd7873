//! The tools of one server, as terms. It is computed once and shared by all snapshots with these tools.

use std::collections::HashMap;
use std::sync::Arc;

use crate::lexicon::SearchLexicon;
use crate::ranking::{FIELDS, ToolField};
use crate::term_pairs::{self, TermPair};
use crate::tool_document::ToolDocument;
use crate::words;

/// Maximum length of all texts of a tool, in bytes; the rest is ignored.
const MAX_TOOL_BYTES: usize = 64 << 10;

/// Number of occurrences of a term in each field.
pub(crate) type FieldCounts = [u8; FIELDS];

pub(crate) struct ServerIndex {
    pub(crate) tools: Vec<DocumentTerms>,
    /// The terms and their occurrences in the tools.
    pub(crate) terms: Vec<(Arc<str>, Vec<TermOccurrence>)>,
}

/// The terms of one tool.
pub(crate) struct DocumentTerms {
    pub(crate) key: Arc<str>,
    /// Number of terms in each field.
    pub(crate) lengths: [u16; FIELDS],
    /// The pairs of adjacent terms in the name and the description.
    pub(crate) pairs: Arc<[TermPair]>,
}

/// The occurrences of a term in a tool.
pub(crate) struct TermOccurrence {
    /// Position of the tool in the list of the server.
    pub(crate) document: usize,
    pub(crate) counts: FieldCounts,
}

impl ServerIndex {
    pub(crate) fn new(server: &str, tools: &[ToolDocument], lexicon: &SearchLexicon) -> Self {
        let mut terms = HashMap::new();
        let shelve = |(at, tool)| {
            let reader = DocumentReader {
                lexicon,
                terms: &mut terms,
                document: at,
                lengths: [0; FIELDS],
                remaining_bytes: MAX_TOOL_BYTES,
            };
            reader.tool(server, tool)
        };
        let tools = tools.iter().enumerate().map(shelve).collect();
        let terms = terms.into_iter().map(|(term, places): (String, _)| (term.into(), places)).collect();
        Self { tools, terms }
    }
}

/// Reads the texts of a tool.
struct DocumentReader<'s> {
    lexicon: &'s SearchLexicon,
    terms: &'s mut HashMap<String, Vec<TermOccurrence>>,
    document: usize,
    lengths: [u16; FIELDS],
    /// Number of bytes that may still be read.
    remaining_bytes: usize,
}

impl DocumentReader<'_> {
    fn tool(mut self, server: &str, tool: &ToolDocument) -> DocumentTerms {
        self.text(ToolField::Server, server);
        let mut pairs = Vec::new();
        for name in [tool.name.as_str()].into_iter().chain(tool.title.as_deref()) {
            pairs.extend(self.text(ToolField::Name, name));
        }
        pairs.extend(self.text(ToolField::Description, &tool.description));
        for (name, text) in &tool.parameters {
            self.text(ToolField::Parameter, name);
            self.text(ToolField::ParameterText, text);
        }
        DocumentTerms {
            key: tool.key.as_str().into(),
            lengths: self.lengths,
            pairs: term_pairs::merge(pairs),
        }
    }

    /// Reads a text and returns its pairs of adjacent terms.
    fn text(&mut self, field: ToolField, text: &str) -> Vec<TermPair> {
        let mut pairs = Vec::new();
        let mut before = String::new();
        let text = words::truncate(text, self.remaining_bytes);
        self.remaining_bytes -= text.len();
        let lexicon = self.lexicon;
        lexicon.each_term(text, |term| {
            self.term(field, term);
            if matches!(field, ToolField::Name | ToolField::Description) {
                if !before.is_empty() {
                    pairs.push(TermPair::new(&before, term, field));
                }
                before.clear();
                before.push_str(term);
            }
        });
        pairs
    }

    fn term(&mut self, field: ToolField, term: &str) {
        let field = field as usize;
        self.lengths[field] = self.lengths[field].saturating_add(1);
        let places = match self.terms.get_mut(term) {
            Some(places) => places,
            None => self.terms.entry(term.to_owned()).or_default(),
        };
        if places.last().is_none_or(|place| place.document != self.document) {
            places.push(TermOccurrence { document: self.document, counts: [0; FIELDS] });
        }
        if let Some(TermOccurrence { counts, .. }) = places.last_mut() {
            counts[field] = counts[field].saturating_add(1);
        }
    }
}
