//! Figures of one page.

use std::time::Instant;

use anyhow::Context;
use dom_query::Document;
use pulldown_cmark::{Options, Parser, html};
use toolyard_web::page::html::{HtmlText, markdown as page_markdown};
use toolyard_web::web_url::WebUrl;

use crate::corpus_page::CorpusPage;
use crate::words;

/// Figures of the text of a page.
pub(crate) struct PageFigures {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) is_tuned_on: bool,
    pub(crate) f1: f64,
    /// F1 of every text of the page.
    pub(crate) f1_of_everything: f64,
    /// Found and all snippets that must be there.
    pub(crate) with: (usize, usize),
    /// Absent and all snippets that must not be there.
    pub(crate) without: (usize, usize),
    pub(crate) millis: f64,
    pub(crate) links: usize,
}

fn converted(page: &CorpusPage) -> anyhow::Result<HtmlText> {
    // Some pages come without their URL.
    let url = if page.expected.url.is_empty() { "https://example.com/" } else { &page.expected.url };
    let url = WebUrl::parse(url).with_context(|| format!("URL of {}", page.id))?;
    Ok(page_markdown(&String::from_utf8_lossy(&page.html), &url))
}

/// Returns the Markdown of a page.
pub(crate) fn markdown(page: &CorpusPage) -> anyhow::Result<String> {
    Ok(converted(page)?.page.markdown())
}

/// Converts a page, and compares its text with the expected one. The title stands above the text, and is no part of it.
pub(crate) fn measure(page: &CorpusPage) -> anyhow::Result<PageFigures> {
    let start = Instant::now();
    let text = converted(page)?.page.text;
    let millis = start.elapsed().as_secs_f64() * 1000.0;
    let rendered = Document::from(rendered(&text));
    let visible = visible_text(&rendered);
    let plain = words::plain(&visible);
    let expected = &page.expected;
    let count = |snippets: &[String], is_there: bool| {
        let is_right = |snippet: &&String| plain.contains(&words::plain(snippet)) == is_there;
        (snippets.iter().filter(is_right).count(), snippets.len())
    };
    let source = Document::from(String::from_utf8_lossy(&page.html).as_ref());
    Ok(PageFigures {
        id: page.id.clone(),
        kind: expected.kind.clone(),
        is_tuned_on: page.is_tuned_on(),
        f1: words::f1(&visible, &expected.main_content),
        f1_of_everything: words::f1(&visible_text(&source), &expected.main_content),
        with: count(&expected.with, true),
        without: count(&expected.without, false),
        millis,
        links: rendered.select("a[href]").length(),
    })
}

/// Returns Markdown as HTML, by another implementation than that which wrote it.
fn rendered(markdown: &str) -> String {
    let mut text = String::new();
    html::push_html(&mut text, Parser::new_ext(markdown, Options::ENABLE_TABLES));
    text
}

/// Returns the text of a page that a reader sees.
fn visible_text(document: &Document) -> String {
    document.select("script, style, noscript, template, head").remove();
    document.formatted_text().to_string()
}
