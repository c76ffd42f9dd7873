//! The blocks of a result by what they are for a model.

use std::borrow::Cow;

use toolyard_core::{Json, Object};

/// Maximum length of what surrounds the data of an image or a sound, in characters.
const MAX_MEDIA_FRAME: usize = 1000;

/// A block of a result.
pub(super) enum ResultBlock {
    Text {
        text: String,
        /// Length of the members of the block beside its text, in characters.
        frame: usize,
    },
    /// A link, a resource, or a block of an unknown kind.
    Other(Json),
    /// An image or a sound: its length says nothing about that in a context window.
    Media(Json),
}

impl ResultBlock {
    /// Classifies a block. The text of a resource stays with its URI, unless it is large by itself.
    pub(super) fn of(block: Json, threshold: usize) -> Self {
        let Ok(object) = block.to_object() else { return Self::Other(block) };
        match object.get_str("type").as_deref() {
            Some("text") => match object.get_str("text").map(Cow::into_owned) {
                Some(text) => Self::Text { text, frame: frame(&block, object.get("text")) },
                None => Self::Other(block),
            },
            Some(kind @ ("image" | "audio")) if is_media(&object, "data", &[kind], &block) => {
                Self::Media(block)
            }
            Some("resource") => {
                let resource = object.get("resource").and_then(|resource| resource.to_object().ok());
                let resource = resource.unwrap_or_default();
                match resource.get_str("text").map(Cow::into_owned) {
                    Some(text) if text.chars().nth(threshold).is_some() => Self::Text { text, frame: 0 },
                    None if is_media(&resource, "blob", &["image", "audio"], &block) => Self::Media(block),
                    _ => Self::Other(block),
                }
            }
            _ => Self::Other(block),
        }
    }

    /// Returns the text of a block that can be put aside.
    pub(super) fn into_text(self) -> Self {
        let Self::Other(block) = self else { return self };
        let resource = block.to_object().ok().and_then(|block| block.get("resource")?.to_object().ok());
        let text = resource.and_then(|resource| resource.get_str("text").map(Cow::into_owned));
        Self::Text { text: text.unwrap_or_else(|| block.as_text().to_owned()), frame: 0 }
    }
}

/// Returns the length of the members of a block beside `data`, in characters.
fn frame(block: &Json, data: Option<&Json>) -> usize {
    let of_data = data.map_or(0, |data| data.as_text().chars().count());
    block.as_text().chars().count().saturating_sub(of_data)
}

/// Returns `true` if the data of this name are media of one of these kinds by their MIME type, and most of the block.
fn is_media(object: &Object, data: &str, kinds: &[&str], block: &Json) -> bool {
    let mime = object.get_str("mimeType").unwrap_or_default().to_lowercase();
    let is_kind = |kind: &&str| mime.strip_prefix(*kind).is_some_and(|rest| rest.starts_with('/'));
    kinds.iter().any(is_kind) && frame(block, object.get(data)) <= MAX_MEDIA_FRAME
}

/// Returns the texts of blocks.
pub(super) fn texts_of(blocks: &[ResultBlock]) -> impl Iterator<Item = &str> + Clone {
    blocks.iter().filter_map(|block| match block {
        ResultBlock::Text { text, .. } => Some(text.as_str()),
        ResultBlock::Other(_) | ResultBlock::Media(_) => None,
    })
}
