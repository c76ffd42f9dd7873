//! HTML as Markdown.
//!
//! `dom_smoothie` finds the main content, by the rules of the reader view of Firefox, and `dom_query` writes it as
//! Markdown. Pages that are no articles, such as lists and indexes, keep everything but navigation and the like.

use dom_query::{Document, NodeRef};
use dom_smoothie::{Config, Readability};

use super::parser::{self, ParsedPage};
use super::{PageText, table, tree};
use crate::web_url::WebUrl;

/// Maximum number of elements of a page in which the main content is looked for, which takes several passes.
const MAX_ARTICLE_ELEMENTS: usize = 50_000;

/// Length of an article that is taken for the main content, in characters.
const ARTICLE_CHARS: usize = 500;

/// Part of a page that a shorter article must have.
const ARTICLE_SHARE: usize = 3;

/// The element of the article in a document in which it was found.
const ARTICLE: &str = "#readability-page-1";

/// Maximum length of a title in characters.
const MAX_TITLE: usize = 300;

/// Returns `true` if a page has a script.
#[must_use]
pub(super) fn has_scripts(html: &[u8]) -> bool {
    const SCRIPT: &[u8] = b"<script";
    html.windows(SCRIPT.len()).any(|start| start.eq_ignore_ascii_case(SCRIPT))
}

/// HTML as Markdown.
#[derive(Debug)]
pub struct HtmlText {
    /// The text, which can be empty.
    pub page: PageText,
    /// `false`: the HTML exceeds the limits, and its rest is left out.
    pub is_whole: bool,
}

/// Returns a page as Markdown.
#[must_use]
pub fn markdown(html: &str, url: &WebUrl) -> HtmlText {
    let ParsedPage { document, is_whole } = parser::parse(html);
    HtmlText { page: document_text(document, url), is_whole }
}

fn document_text(document: Document, url: &WebUrl) -> PageText {
    tree::flatten(&document);
    let base = base_url(&document, url);
    tree::name_languages(&document);
    tree::break_code_lines(&document);
    // The whole page, before the search for the article changes it.
    let page = document.clone();
    let config = Config { max_elements_to_parse: MAX_ARTICLE_ELEMENTS, ..Config::default() };
    let mut reader = Readability { doc: document, doc_url: Some(base.to_string()), config };
    let Ok(article) = reader.parse() else {
        reader.doc = page;
        let title = reader.get_article_metadata(reader.parse_json_ld()).title;
        tree::remove_no_content(&reader.doc.root());
        tree::remove_beside_content(&reader.doc.root());
        return titled(&title, written(&reader.doc, &base));
    };
    if article.length >= ARTICLE_CHARS {
        return titled(&article.title, article_text(&reader.doc, &base));
    }
    tree::remove_no_content(&page.root());
    tree::remove_beside_content(&page.root());
    let rest = page.body().map(|body| body.text().trim().chars().count()).unwrap_or_default();
    let text = match article.length * ARTICLE_SHARE >= rest {
        true => article_text(&reader.doc, &base),
        false => written(&page, &base),
    };
    titled(&article.title, text)
}

/// Returns the URL that relative links begin at.
fn base_url(document: &Document, url: &WebUrl) -> WebUrl {
    let base = document.base_uri().and_then(|base| url.resolve(&base).ok());
    base.unwrap_or_else(|| url.clone())
}

/// Returns a text with its title in one line.
fn titled(title: &str, text: String) -> PageText {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let title = (!title.is_empty()).then(|| title.chars().take(MAX_TITLE).collect::<String>());
    PageText { text: without_title(text, title.as_deref()), title }
}

/// Returns the article that was found in a document as Markdown.
fn article_text(document: &Document, base: &WebUrl) -> String {
    let article = document.select_single(ARTICLE);
    let Some(article) = article.nodes().first() else { return String::new() };
    tree::remove_no_content(article);
    tree::remove_beside_content(article);
    markdown_of(article, base)
}

/// Returns a document as Markdown.
fn written(document: &Document, base: &WebUrl) -> String {
    let root = document.root();
    markdown_of(document.body().as_ref().unwrap_or(&root), base)
}

fn markdown_of(content: &NodeRef<'_>, base: &WebUrl) -> String {
    tree::resolve_links(content, base);
    tree::remove_empty(content);
    tree::separate_definitions(content);
    table::shape_tables(content);
    tidy(&content.md(None))
}

/// Joins several blank lines to one, except in code.
fn tidy(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    let (mut fence, mut is_blank) = (None, true);
    for line in markdown.trim().lines() {
        let ticks = line.trim_start().bytes().take_while(|byte| *byte == b'`').count();
        fence = match fence {
            None if ticks >= 3 => Some(ticks),
            Some(opening) if ticks >= opening => None,
            open => open,
        };
        let was_blank = std::mem::replace(&mut is_blank, line.trim().is_empty());
        if fence.is_some() || !(is_blank && was_blank) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Removes a heading that repeats the title, which stands above the text.
fn without_title(text: String, title: Option<&str>) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let heading = first.strip_prefix("# ").or_else(|| first.strip_prefix("## "));
    match heading.zip(title) {
        Some((heading, title)) if plain(heading) == plain(title) => rest.trim_start().to_owned(),
        _ => text,
    }
}

/// Returns the letters and digits of a text.
fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
