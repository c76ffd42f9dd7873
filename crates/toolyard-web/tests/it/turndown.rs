//! Pairs of HTML and Markdown that another converter is tested with.

use dom_query::Document;
use serde_json::Value;

use toolyard_testing::corpora::corpus;

use crate::rendered;

/// Returns HTML in a form in which blanks between elements and the kinds of the same emphasis do not count.
fn normalized(html: &str) -> String {
    let text = Document::fragment(html).html().to_string();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace("> <", "><").replace(" </code>", "</code>").replace("<p></p>", "")
}

const NO_BREAK_SPACE: &str = "a no-break space at the end of an element stays within its marks";

/// Pairs that differ in meaning, each with the reason.
const DIFFERENT: [(&str, &str); 12] = [
    ("a with a child", "the text of a link has no code"),
    ("escaping ~~~", "`pre` without `code` is a block of code, too"),
    ("empty pre does not throw error", "`pre` without `code` is a block of code, too"),
    ("whitespace in nested inline elements", "a blank at the end of a link stays within it"),
    ("list-like text with non-breaking spaces", "the expected text has a comment"),
    ("element with trailing nonASCII WS followed by nonWS", NO_BREAK_SPACE),
    ("element with trailing nonASCII WS followed by nonASCII WS", NO_BREAK_SPACE),
    ("element with trailing nonASCII WS followed by ASCII WS", NO_BREAK_SPACE),
    ("nonWS followed by element with leading nonASCII WS", NO_BREAK_SPACE),
    ("nonASCII WS followed by element with leading nonASCII WS", NO_BREAK_SPACE),
    ("ASCII WS followed by element with leading nonASCII WS", NO_BREAK_SPACE),
    ("preformatted code with newlines", "`code` of several lines is a block of code"),
];

#[test]
fn pairs_mean_the_same() {
    let Some(folder) = corpus("html", "pairs of HTML and Markdown") else { return };
    let pairs = std::fs::read_to_string(folder.join("turndown.jsonl")).expect("pairs");
    let (mut same, mut different) = (0, Vec::new());
    for line in pairs.lines() {
        let pair: Value = serde_json::from_str(line).expect("JSON");
        let [name, html, expected] =
            ["name", "html", "expected_markdown"].map(|member| pair[member].as_str().expect("text"));
        let written = Document::from(html).md(None).to_string();
        if normalized(&rendered(&written)) == normalized(&rendered(expected)) {
            same += 1;
        } else {
            println!("{name}: {html:?}\n  expected {expected:?}\n  written  {written:?}");
            different.push(name.to_owned());
        }
    }
    println!("{same} of {} pairs mean the same", same + different.len());
    assert_eq!(different, DIFFERENT.map(|(name, _)| name));
}
