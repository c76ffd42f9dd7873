//! Hits as a numbered list in Markdown.

use std::fmt::Write;

use super::SearchHit;

/// Maximum lengths of a title and of a snippet in characters.
const MAX_TITLE: usize = 200;
const MAX_SNIPPET: usize = 500;

/// Returns one line for each hit: `1. [Title](https://example.com) — Snippet text`.
#[must_use]
pub fn listing(hits: &[SearchHit]) -> String {
    if hits.is_empty() {
        return "No results found.".to_owned();
    }
    let mut text = String::new();
    for (number, SearchHit { title, url, snippet }) in hits.iter().enumerate() {
        let (title, snippet) = (line(title, MAX_TITLE), line(snippet, MAX_SNIPPET));
        let title = if title.is_empty() { url.clone() } else { title };
        let title = title.replace('[', "\\[").replace(']', "\\]");
        let _ = write!(text, "{}. [{title}]({})", number + 1, target(url));
        if !snippet.is_empty() {
            let _ = write!(text, " — {snippet}");
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}

/// Returns a text in one line.
fn line(text: &str, max: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text,
    }
}

/// Returns a URL as the target of a link, in one line.
fn target(url: &str) -> String {
    let mut target = String::with_capacity(url.len());
    for character in url.trim().chars() {
        match character {
            ' ' => target.push_str("%20"),
            '(' => target.push_str("%28"),
            ')' => target.push_str("%29"),
            character if character.is_control() => {}
            character => target.push(character),
        }
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(title: &str, url: &str, snippet: &str) -> SearchHit {
        SearchHit { title: title.into(), url: url.into(), snippet: snippet.into() }
    }

    #[test]
    fn hits_are_numbered_lines() {
        let hits = [
            hit("Title", "https://example.com", "Snippet text"),
            hit("Rust & \n[more]", "https://example.com/a_(b)?x=1 2", "a Vec<T>\nof text"),
            hit("", "https://example.com/untitled", ""),
            hit(&"t".repeat(300), "https://e.com/\n", &"s ".repeat(600)),
        ];
        insta::assert_snapshot!(listing(&hits).replace(&"t".repeat(200), "t…t").replace(&"s ".repeat(249), "s…"), @"
        1. [Title](https://example.com) — Snippet text
        2. [Rust & \\[more\\]](https://example.com/a_%28b%29?x=1%202) — a Vec<T> of text
        3. [https://example.com/untitled](https://example.com/untitled)
        4. [t…t…](https://e.com/) — s…s…
        ");
        assert_eq!(listing(&[]), "No results found.");
    }
}
