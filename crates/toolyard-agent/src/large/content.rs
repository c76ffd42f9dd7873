//! The texts of a result, and the result without them.

use std::borrow::Cow;

use serde_json::Value;
use tokio::task::spawn_blocking;
use toolyard_core::{Json, Object, Output};

use super::message;

/// Up to so many bytes a result is opened at once: that takes a few milliseconds.
const AT_ONCE: usize = 1024 * 1024;

/// The content of a large result.
pub(super) struct Content {
    blocks: Vec<Block>,
    /// Structured content that is in none of the texts.
    structured: Option<String>,
}

enum Block {
    Text(String),
    /// An image, a link, or whatever else.
    Other(Json),
}

impl Content {
    /// Opens a result that is longer than `threshold` characters; `None` where it is not, or has to stay as it is. One that
    /// has no more bytes than that has no more characters either, and is not opened. One that takes long to open is opened where
    /// no other call waits for it.
    pub(super) async fn over(output: &Output, threshold: usize, keeps_structure: bool) -> Option<Self> {
        let [content, structured] = ["content", "structuredContent"].map(|name| output.body.get(name));
        if keeps_structure && structured.is_some() {
            return None;
        }
        let bytes = |json: Option<&Json>| json.map_or(0, |json| json.as_bytes().len());
        match bytes(content) + bytes(structured) {
            few if few <= threshold => None,
            some if some <= AT_ONCE => Self::open(output, threshold),
            _ => {
                let output = output.clone();
                match spawn_blocking(move || Self::open(&output, threshold)).await {
                    Ok(opened) => opened,
                    Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
                }
            }
        }
    }

    fn open(output: &Output, threshold: usize) -> Option<Self> {
        let blocks = output.body.get("content").map_or_else(|| Ok(Vec::new()), Json::to_items).ok()?;
        let mut blocks: Vec<_> = blocks.into_iter().map(|block| Block::of(block, threshold)).collect();
        let structured = output.body.get("structuredContent");
        let told = structured.map_or(Told::Otherwise, |structured| Told::of(structured, &blocks));
        if told == Told::ByItems {
            // The structure says what each of them is.
            blocks.retain(|block| matches!(block, Block::Other(_)));
        }
        let structured = structured.filter(|_| told != Told::Whole);
        let opened = Self { blocks, structured: structured.map(|json| json.as_text().to_owned()) };
        (opened.chars() > threshold).then_some(opened)
    }

    /// Of all texts, in bytes.
    pub(super) fn size(&self) -> usize {
        self.texts().map(str::len).sum()
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            Block::Other(_) => None,
        });
        texts.chain(self.structured.as_deref())
    }

    fn chars(&self) -> usize {
        self.texts().map(|text| text.chars().count()).sum()
    }

    /// All texts, a blank line between them.
    pub(super) fn text(&self) -> Cow<'_, str> {
        let mut texts = self.texts();
        match (texts.next(), texts.next()) {
            (Some(only), None) => Cow::Borrowed(only),
            _ => Cow::Owned(self.texts().collect::<Vec<_>>().join("\n\n")),
        }
    }

    /// The result with one text in the place of all that it had.
    pub(super) fn replaced(self, body: Object, told: &str) -> Object {
        let first = self.blocks.iter().position(|block| matches!(block, Block::Text(_)));
        let mut content = Vec::new();
        for (at, block) in self.blocks.into_iter().enumerate() {
            match block {
                Block::Other(json) => content.push(json),
                Block::Text(_) if Some(at) == first => content.push(text_block(told)),
                Block::Text(_) => {}
            }
        }
        if first.is_none() {
            content.push(text_block(told));
        }
        with_content(body, &content)
    }

    /// The result with no more than the first `threshold` characters of its texts, and a notice behind them.
    pub(super) fn truncated(self, body: Object, threshold: usize, why: &str) -> Object {
        let notice = message::truncation(self.chars() - threshold, why);
        let mut left = Some(threshold);
        let mut content = Vec::new();
        let structured = self.structured.map(Block::Text);
        for block in self.blocks.into_iter().chain(structured) {
            match (block, left) {
                (Block::Other(json), _) => content.push(json),
                (Block::Text(_), None) => {}
                (Block::Text(text), Some(chars)) => match text.char_indices().nth(chars) {
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

impl Block {
    /// A block. The text of a resource stays with its URI, unless it is large by itself.
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

/// How the texts of a result tell its structured content, for clients that know only text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// One of them is it.
    Whole,
    /// It is a list of the member `result`, and each text is one of its items: Python servers write it so.
    ByItems,
    /// They do not, or say something else.
    Otherwise,
}

impl Told {
    fn of(structured: &Json, blocks: &[Block]) -> Self {
        let value = structured.to_value();
        let texts = || {
            blocks.iter().filter_map(|block| match block {
                Block::Text(text) => Some(text),
                Block::Other(_) => None,
            })
        };
        if texts().any(|text| is(text, &value)) {
            return Self::Whole;
        }
        let items =
            value.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("result"));
        let items = items.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_item = |(text, item): (&String, &Value)| item.as_str() == Some(text) || is(text, item);
        match !items.is_empty() && texts().count() == items.len() && texts().zip(items).all(is_item) {
            true => Self::ByItems,
            false => Self::Otherwise,
        }
    }
}

/// Whether a text is this, as JSON.
fn is(text: &str, value: &Value) -> bool {
    Json::parse(text.to_owned()).is_ok_and(|text| text.to_value() == *value)
}

fn text_block(text: &str) -> Json {
    Object::new().with("type", Json::string("text")).with("text", Json::string(text)).to_json()
}

/// The result with other content. What stands in its structure is told there.
fn with_content(mut body: Object, content: &[Json]) -> Object {
    body.set("content", Json::array(content));
    body.remove("structuredContent");
    body
}
