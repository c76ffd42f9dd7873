//! Pages with their expected main content.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dom_query::Document;
use regex::Regex;
use toolyard_web::fetch::FetchedPage;
use toolyard_web::page::{PageText, page_text};
use toolyard_web::web_url::WebUrl;

use toolyard_testing::corpora::corpus;

use crate::rendered;

/// Pages whose shapes are a snapshot. Their texts are not part of this repository.
const SHOWN: [&str; 10] = [
    "002",
    "basic-tags-cleaning",
    "data-url-image",
    "links-in-tables",
    "lwn-1",
    "mercurial",
    "rtl-1",
    "table-style-attributes",
    "v8-blog",
    "wikipedia",
];

/// Unpacks the pages.
#[expect(clippy::disallowed_methods, reason = "a program of a test, which is not the gateway's")]
fn unpack(archive: &Path, folder: &Path) {
    let status = Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(folder).status();
    assert!(status.expect("tar").success(), "{}", archive.display());
}

/// Returns the text of a page that a reader sees.
fn visible_text(html: &str) -> String {
    let document = Document::from(html);
    document.select("script, style, noscript, template").remove();
    document.text().to_string()
}

/// Returns the words of a text with their numbers.
fn words(text: &str, word: &Regex) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for found in word.find_iter(&text.to_lowercase()) {
        *words.entry(found.as_str().to_owned()).or_insert(0) += 1;
    }
    words
}

/// Returns the harmonic mean of precision and recall of words.
fn f1(text: &str, expected: &str, word: &Regex) -> f64 {
    let (text, expected) = (words(text, word), words(expected, word));
    let common: usize =
        text.iter().map(|(word, count)| (*count).min(*expected.get(word).unwrap_or(&0))).sum();
    let total = text.values().sum::<usize>() + expected.values().sum::<usize>();
    if total == 0 { 1.0 } else { 2.0 * common as f64 / total as f64 }
}

fn read(page: &Path) -> (PageText, Duration) {
    let source = std::fs::read(page.join("source.html")).expect("a page");
    let fetched = FetchedPage {
        url: WebUrl::parse("http://fakehost/test/page.html").expect("a URL"),
        content_type: Some("text/html; charset=utf-8".to_owned()),
        body: Bytes::from(source),
    };
    let start = Instant::now();
    let text = page_text(&fetched).expect("a text");
    (text, start.elapsed())
}

/// Describes a text: its length, its headings and the numbers of its parts.
fn shape(page: &PageText) -> String {
    let html = Document::from(rendered(&page.text));
    let count = |selector: &str| html.select(selector).length();
    let parts = ["p", "li", "a", "img", "table", "tr", "pre", "code", "blockquote"];
    let parts = parts.map(|part| (part, count(part)));
    let parts = parts.iter().filter(|(_, count)| *count > 0).map(|(part, count)| format!("{count} {part}"));
    let headings = html.select("h1, h2, h3");
    let headings = headings.nodes().iter().map(|node| node.text().to_string()).take(3);
    format!(
        "{:?}, {} characters, {}; headings {:?}",
        page.title.as_deref().unwrap_or_default(),
        page.text.chars().count(),
        parts.collect::<Vec<_>>().join(", "),
        headings.collect::<Vec<_>>(),
    )
}

#[test]
fn main_content_of_real_pages_is_found() {
    let Some(folder) = corpus("html", "real pages") else { return };
    let unpacked = tempfile::tempdir().expect("a folder");
    unpack(&folder.join("readability.tar.xz"), unpacked.path());
    let pages = std::fs::read_dir(unpacked.path().join("readability-pages")).expect("pages");
    let mut pages: Vec<_> = pages.map(|page| page.expect("a page").path()).collect();
    pages.sort();
    let word = Regex::new(r"\w+").expect("an expression");
    let (mut sum, mut slow, mut shapes) = (0.0, Vec::new(), Vec::new());
    for page in &pages {
        let name = page.file_name().expect("a name").to_string_lossy().into_owned();
        let (text, time) = read(page);
        let expected = std::fs::read_to_string(page.join("expected.html")).expect("a page");
        // The title of the page stands above the text, and is no part of the expected content.
        let score = f1(&visible_text(&rendered(&text.text)), &visible_text(&expected), &word);
        sum += score;
        if score < 0.85 {
            println!("{name}: {score:.2}");
        }
        slow.push((time, name.clone()));
        if SHOWN.contains(&&*name) {
            shapes.push(format!("{name}: {}", shape(&text)));
        }
    }
    slow.sort();
    let mean = sum / pages.len() as f64;
    println!("{} pages, mean F1 {mean:.4}; the slowest: {:?}", pages.len(), slow.last());
    assert!(mean >= 0.85, "{mean}");
    let is_optimised = !cfg!(debug_assertions);
    assert!(
        !is_optimised || slow.iter().all(|(time, _)| *time < Duration::from_secs(1)),
        "{:?}",
        slow.last()
    );
    insta::assert_snapshot!(shapes.join("\n"));
}
