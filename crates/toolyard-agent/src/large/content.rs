//! The parts of a result, and the result in the form that a model gets.
//!
//! A result consists of texts, of other blocks and of structured content, which the texts may repeat. If they are too
//! long together, the parts that fit stay, and the others are put aside:
//!
//! 1. Structured content that no schema promises is left out, if texts repeat it and fit without it.
//! 2. The structured content stays if it fits: the texts are put aside.
//! 3. The texts stay if they fit: the structured content is put aside.
//! 4. Both are put aside.

use std::borrow::Cow;

use toolyard_core::output_schema::{STRUCTURED, StoredResult};
use toolyard_core::{CallOutput, Json, Object};

use super::message;
use super::mirror::StructuredMirror;

/// Characters that are reserved for the message if parts of a result stay.
const MESSAGE_CHARS: usize = 4000;

/// The limit of a result.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResultLimit {
    /// Maximum number of characters.
    pub(super) threshold: usize,
    /// True if a schema promises structured content, of which a reference is a valid form.
    pub(super) promises_structure: bool,
}

/// The content of a large result.
pub(super) struct LargeContent {
    blocks: Vec<ResultBlock>,
    structured: Option<Json>,
    lengths: PartLengths,
    mirror: StructuredMirror,
    limit: ResultLimit,
    shortening: ResultShortening,
}

/// The parts of a result that do not stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultShortening {
    /// The structured content is left out.
    LeaveStructureOut,
    /// The texts are put aside.
    Texts,
    /// The structured content is put aside.
    Structure,
    /// Both are put aside.
    Both,
}

enum ResultBlock {
    Text(String),
    /// A link, a resource with a short text, or a block of an unknown kind.
    Other(Json),
    /// An image, a sound or a binary resource: its length says nothing about that in a context window.
    Media(Json),
}

impl LargeContent {
    /// Parses a result. Returns `None` if it is no longer than its limit.
    pub(super) fn open(output: &CallOutput, limit: ResultLimit) -> Option<Self> {
        let blocks = output.body.get("content").map_or_else(|| Ok(Vec::new()), Json::to_items).ok()?;
        let mut blocks: Vec<_> =
            blocks.into_iter().map(|block| ResultBlock::of(block, limit.threshold)).collect();
        let structured = output.body.get(STRUCTURED).cloned();
        let mut lengths = PartLengths::of(&blocks, structured.as_ref());
        if lengths.texts + lengths.others + lengths.structure <= limit.threshold {
            return None;
        }
        if !limit.leaves_room(lengths.others) {
            blocks = blocks.into_iter().map(ResultBlock::into_text).collect();
            lengths = PartLengths::of(&blocks, structured.as_ref());
        }
        let mirror = structured.as_ref().map_or(StructuredMirror::Otherwise, |structured| {
            StructuredMirror::of(structured, texts_of(&blocks))
        });
        let shortening = lengths.shortening(limit, mirror);
        Some(Self { blocks, structured, lengths, mirror, limit, shortening })
    }

    /// Returns the result without its structured content, if nothing has to be put aside.
    pub(super) fn without_structure(&self, body: &Object) -> Option<Object> {
        (self.shortening == ResultShortening::LeaveStructureOut).then(|| {
            let mut body = body.clone();
            body.remove(STRUCTURED);
            body
        })
    }

    /// Returns the size in bytes of what is put aside.
    pub(super) fn size(&self) -> usize {
        self.aside().map(str::len).sum()
    }

    /// Returns the text that is put aside, if it has several parts: they are separated by blank lines. `None` if it is
    /// one part.
    pub(super) fn joined_text(&self) -> Option<String> {
        (self.aside().count() > 1).then(|| self.aside().collect::<Vec<_>>().join("\n\n"))
    }

    /// Returns the maximum number of characters of the result.
    pub(super) const fn threshold(&self) -> usize {
        self.limit.threshold
    }

    /// Returns the parts that are put aside. Of parts that repeat each other, one is enough.
    pub(super) fn aside(&self) -> impl Iterator<Item = &str> {
        let (has_texts, has_structure) = match self.mirror {
            StructuredMirror::Text | StructuredMirror::Among => (true, false),
            // Without the indentation of the text, and with the limits of items.
            StructuredMirror::Json => (false, true),
            StructuredMirror::Otherwise => (self.puts_texts_aside(), self.puts_structure_aside()),
        };
        let structured = self.structured.as_ref().filter(|_| has_structure).map(Json::as_text);
        texts_of(&self.blocks).filter(move |_| has_texts).chain(structured)
    }

    /// Returns the number of characters that remain beside the parts that stay.
    pub(super) fn room(&self) -> usize {
        let PartLengths { texts, others, structure } = self.lengths;
        let texts = if self.puts_texts_aside() { 0 } else { texts };
        let structure = if self.puts_structure_aside() { 0 } else { structure };
        self.limit.threshold.saturating_sub(texts + others + structure)
    }

    /// Returns the part that stays although the other one, which repeats it, is put aside.
    pub(super) const fn whole_part(&self) -> Option<WholePart> {
        match (self.mirror, self.shortening) {
            (StructuredMirror::Otherwise, _) | (StructuredMirror::Among, ResultShortening::Texts) => None,
            (_, ResultShortening::Texts) => Some(WholePart::Structure),
            (_, ResultShortening::Structure) => Some(WholePart::Text),
            (_, ResultShortening::LeaveStructureOut | ResultShortening::Both) => None,
        }
    }

    const fn puts_texts_aside(&self) -> bool {
        matches!(self.shortening, ResultShortening::Texts | ResultShortening::Both)
    }

    const fn puts_structure_aside(&self) -> bool {
        matches!(self.shortening, ResultShortening::Structure | ResultShortening::Both)
    }

    /// Returns the result with a message instead of what was put aside, and a reference as structured content.
    pub(super) fn with_message(self, body: Object, message: &str, reference: Json) -> Object {
        let message = (self.whole_part() != Some(WholePart::Text)).then(|| text_block(message));
        self.shortened(body, message.into_iter().collect(), reference)
    }

    /// Returns the result with the beginning of what does not fit, followed by a notice.
    pub(super) fn truncated(self, body: Object, why: &str) -> Object {
        let chars: usize = self.aside().map(|text| text.chars().count()).sum();
        if self.whole_part() == Some(WholePart::Text) {
            let note = &message::text_is_whole(why);
            return self.shortened(body, Vec::new(), StoredResult { stored: None, chars, note }.to_json());
        }
        let room = self.room();
        // Whatever fits is not cut, and the notice is not shown.
        let notice = match chars.checked_sub(room) {
            None | Some(0) => message::text_is_whole(why),
            Some(omitted) => message::truncation(omitted, why),
        };
        let beginning = truncated_texts(self.aside(), room, &notice);
        let reference = StoredResult { stored: None, chars, note: notice.trim_start() };
        self.shortened(body, beginning, reference.to_json())
    }

    /// Returns the result with other blocks for what was put aside, and a reference as structured content if that was
    /// promised. The blocks are in the places of the texts, those without a place at the end.
    fn shortened(self, mut body: Object, replacements: Vec<Json>, reference: Json) -> Object {
        let (puts_texts_aside, puts_structure_aside) = (self.puts_texts_aside(), self.puts_structure_aside());
        let mut replacements = replacements.into_iter();
        let mut content = Vec::new();
        for block in self.blocks {
            match block {
                ResultBlock::Text(_) if puts_texts_aside => content.extend(replacements.next()),
                ResultBlock::Text(text) => content.push(text_block(&text)),
                ResultBlock::Other(json) | ResultBlock::Media(json) => content.push(json),
            }
        }
        content.extend(replacements);
        body.set("content", Json::array(&content));
        match self.structured {
            Some(_) if puts_structure_aside && self.limit.promises_structure => {
                body.set(STRUCTURED, reference);
            }
            Some(_) if puts_structure_aside => drop(body.remove(STRUCTURED)),
            _ => {}
        }
        body
    }
}

/// A part of a result that has all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WholePart {
    Text,
    Structure,
}

/// The lengths of the parts of a result in characters.
#[derive(Clone, Copy)]
struct PartLengths {
    texts: usize,
    others: usize,
    structure: usize,
}

impl PartLengths {
    fn of(blocks: &[ResultBlock], structured: Option<&Json>) -> Self {
        let chars = |text: &str| text.chars().count();
        let others = blocks.iter().filter_map(|block| match block {
            ResultBlock::Other(json) => Some(chars(json.as_text())),
            ResultBlock::Text(_) | ResultBlock::Media(_) => None,
        });
        Self {
            texts: texts_of(blocks).map(chars).sum(),
            others: others.sum(),
            structure: structured.map_or(0, |json| chars(json.as_text())),
        }
    }

    fn shortening(self, limit: ResultLimit, mirror: StructuredMirror) -> ResultShortening {
        let Self { texts, others, structure } = self;
        let repeats = mirror != StructuredMirror::Otherwise;
        if repeats && !limit.promises_structure && texts + others <= limit.threshold {
            ResultShortening::LeaveStructureOut
        } else if structure > 0 && limit.leaves_room(structure + others) {
            ResultShortening::Texts
        } else if structure > 0 && limit.leaves_room(texts + others) {
            ResultShortening::Structure
        } else {
            ResultShortening::Both
        }
    }
}

impl ResultLimit {
    /// Returns `true` if there is room for a message beside a number of characters.
    fn leaves_room(self, chars: usize) -> bool {
        chars + MESSAGE_CHARS.min(self.threshold / 4) <= self.threshold
    }
}

impl ResultBlock {
    /// Classifies a block. The text of a resource stays with its URI, unless it is large by itself.
    fn of(block: Json, threshold: usize) -> Self {
        let Ok(object) = block.to_object() else { return Self::Other(block) };
        match object.get_str("type").as_deref() {
            Some("text") => {
                object.get_str("text").map(Cow::into_owned).map_or(Self::Other(block), Self::Text)
            }
            Some("image" | "audio") => Self::Media(block),
            Some("resource") => match ResourceContent::of(&object) {
                Some(ResourceContent::Text(text)) if text.chars().nth(threshold).is_some() => {
                    Self::Text(text)
                }
                Some(ResourceContent::Binary) => Self::Media(block),
                _ => Self::Other(block),
            },
            _ => Self::Other(block),
        }
    }

    /// Returns the text of a block that can be put aside.
    fn into_text(self) -> Self {
        let Self::Other(block) = self else { return self };
        let resource = block.to_object().ok().and_then(|object| ResourceContent::of(&object));
        match resource {
            Some(ResourceContent::Text(text)) => Self::Text(text),
            _ => Self::Text(block.as_text().to_owned()),
        }
    }
}

/// The content of an embedded resource.
enum ResourceContent {
    Text(String),
    Binary,
}

impl ResourceContent {
    fn of(block: &Object) -> Option<Self> {
        let resource = block.get("resource")?.to_object().ok()?;
        let text = resource.get_str("text").map(|text| Self::Text(text.into_owned()));
        text.or_else(|| resource.get("blob").map(|_| Self::Binary))
    }
}

fn texts_of(blocks: &[ResultBlock]) -> impl Iterator<Item = &str> + Clone {
    blocks.iter().filter_map(|block| match block {
        ResultBlock::Text(text) => Some(text.as_str()),
        ResultBlock::Other(_) | ResultBlock::Media(_) => None,
    })
}

/// Returns blocks with the first `chars` characters of texts, followed by a notice.
fn truncated_texts<'a>(texts: impl Iterator<Item = &'a str>, chars: usize, notice: &str) -> Vec<Json> {
    let (mut left, mut blocks) = (chars, Vec::new());
    for text in texts {
        if let Some((end, _)) = text.char_indices().nth(left) {
            blocks.push(text_block(&format!("{}{notice}", &text[..end])));
            break;
        }
        left -= text.chars().count();
        blocks.push(text_block(text));
    }
    blocks
}

fn text_block(text: &str) -> Json {
    Object::new().with("type", Json::string("text")).with("text", Json::string(text)).to_json()
}
