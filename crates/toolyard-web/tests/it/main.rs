//! Real pages, from the folder `TOOLYARD_CORPORA`.

mod readability;
mod turndown;

/// Returns Markdown as HTML, by another implementation than that which wrote it.
fn rendered(markdown: &str) -> String {
    use pulldown_cmark::{Options, Parser, html};
    let mut text = String::new();
    html::push_html(&mut text, Parser::new_ext(markdown, Options::ENABLE_TABLES));
    text
}
