//! The text of a page: the main content of HTML as Markdown, and other texts as they are.
//!
//! - `charset`: decodes bytes to text;
//! - [`media`]: the kinds of texts;
//! - [`html`]: HTML as Markdown;
//! - `content`: the content of a page that is no article;
//! - `class_words`: names of the parts of pages;
//! - `outline`: the parts of a page with the numbers of their words;
//! - `posts`: the posts of a discussion;
//! - `product`: facts about a product;
//! - `parser`: parses HTML within limits;
//! - `table`: tables in the form that Markdown has;
//! - `tree`: the elements of a page, without what is no content.

mod charset;
mod class_words;
mod content;
pub mod html;
pub mod media;
mod outline;
mod parser;
mod posts;
mod product;
mod table;
#[cfg(test)]
mod tests;
mod tree;

use crate::fetch::{FetchError, FetchedPage};
use html::HtmlText;
use media::MediaKind;

/// Length of a text in characters up to which a page with scripts is taken for one that they fill: it says that it
/// loads, or that it needs scripts.
const MAX_PLACEHOLDER: usize = 200;

/// End of the text of a page whose HTML exceeds the limits.
const CUT: &str = "\n\n[page truncated — the rest of its HTML is too complex to be read here]";

/// The text of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageText {
    /// Title of the page, in one line.
    pub title: Option<String>,
    /// The text: Markdown, or what the page is.
    pub text: String,
}

impl PageText {
    /// Returns the text below its title.
    #[must_use]
    pub fn markdown(&self) -> String {
        match &self.title {
            Some(title) => format!("# {title}\n\n{}", self.text),
            None => self.text.clone(),
        }
    }
}

/// Returns `true` if a page has scripts and, without them, this text: none or hardly any.
#[must_use]
pub fn needs_scripts(page: &FetchedPage, text: &Result<PageText, FetchError>) -> bool {
    let is_short = match text {
        Ok(text) => text.text.chars().nth(MAX_PLACEHOLDER).is_none(),
        Err(FetchError::Empty) => true,
        Err(_) => false,
    };
    let is_html = || matches!(media::kind(page.content_type.as_deref(), &page.body), Ok(MediaKind::Html));
    is_short && is_html() && html::has_scripts(&page.body)
}

/// Returns the text of a page. This can take a second for a large page.
///
/// # Errors
/// Errors if the page is not a text, or has none.
pub fn page_text(page: &FetchedPage) -> Result<PageText, FetchError> {
    let kind = media::kind(page.content_type.as_deref(), &page.body)?;
    let charset = page.content_type.as_deref().and_then(media::charset);
    let is_html = kind == MediaKind::Html;
    let text = charset::decode(&page.body, charset, is_html);
    let HtmlText { mut page, is_whole } = match kind {
        MediaKind::Html => html::markdown(&text, &page.url),
        MediaKind::Text => {
            HtmlText { page: PageText { title: None, text: text.into_owned() }, is_whole: true }
        }
    };
    match (page.text.trim().is_empty(), is_whole) {
        (false, true) => Ok(page),
        (false, false) => {
            page.text.push_str(CUT);
            Ok(page)
        }
        (true, true) => Err(FetchError::Empty),
        (true, false) => Err(FetchError::TooComplex),
    }
}
