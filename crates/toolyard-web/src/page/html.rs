//! HTML as Markdown.
//!
//! `dom_smoothie` finds the article of a page, by the rules of the reader view of Firefox, and `dom_query` writes it as
//! Markdown. A page of which an article would be too small a part, such as a list, a product or an index, keeps what is
//! not beside its content (`content`), and a discussion its posts (`posts`).

use dom_query::{Document, NodeRef};
use dom_smoothie::{Config, Readability};

use super::outline::count_words;
use super::parser::{self, ParsedPage};
use super::{PageText, content, posts, product, table, tree};
use crate::web_url::WebUrl;

/// Maximum number of elements of a page in which the main content is looked for, which takes several passes.
const MAX_ARTICLE_ELEMENTS: usize = 50_000;

/// Maximum sum of the depths of the elements of such a page, as each element is compared with those around it.
const MAX_ARTICLE_DEPTHS: usize = 1_500_000;

/// Part of the content of a page that its article must have, in percent.
const ARTICLE_SHARE: usize = 75;

/// The same of a page that may be one by its Open Graph type: the rest are comments, for instance.
const PERHAPS_ARTICLE_SHARE: usize = 40;

/// Length in characters of an article from which a page is believed that it is one.
const SAID_ARTICLE_CHARS: usize = 500;

/// The element of the article in a document in which it was found.
const ARTICLE: &str = "#readability-page-1";

/// Elements by which a page says that it is an article.
const ARTICLE_TYPES: &str = "[itemtype$=Article], [itemtype$=BlogPosting]";

/// Element by which a page says that it is an article, as some sites do for all their pages.
const PERHAPS_ARTICLE: &str = "meta[property='og:type'][content='article']";

/// Elements by which a page says that it is a product.
const PRODUCT_TYPES: &str = "meta[property='og:type'][content^=product], [itemtype$='schema.org/Product']";

/// Elements that the search for an article may take for one: tables with links to the neighbours of a page that DocBook
/// made, and forms that scripts show. `hidden` is not among them, as it may mean on small screens only.
const NEVER_CONTENT: &str = "div.navheader, div.navfooter, div.hide";

/// Elements that the common frameworks of scripts fill.
const MOUNT_POINTS: &str = "#root, #app, #__next, #__nuxt";

/// Number of words of the page of a product below which scripts show the product.
const MIN_PRODUCT_WORDS: usize = 10;

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
    let depths = tree::flatten(&document);
    let base = base_url(&document, url);
    tree::name_languages(&document);
    tree::break_code_lines(&document);
    tree::keep_heading_buttons(&document);
    document.select(NEVER_CONTENT).remove();
    let facts = product::facts(&document);
    let is_product = facts.is_some() || document.select(PRODUCT_TYPES).exists();
    if !is_product
        && posts::is_discussion(&document)
        && let Some(text) = discussion(&document.clone(), &base)
    {
        return titled(&metadata_title(document), text);
    }
    let is_unfilled = is_product && facts.is_none() && is_filled_by_scripts(&document);
    let is_said_article = !is_product && says_article(&document);
    // The whole page, before the search for the article changes it.
    let is_perhaps_article = document.select(PERHAPS_ARTICLE).exists();
    let page = document.clone();
    let config = Config { max_elements_to_parse: MAX_ARTICLE_ELEMENTS, ..Config::default() };
    let mut reader = Readability { doc: document, doc_url: Some(base.to_string()), config };
    let parsed = (depths <= MAX_ARTICLE_DEPTHS).then(|| reader.parse());
    let rest = content_of(&page, is_product);
    let (title, article) = match &parsed {
        Some(Ok(article)) => (article.title.clone(), article.length),
        _ => (metadata_title(page.clone()), 0),
    };
    let share = match article >= SAID_ARTICLE_CHARS {
        true if is_said_article => 0,
        true if is_perhaps_article => PERHAPS_ARTICLE_SHARE,
        _ => ARTICLE_SHARE,
    };
    let is_article =
        !is_product && article > 0 && article * 100 >= rest.text().trim().chars().count() * share;
    let text = match is_article {
        true => article_text(&reader.doc, &base),
        false => markdown_of(&rest, &base),
    };
    let text = match () {
        () if is_unfilled && count_words(&text) < MIN_PRODUCT_WORDS => String::new(),
        () if text.trim().is_empty() => everything(&page, &base),
        () => text,
    };
    let text = match facts {
        Some(facts) => facts.above(&text),
        None => text,
    };
    titled(&title, text)
}

/// Returns `true` for a page that has scripts, or an empty element for what they show.
fn is_filled_by_scripts(document: &Document) -> bool {
    let is_empty = |node: &NodeRef<'_>| node.text().trim().is_empty();
    document.select("script").exists() || document.select(MOUNT_POINTS).nodes().iter().any(is_empty)
}

/// Returns `true` for a page that is an article by its type of schema.org.
fn says_article(document: &Document) -> bool {
    let types = ["Article\"", "BlogPosting\""];
    let says = |script: &NodeRef<'_>| types.iter().any(|name| script.has_text(name));
    document.select(ARTICLE_TYPES).exists()
        || document.select("script[type='application/ld+json']").nodes().iter().any(says)
}

/// Returns the title of a page that is no article.
fn metadata_title(document: Document) -> String {
    let reader = Readability { doc: document, doc_url: None, config: Config::default() };
    reader.get_article_metadata(reader.parse_json_ld()).title
}

/// Returns the content of a page that is no article, and leaves nothing else in its main part.
fn content_of(page: &Document, is_product: bool) -> NodeRef<'_> {
    let root = page.root();
    let body = page.body().unwrap_or(root);
    tree::remove_no_content(&body);
    tree::remove_beside_content(&body);
    let main = content::main_part(&body);
    content::remove_beside(&main, is_product);
    main
}

/// Returns everything of a page but navigation and the like.
fn everything(page: &Document, base: &WebUrl) -> String {
    tree::remove_no_content(&page.root());
    tree::remove_beside_content(&page.root());
    written(page, base)
}

/// Returns the posts of a page, each below its author. `None`: it has none.
fn discussion(page: &Document, base: &WebUrl) -> Option<String> {
    let root = page.root();
    let body = page.body().unwrap_or(root);
    tree::remove_no_content(&body);
    tree::remove_beside_content(&body);
    let posts = posts::posts(&content::main_part(&body));
    let mut text = String::new();
    for post in posts {
        let author = posts::take_author(&post);
        content::remove_beside(&post, false);
        let post = markdown_of(&post, base);
        if count_words(&post) == 0 {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        if let Some(author) = author {
            text.push_str("## ");
            text.push_str(&author);
            text.push_str("\n\n");
        }
        text.push_str(&post);
    }
    (!text.is_empty()).then_some(text)
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
