//! Results of the tools of working memory, which are cut and never stored again.

use toolyard_core::{CallOutput, CallTarget, Json, Object};

use crate::memory::tools;

use super::message;

/// Returns the maximum length of a result of a tool of working memory in characters. Chunks are read as a whole, even if
/// the threshold of the caller is lower than their length.
pub(super) fn bound(
    target: &CallTarget,
    own_name: &str,
    arguments: Option<&Json>,
    threshold: usize,
    chunk: usize,
) -> usize {
    let arguments = arguments.and_then(|arguments| arguments.to_object().ok()).unwrap_or_default();
    let is_given = |name: &str| arguments.get(name).is_some_and(|value| !value.is_null());
    let reads_whole = own_name == tools::GET && !is_given("lines") && !is_given("grep");
    match target {
        CallTarget::Tool(_) if reads_whole => chunk.max(threshold),
        _ => threshold,
    }
}

/// Returns a result whose text has at most `bound` characters, with a notice.
pub(super) fn limited(mut output: CallOutput, bound: usize) -> CallOutput {
    let Some(content) = output.body.get("content").filter(|content| content.as_bytes().len() > bound) else {
        return output;
    };
    let mut blocks = content.to_items().unwrap_or_default();
    let Some(first) = blocks.first_mut() else { return output };
    let text = first.to_object().ok().and_then(|block| Some(block.get_str("text")?.into_owned()));
    let Some(text) = text else { return output };
    let chars = text.chars().count();
    if chars <= bound {
        return output;
    }
    let room = bound.saturating_sub(message::entry_truncation(chars).chars().count());
    let end = text.char_indices().nth(room).map_or(text.len(), |(end, _)| end);
    let cut = format!("{}{}", &text[..end], message::entry_truncation(chars - room));
    *first = Object::new().with("type", Json::string("text")).with("text", Json::string(&cut)).to_json();
    output.body.set("content", Json::array(&blocks));
    output
}
