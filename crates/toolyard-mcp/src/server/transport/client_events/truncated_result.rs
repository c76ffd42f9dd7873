//! Results of tools, cut to the size of an event. The call has run, so that a part of its result is better than an error.
//!
//! Only texts are cut. Structured content stays whole, because an output schema may promise it, and so do images and
//! resources.

use toolyard_core::Json;
use toolyard_core::output_schema::{ComparedText, RepeatedContent, STRUCTURED};

/// Takes the place of a text that the structured content repeats.
const REPEATED_TEXT: &str = "[text omitted: `structuredContent` has the same content]";

/// Returns the result of a tool with at most `room` bytes; `None` if it is none, or if its texts are not what is too
/// large. `limit` is the maximum size of an event, for the notice.
pub(super) fn truncate(result: &Json, room: usize, limit: usize) -> Option<Json> {
    let mut result = result.to_object().ok()?;
    let mut blocks = result.get("content")?.to_items().ok()?;
    let structured = result.get(STRUCTURED).map(|structured| RepeatedContent::new(structured.to_value()));
    let is_repeated =
        |text: &str| structured.as_ref().is_some_and(|all| all.is_text(&ComparedText::new(text)));
    for block in &mut blocks {
        if let Some(text) = text_of(block) {
            // Without needless escapes, the size of a text is known.
            *block = with_text(block, if is_repeated(&text) { REPEATED_TEXT } else { &text })?;
        }
    }
    result.set("content", Json::array(&blocks));
    let size = size_of(&result.to_json());
    if size > room {
        result.set("content", Json::array(&cut_texts(blocks, size - room, limit)?));
    }
    Some(result.to_json())
}

/// Removes at least `excess` bytes from the end of the texts; `None` if they are shorter.
fn cut_texts(mut blocks: Vec<Json>, excess: usize, limit: usize) -> Option<Vec<Json>> {
    let notice = |omitted: usize| {
        format!(
            "\n[result truncated — {omitted} chars omitted: the client reads events of at most {limit} bytes]"
        )
    };
    // The number of omitted characters has at most as many digits as this one.
    let mut excess = excess + size_of(&Json::string(&notice(usize::MAX)));
    let mut omitted = 0;
    for at in (0..blocks.len()).rev() {
        let Some(text) = text_of(&blocks[at]) else { continue };
        let (end, removed) = cut(&text, excess);
        omitted += text[end..].chars().count();
        if removed >= excess {
            let text = format!("{}{}", &text[..end], notice(omitted));
            blocks[at] = with_text(&blocks[at], &text)?;
            return Some(blocks);
        }
        // The whole text is omitted, and a comma with its block.
        excess = excess.saturating_sub(size_of(&blocks.remove(at)));
    }
    None
}

/// Returns the place where a text must end so that it has at least `excess` encoded bytes less, or its begin, and the
/// number of bytes that this removes.
fn cut(text: &str, excess: usize) -> (usize, usize) {
    let mut removed = 0;
    for (at, char) in text.char_indices().rev() {
        removed += encoded_size(char);
        if removed >= excess {
            return (at, removed);
        }
    }
    (0, removed)
}

/// Returns the size of a character in a JSON string.
const fn encoded_size(char: char) -> usize {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        '\0'..='\x1f' => 6,
        _ => char.len_utf8(),
    }
}

/// Returns the text of a block of type `text`.
fn text_of(block: &Json) -> Option<String> {
    let block = block.to_object().ok()?;
    let is_text = block.get_str("type").as_deref() == Some("text");
    is_text.then(|| block.get_str("text").map(Into::into))?
}

fn with_text(block: &Json, text: &str) -> Option<Json> {
    Some(block.to_object().ok()?.with("text", Json::string(text)).to_json())
}

fn size_of(json: &Json) -> usize {
    json.as_bytes().len()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ROOM: usize = 400;

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    /// Truncates a result, and returns the texts of its blocks, those of other types as `-`.
    fn texts(result: &Value) -> Option<Vec<String>> {
        let truncated = truncate(&Json::from_value(result), ROOM, 1000)?;
        assert!(size_of(&truncated) <= ROOM, "{truncated:?}");
        let truncated = truncated.to_value();
        assert_eq!(truncated.get("structuredContent"), result.get("structuredContent"));
        let blocks = truncated["content"].as_array().unwrap();
        Some(blocks.iter().map(|block| block["text"].as_str().unwrap_or("-").to_owned()).collect())
    }

    #[test]
    fn texts_are_cut_at_the_end() {
        let image = || json!({"type": "image", "data": "x".repeat(80), "mimeType": "image/png"});
        for content in [
            json!([text(&"x".repeat(1000))]),
            json!([text(&"ä€😀".repeat(1000))]),
            json!([text(&"\u{1}\n\"\\".repeat(1000))]),
            json!([text("first"), text(&"x".repeat(1000)), image()]),
            json!([text(&"x".repeat(1000)), text(&"y".repeat(1000)), text("last"), image()]),
        ] {
            let originals: Vec<_> =
                content.as_array().unwrap().iter().filter_map(|block| block["text"].as_str()).collect();
            let texts = texts(&json!({"content": content})).unwrap();
            let cut = texts.iter().position(|text| text.contains("[result truncated")).unwrap();
            let (kept, notice) = texts[cut].split_once("\n[result truncated — ").unwrap();
            let all: String = originals.concat();
            let before = texts[..cut].concat() + kept;
            assert!(all.starts_with(&before), "{texts:?}");
            let omitted = all.chars().count() - before.chars().count();
            let expected = format!("{omitted} chars omitted: the client reads events of at most 1000 bytes]");
            assert_eq!(notice, expected);
            assert!(texts[cut + 1..].iter().all(|text| text == "-"), "{texts:?}");
        }
    }

    #[test]
    fn text_with_needless_escapes_is_kept_if_it_fits_without_them() {
        let result = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, r"\u0061".repeat(100));
        let truncated = truncate(&Json::parse(result).unwrap(), ROOM, 1000).unwrap().to_value();
        assert_eq!(truncated["content"][0]["text"], "a".repeat(100));
    }

    #[test]
    fn text_that_repeats_the_structured_content_is_left_out_first() {
        let structured = json!({"a": "x".repeat(200)});
        let content = json!([text(&structured.to_string()), text("more")]);
        let texts = texts(&json!({"content": content, "structuredContent": structured})).unwrap();
        assert_eq!(texts, [REPEATED_TEXT, "more"]);
    }

    #[test]
    fn text_that_is_the_structured_result_is_left_out() {
        let log = "a log ".repeat(35);
        let result = json!({"content": [text(&log)], "structuredContent": {"result": log}});
        assert_eq!(texts(&result).unwrap(), [REPEATED_TEXT]);
    }

    #[test]
    fn result_without_enough_text_is_not_cut() {
        let large = "x".repeat(1000);
        for result in [
            json!({"content": [text("x")], "structuredContent": {"a": large}}),
            json!({"content": [{"type": "image", "data": large, "mimeType": "image/png"}]}),
            json!({"contents": [{"uri": "a://b", "text": large}]}),
            json!({"content": {"type": "text", "text": large}, "role": "user", "model": "m"}),
            json!(large),
        ] {
            assert_eq!(texts(&result), None, "{result}");
        }
    }
}
