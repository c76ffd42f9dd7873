//! The texts of a result, and the result with other content.

use std::borrow::Cow;

use serde_json::Value;
use tokio::task::spawn_blocking;
use toolyard_core::{CallOutput, Json, Object};

use super::message;

/// Maximum size in bytes of a result that is parsed on the calling task, which takes a few milliseconds.
const MAX_INLINE_BYTES: usize = 1024 * 1024;

/// The content of a large result.
pub(super) struct LargeContent {
    blocks: Vec<ResultBlock>,
    /// Structured content that none of the texts repeats.
    structured: Option<String>,
}

enum ResultBlock {
    Text(String),
    /// An image, a link, or another kind of block.
    Other(Json),
}

impl LargeContent {
    /// Parses a result that is longer than `threshold` characters. Returns `None` if it is shorter or must stay
    /// unchanged. A result with no more bytes than `threshold` is not parsed. A result that takes long to parse is
    /// parsed on a blocking thread.
    pub(super) async fn longer_than(
        output: &CallOutput,
        threshold: usize,
        keeps_structure: bool,
    ) -> Option<Self> {
        let [content, structured] = ["content", "structuredContent"].map(|name| output.body.get(name));
        if keeps_structure && structured.is_some() {
            return None;
        }
        let bytes = |json: Option<&Json>| json.map_or(0, |json| json.as_bytes().len());
        match bytes(content) + bytes(structured) {
            few if few <= threshold => None,
            some if some <= MAX_INLINE_BYTES => Self::open(output, threshold),
            _ => {
                let output = output.clone();
                match spawn_blocking(move || Self::open(&output, threshold)).await {
                    Ok(opened) => opened,
                    Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
                }
            }
        }
    }

    fn open(output: &CallOutput, threshold: usize) -> Option<Self> {
        let blocks = output.body.get("content").map_or_else(|| Ok(Vec::new()), Json::to_items).ok()?;
        let mut blocks: Vec<_> = blocks.into_iter().map(|block| ResultBlock::of(block, threshold)).collect();
        let structured = output.body.get("structuredContent");
        let mirror = structured
            .map_or(StructuredMirror::Otherwise, |structured| StructuredMirror::of(structured, &blocks));
        if mirror == StructuredMirror::ByItems {
            // The structured content describes each item, so the texts are left out.
            blocks.retain(|block| matches!(block, ResultBlock::Other(_)));
        }
        let structured = structured.filter(|_| mirror != StructuredMirror::Whole);
        let opened = Self { blocks, structured: structured.map(|json| json.as_text().to_owned()) };
        (opened.chars() > threshold).then_some(opened)
    }

    /// Returns the size of all texts in bytes.
    pub(super) fn size(&self) -> usize {
        self.texts().map(str::len).sum()
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let texts = self.blocks.iter().filter_map(|block| match block {
            ResultBlock::Text(text) => Some(text.as_str()),
            ResultBlock::Other(_) => None,
        });
        texts.chain(self.structured.as_deref())
    }

    fn chars(&self) -> usize {
        self.texts().map(|text| text.chars().count()).sum()
    }

    /// Returns all texts, separated by blank lines.
    pub(super) fn text(&self) -> Cow<'_, str> {
        let mut texts = self.texts();
        match (texts.next(), texts.next()) {
            (Some(only), None) => Cow::Borrowed(only),
            _ => Cow::Owned(self.texts().collect::<Vec<_>>().join("\n\n")),
        }
    }

    /// Returns the result with one text instead of all its texts.
    pub(super) fn with_message(self, body: Object, message: &str) -> Object {
        let first = self.blocks.iter().position(|block| matches!(block, ResultBlock::Text(_)));
        let mut content = Vec::new();
        for (at, block) in self.blocks.into_iter().enumerate() {
            match block {
                ResultBlock::Other(json) => content.push(json),
                ResultBlock::Text(_) if Some(at) == first => content.push(text_block(message)),
                ResultBlock::Text(_) => {}
            }
        }
        if first.is_none() {
            content.push(text_block(message));
        }
        with_content(body, &content)
    }

    /// Returns the result with the first `threshold` characters of its texts, followed by a notice.
    pub(super) fn truncated(self, body: Object, threshold: usize, why: &str) -> Object {
        let notice = message::truncation(self.chars() - threshold, why);
        let mut left = Some(threshold);
        let mut content = Vec::new();
        let structured = self.structured.map(ResultBlock::Text);
        for block in self.blocks.into_iter().chain(structured) {
            match (block, left) {
                (ResultBlock::Other(json), _) => content.push(json),
                (ResultBlock::Text(_), None) => {}
                (ResultBlock::Text(text), Some(chars)) => match text.char_indices().nth(chars) {
                    Some((end, _)) => {
                        content.push(text_block(&format!("{}{notice}", &text[..end])));
                        left = None;
                    }
                    None => {
                        left = Some(chars - text.chars().count());
                        content.push(text_block(&text));
                    }
                },
            }
        }
        with_content(body, &content)
    }
}

impl ResultBlock {
    /// Classifies a block. The text of a resource stays with its URI, unless it is large by itself.
    fn of(block: Json, threshold: usize) -> Self {
        let text = block.to_object().ok().and_then(|object| match object.get_str("type").as_deref() {
            Some("text") => object.get_str("text").map(Cow::into_owned),
            Some("resource") => {
                let resource = object.get("resource")?.to_object().ok()?;
                let text = resource.get_str("text").map(Cow::into_owned);
                text.filter(|text| text.chars().nth(threshold).is_some())
            }
            _ => None,
        });
        text.map_or(Self::Other(block), Self::Text)
    }
}

/// Form in which the texts of a result repeat its structured content for clients that read text only.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StructuredMirror {
    /// One text is the whole structured content.
    Whole,
    /// The structured content is a list in the member `result`, and each text is one item: Python servers write this.
    ByItems,
    /// The texts do not repeat it.
    Otherwise,
}

impl StructuredMirror {
    fn of(structured: &Json, blocks: &[ResultBlock]) -> Self {
        let value = structured.to_value();
        let texts = || {
            blocks.iter().filter_map(|block| match block {
                ResultBlock::Text(text) => Some(text),
                ResultBlock::Other(_) => None,
            })
        };
        if texts().any(|text| is_same_json(text, &value)) {
            return Self::Whole;
        }
        let items =
            value.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("result"));
        let items = items.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_item =
            |(text, item): (&String, &Value)| item.as_str() == Some(text) || is_same_json(text, item);
        match !items.is_empty() && texts().count() == items.len() && texts().zip(items).all(is_item) {
            true => Self::ByItems,
            false => Self::Otherwise,
        }
    }
}

/// Returns `true` if a text is this value as JSON.
fn is_same_json(text: &str, value: &Value) -> bool {
    Json::parse(text.to_owned()).is_ok_and(|text| text.to_value() == *value)
}

fn text_block(text: &str) -> Json {
    Object::new().with("type", Json::string("text")).with("text", Json::string(text)).to_json()
}

/// Returns the result with other content, and without structured content.
fn with_content(mut body: Object, content: &[Json]) -> Object {
    body.set("content", Json::array(content));
    body.remove("structuredContent");
    body
}
