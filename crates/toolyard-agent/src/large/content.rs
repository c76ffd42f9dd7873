//! The parts of a result, and the result in the form that a model gets.
//!
//! A result consists of texts, of other blocks and of structured content, which the texts may repeat. If they are too
//! long together, the parts that fit stay, and the others are put aside:
//!
//! 1. Texts that are long because of what surrounds them are joined.
//! 2. Structured content that no schema promises is left out, if texts repeat it and fit without it.
//! 3. The texts stay if they fit, because some hosts show a model nothing else: the structured content is put aside.
//! 4. The structured content stays if it fits: the texts are put aside.
//! 5. Both are put aside.

use toolyard_core::output_schema::{STRUCTURED, StoredResult};
use toolyard_core::{CallOutput, Json, Object};

use super::blocks::{ResultBlock, texts_of};
use super::message;
use super::mirror::StructuredMirror;
use super::rules;

/// Characters that are reserved for the message if parts of a result stay.
const MESSAGE_CHARS: usize = 4000;

/// Length of what may surround the texts of a result, in characters, without counting.
const FREE_FRAMES: usize = 1000;

/// Maximum characters of a reference to structured content whose text stays.
const REFERENCE_CHARS: usize = 1500;

/// Maximum characters of a reference without a key, beside its note.
const REFERENCE_FRAME: usize = 80;

/// The limit of a result.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResultLimit {
    /// Maximum number of characters.
    pub(super) threshold: usize,
    /// True if a schema promises structured content, of which a reference is a valid form.
    pub(super) promises_structure: bool,
    /// True if structured content stays at any length.
    pub(super) keeps_structure: bool,
}

/// The content of a large result.
pub(super) struct LargeContent {
    blocks: Vec<ResultBlock>,
    structured: Option<Json>,
    lengths: PartLengths,
    mirror: StructuredMirror,
    limit: ResultLimit,
    shortening: ResultShortening,
    /// True if the texts become one block.
    joins_texts: bool,
}

/// The parts of a result that do not stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultShortening {
    /// All parts stay.
    Nothing,
    /// The structured content is left out.
    LeaveStructureOut,
    /// The texts are put aside.
    Texts,
    /// The structured content is put aside.
    Structure,
    /// Both are put aside.
    Both,
}

impl LargeContent {
    /// Parses a result. Returns `None` if it is no longer than its limit.
    pub(super) fn open(output: &CallOutput, limit: ResultLimit) -> Option<Self> {
        let content = output.body.get("content");
        // What is no list is put aside as a whole.
        let blocks =
            content.map_or_else(Vec::new, |json| json.to_items().unwrap_or_else(|_| vec![json.clone()]));
        let mut blocks: Vec<_> =
            blocks.into_iter().map(|block| ResultBlock::of(block, limit.threshold)).collect();
        let structured = output.body.get(STRUCTURED).cloned();
        let mut lengths = PartLengths::of(&blocks, structured.as_ref());
        let joins_texts = lengths.frames > FREE_FRAMES && lengths.sum() + lengths.frames > limit.threshold;
        if lengths.sum() <= limit.threshold && !joins_texts {
            return None;
        }
        if !limit.leaves_room(lengths.others, MESSAGE_CHARS) {
            blocks = blocks.into_iter().map(ResultBlock::into_text).collect();
            lengths = PartLengths::of(&blocks, structured.as_ref());
        }
        if joins_texts {
            lengths.texts += texts_of(&blocks).filter(|text| !text.is_empty()).count().saturating_sub(1);
        }
        let mirror = structured.as_ref().map_or(StructuredMirror::Otherwise, |structured| {
            StructuredMirror::of(structured, texts_of(&blocks))
        });
        let shortening = lengths.shortening(limit, mirror);
        Some(Self { blocks, structured, lengths, mirror, limit, shortening, joins_texts })
    }

    /// Returns the result in its short form, if nothing has to be put aside.
    pub(super) fn without_storage(&self, body: &Object) -> Option<Object> {
        let mut body = body.clone();
        match self.shortening {
            ResultShortening::Nothing => {}
            ResultShortening::LeaveStructureOut => drop(body.remove(STRUCTURED)),
            _ => return None,
        }
        if self.joins_texts {
            body.set("content", self.content_with(Vec::new()));
        }
        Some(body)
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
        let PartLengths { texts, others, structure, .. } = self.lengths;
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
            (_, _) => None,
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
        let whole = message::text_is_whole(why);
        if self.whole_part() == Some(WholePart::Text) {
            return self.shortened(
                body,
                Vec::new(),
                StoredResult { stored: None, chars, note: &whole }.to_json(),
            );
        }
        let room = self.room();
        let is_referred = self.puts_structure_aside() && self.limit.promises_structure;
        let joined = self.joined_small_texts().filter(|_| self.puts_texts_aside());
        let room_for_text = self.room_beside_notice(room, why, is_referred);
        // Whatever fits is not cut, and the notice is not shown.
        let (notice, room) = match chars <= self.room_beside_whole(room, &whole, is_referred) {
            true => (whole, room),
            false => (message::truncation(chars.saturating_sub(room_for_text), why), room_for_text),
        };
        let beginning = match joined {
            Some(joined) => truncated_texts(std::iter::once(&*joined), room, &notice),
            None => truncated_texts(self.aside(), room, &notice),
        };
        let reference = StoredResult { stored: None, chars, note: notice.trim_start() };
        self.shortened(body, beginning, reference.to_json())
    }

    /// Returns the result with other blocks for what was put aside, and a reference as structured content if that was
    /// promised. The blocks are in the places of the texts, those without a place at the end.
    fn shortened(self, mut body: Object, replacements: Vec<Json>, reference: Json) -> Object {
        let puts_structure_aside = self.puts_structure_aside();
        body.set("content", self.content_with(replacements));
        match self.structured {
            Some(_) if puts_structure_aside && self.limit.promises_structure => {
                body.set(STRUCTURED, reference);
            }
            Some(_) if puts_structure_aside => drop(body.remove(STRUCTURED)),
            _ => {}
        }
        body
    }

    /// Returns the number of characters that a whole text may have beside a reference.
    fn room_beside_whole(&self, room: usize, note: &str, has_reference: bool) -> usize {
        match has_reference && self.limit.threshold >= rules::MIN_BOUND {
            true => room.saturating_sub(note.chars().count() + REFERENCE_FRAME),
            false => room,
        }
    }

    /// Returns the number of characters that a truncated text may have beside its notice, which a reference repeats: at
    /// least half of the room. Low bounds do not include the notice.
    fn room_beside_notice(&self, room: usize, why: &str, has_reference: bool) -> usize {
        if self.limit.threshold < rules::MIN_BOUND {
            return room;
        }
        let notice = message::truncation(usize::MAX, why).chars().count();
        let reference = if has_reference { notice + REFERENCE_FRAME } else { 0 };
        room.saturating_sub(notice + reference).max(room / 2)
    }

    /// Returns the blocks with others for the texts that are put aside.
    fn content_with(&self, replacements: Vec<Json>) -> Json {
        let puts_texts_aside = self.puts_texts_aside();
        let mut joined = self.joined_small_texts();
        let mut replacements = replacements.into_iter();
        let mut content = Vec::new();
        for block in &self.blocks {
            match block {
                ResultBlock::Text { .. } if puts_texts_aside => content.extend(replacements.next()),
                ResultBlock::Text { .. } if self.joins_texts => {
                    content.extend(joined.take().map(|text| text_block(&text)));
                }
                ResultBlock::Text { text, .. } => content.push(text_block(text)),
                ResultBlock::Other(json) | ResultBlock::Media(json) => content.push(json.clone()),
            }
        }
        content.extend(replacements);
        Json::array(&content)
    }

    /// Returns the texts as one, each on its own line, if they are joined.
    fn joined_small_texts(&self) -> Option<String> {
        let texts = texts_of(&self.blocks).filter(|text| !text.is_empty());
        self.joins_texts.then(|| texts.collect::<Vec<_>>().join("\n"))
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
    /// Length of the members beside the texts.
    frames: usize,
}

impl PartLengths {
    fn of(blocks: &[ResultBlock], structured: Option<&Json>) -> Self {
        let chars = |text: &str| text.chars().count();
        let structure = structured.map_or(0, |json| chars(json.as_text()));
        let mut lengths = Self { texts: 0, others: 0, structure, frames: 0 };
        for block in blocks {
            match block {
                ResultBlock::Text { text, frame } => {
                    lengths.texts += chars(text);
                    lengths.frames += frame;
                }
                ResultBlock::Other(json) => lengths.others += chars(json.as_text()),
                ResultBlock::Media(_) => {}
            }
        }
        lengths
    }

    /// Returns the length of the result without what surrounds its texts.
    const fn sum(self) -> usize {
        self.texts + self.others + self.structure
    }

    fn shortening(self, limit: ResultLimit, mirror: StructuredMirror) -> ResultShortening {
        let Self { texts, others, structure, .. } = self;
        let repeats = mirror != StructuredMirror::Otherwise;
        let texts_fit = texts + others <= limit.threshold;
        let leaves_message = |chars| limit.leaves_room(chars, MESSAGE_CHARS);
        // The text that stays is the message.
        let leaves_reference = repeats && limit.leaves_room(texts + others, REFERENCE_CHARS);
        if self.sum() <= limit.threshold || limit.keeps_structure && structure > 0 && texts_fit {
            ResultShortening::Nothing
        } else if limit.keeps_structure && structure > 0 {
            ResultShortening::Texts
        } else if repeats && !limit.promises_structure && texts_fit {
            ResultShortening::LeaveStructureOut
        } else if structure > 0 && (leaves_reference || leaves_message(texts + others)) {
            ResultShortening::Structure
        } else if structure > 0 && leaves_message(structure + others) {
            ResultShortening::Texts
        } else {
            ResultShortening::Both
        }
    }
}

impl ResultLimit {
    /// Returns `true` if there is room for a message of this length beside a number of characters.
    fn leaves_room(self, chars: usize, message: usize) -> bool {
        chars + message.min(self.threshold / 4) <= self.threshold
    }
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
