//! The tools of one server, as terms. It is computed once and shared by all snapshots with these tools.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bigrams::{self, TermBigram};
use crate::compounds;
use crate::lexicon::SearchLexicon;
use crate::ranking::{FIELDS, ToolField};
use crate::tool_document::ToolDocument;
use crate::words::{self, TextToken};

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
    /// The bigrams, except those in descriptions of parameters.
    pub(crate) bigrams: Arc<[TermBigram]>,
}

/// The occurrences of a term in a tool.
pub(crate) struct TermOccurrence {
    /// Position of the tool in the list of the server.
    pub(crate) document: usize,
    pub(crate) counts: FieldCounts,
}

impl ServerIndex {
    pub(crate) fn new(server: &str, tools: &[ToolDocument], lexicon: &SearchLexicon) -> Self {
        let mut terms = TermTable::default();
        let read = |(at, tool)| {
            let reader = DocumentReader {
                lexicon,
                terms: &mut terms,
                document: at,
                lengths: [0; FIELDS],
                remaining_bytes: MAX_TOOL_BYTES,
            };
            reader.tool(server, tool)
        };
        let tools = tools.iter().enumerate().map(read).collect();
        let words = terms.by_word.into_keys().map(Into::into).collect();
        let terms = terms.terms.into_iter().map(|entry| (entry.term, entry.occurrences)).collect();
        Self { tools, terms, words }
    }
}

/// The terms of a server.
#[derive(Default)]
struct TermTable {
    terms: Vec<TermEntry>,
    /// The positions of the terms by words as they are written, so that each word is stemmed once.
    by_word: HashMap<String, usize>,
    by_term: HashMap<Arc<str>, usize>,
}

struct TermEntry {
    term: Arc<str>,
    hash: u32,
    occurrences: Vec<TermOccurrence>,
}

impl TermTable {
    /// Returns the position of the term of a word.
    fn word(&mut self, word: &str, lexicon: &SearchLexicon) -> usize {
        if let Some(at) = self.by_word.get(word) {
            return *at;
        }
        let at = self.term(&lexicon.stem(word));
        self.by_word.insert(word.to_owned(), at);
        at
    }

    /// Returns the position of a term.
    fn term(&mut self, term: &str) -> usize {
        if let Some(at) = self.by_term.get(term) {
            return *at;
        }
        let (at, term) = (self.terms.len(), Arc::<str>::from(term));
        let hash = bigrams::term_hash(&term);
        self.terms.push(TermEntry { term: Arc::clone(&term), hash, occurrences: Vec::new() });
        self.by_term.insert(term, at);
        at
    }
}

/// Reads the texts of a tool.
struct DocumentReader<'s> {
    lexicon: &'s SearchLexicon,
    terms: &'s mut TermTable,
    document: usize,
    lengths: [u16; FIELDS],
    /// Number of bytes that may still be read.
    remaining_bytes: usize,
}

impl DocumentReader<'_> {
    fn tool(mut self, server: &str, tool: &ToolDocument) -> DocumentTerms {
        let mut bigrams = self.text(ToolField::Server, server);
        for name in [tool.name.as_str()].into_iter().chain(tool.title.as_deref()) {
            bigrams.extend(self.text(ToolField::Name, name));
            if name.len() <= MAX_NAME_BYTES && words::count(name) > 1 {
                self.compound(ToolField::Name, &words::joined(name));
            }
        }
        bigrams.extend(self.text(ToolField::Description, &compounds::split_words(tool, self.lexicon)));
        bigrams.extend(self.text(ToolField::Description, &tool.description));
        for (name, text) in &tool.parameters {
            bigrams.extend(self.text(ToolField::Parameter, name));
            self.text(ToolField::ParameterText, text);
        }
        DocumentTerms {
            key: tool.key.as_str().into(),
            lengths: self.lengths,
            bigrams: bigrams::merge(bigrams),
        }
    }

    /// Reads a text and returns its bigrams.
    fn text(&mut self, field: ToolField, text: &str) -> Vec<TermBigram> {
        let mut bigrams = Vec::new();
        let mut before = None;
        let text = words::truncate(text, self.remaining_bytes);
        self.remaining_bytes -= text.len();
        words::each_token(text, |token| match token {
            TextToken::Word(word) if self.lexicon.is_stop(word) => {}
            TextToken::Word(word) => {
                let at = self.terms.word(word, self.lexicon);
                self.lengths[field as usize] = self.lengths[field as usize].saturating_add(1);
                let count = &mut self.counts(at)[field as usize];
                *count = count.saturating_add(1);
                if field != ToolField::ParameterText {
                    let hash = self.terms.terms[at].hash;
                    if let Some(before) = before.replace(hash) {
                        bigrams.push(TermBigram::new(before, hash, field));
                    }
                }
            }
            TextToken::Compound(compound) => self.compound(field, &words::joined(compound)),
        });
        bigrams
    }

    /// Adds words that are written as one, beside the words themselves: they are no part of the length of the field.
    fn compound(&mut self, field: ToolField, joined: &str) {
        let at = self.terms.term(&compounds::term(&self.lexicon.stem(joined)));
        let count = &mut self.counts(at)[field as usize];
        *count = (*count).max(1);
    }

    /// Returns the occurrences of a term in this tool.
    fn counts(&mut self, term: usize) -> &mut FieldCounts {
        let occurrences = &mut self.terms.terms[term].occurrences;
        if occurrences.last().is_none_or(|last| last.document != self.document) {
            occurrences.push(TermOccurrence { document: self.document, counts: [0; FIELDS] });
        }
        let last = occurrences.len() - 1;
        &mut occurrences[last].counts
    }
}
