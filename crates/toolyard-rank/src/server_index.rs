//! The tools of one server, as terms. It is computed once and shared by all snapshots with these tools.

use std::collections::HashMap;
use std::sync::Arc;

use crate::compounds;
use crate::lexicon::SearchLexicon;
use crate::ranking::{FIELDS, ToolField};
use crate::term_pairs::{self, TermPair};
use crate::tool_document::ToolDocument;
use crate::words;

/// Maximum length of all texts of a tool, in bytes; the rest is ignored.
const MAX_TOOL_BYTES: usize = 64 << 10;

/// Maximum length of a name that is searched for in one piece, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Number of occurrences of a term in each field.
pub(crate) type FieldCounts = [u8; FIELDS];

pub(crate) struct ServerIndex {
    pub(crate) tools: Vec<DocumentTerms>,
    /// The terms and their occurrences in the tools.
    pub(crate) terms: Vec<(Arc<str>, Vec<TermOccurrence>)>,
    /// The words as they are written, in lower case and without stop words, each once.
    pub(crate) words: Vec<Arc<str>>,
}

/// The terms of one tool.
pub(crate) struct DocumentTerms {
    pub(crate) key: Arc<str>,
    /// Number of terms in each field.
    pub(crate) lengths: [u16; FIELDS],
    /// The pairs of adjacent terms, except those in descriptions of parameters.
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
        let (mut terms, mut stems) = (HashMap::new(), HashMap::new());
        let shelve = |(at, tool)| {
            let reader = DocumentReader {
                lexicon,
                terms: &mut terms,
                stems: &mut stems,
                document: at,
                lengths: [0; FIELDS],
                remaining_bytes: MAX_TOOL_BYTES,
            };
            reader.tool(server, tool)
        };
        let tools = tools.iter().enumerate().map(shelve).collect();
        let terms = terms.into_iter().collect();
        let words = stems.into_keys().map(Into::into).collect();
        Self { tools, terms, words }
    }
}

/// Reads the texts of a tool.
struct DocumentReader<'s> {
    lexicon: &'s SearchLexicon,
    terms: &'s mut HashMap<Arc<str>, Vec<TermOccurrence>>,
    /// The stems of the words of this server.
    stems: &'s mut HashMap<String, Arc<str>>,
    document: usize,
    lengths: [u16; FIELDS],
    /// Number of bytes that may still be read.
    remaining_bytes: usize,
}

impl DocumentReader<'_> {
    fn tool(mut self, server: &str, tool: &ToolDocument) -> DocumentTerms {
        let mut pairs = self.text(ToolField::Server, server);
        for name in [tool.name.as_str()].into_iter().chain(tool.title.as_deref()) {
            pairs.extend(self.text(ToolField::Name, name));
            if name.len() <= MAX_NAME_BYTES && words::count(name) > 1 {
                self.compound(ToolField::Name, &words::joined(name));
            }
        }
        pairs.extend(self.text(ToolField::Description, &compounds::split_words(tool, self.lexicon)));
        pairs.extend(self.text(ToolField::Description, &tool.description));
        for (name, text) in &tool.parameters {
            pairs.extend(self.text(ToolField::Parameter, name));
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
        let mut before: Arc<str> = Arc::default();
        let text = words::truncate(text, self.remaining_bytes);
        self.remaining_bytes -= text.len();
        words::each_word(text, |word| {
            if self.lexicon.is_stop(word) {
                return;
            }
            let term = self.stem(word);
            self.term(field, &term);
            if field != ToolField::ParameterText {
                if !before.is_empty() {
                    pairs.push(TermPair::new(&before, &term, field));
                }
                before = term;
            }
        });
        words::each_compound(text, |compound| self.compound(field, compound));
        pairs
    }

    /// Adds words that are written as one, beside the words themselves: they are no part of the length of the field.
    fn compound(&mut self, field: ToolField, joined: &str) {
        let term: Arc<str> = compounds::term(&self.lexicon.stem(joined)).into();
        let counts = self.counts(&term);
        counts[field as usize] = counts[field as usize].max(1);
    }

    /// The stem of a word, which is computed once for each server.
    fn stem(&mut self, word: &str) -> Arc<str> {
        if let Some(stem) = self.stems.get(word) {
            return Arc::clone(stem);
        }
        let stem: Arc<str> = self.lexicon.stem(word).as_ref().into();
        self.stems.insert(word.to_owned(), Arc::clone(&stem));
        stem
    }

    fn term(&mut self, field: ToolField, term: &Arc<str>) {
        let field = field as usize;
        self.lengths[field] = self.lengths[field].saturating_add(1);
        let counts = self.counts(term);
        counts[field] = counts[field].saturating_add(1);
    }

    /// Returns the occurrences of a term in this tool.
    fn counts(&mut self, term: &Arc<str>) -> &mut FieldCounts {
        let occurrences = self.terms.entry(Arc::clone(term)).or_default();
        if occurrences.last().is_none_or(|last| last.document != self.document) {
            occurrences.push(TermOccurrence { document: self.document, counts: [0; FIELDS] });
        }
        let last = occurrences.len() - 1;
        &mut occurrences[last].counts
    }
}
