//! The elements of a page, without what is no content.

use dom_query::{Document, NodeId, NodeRef, Selection};

use crate::web_url::WebUrl;

/// Maximum depth of elements. Browsers have 512.
const MAX_DEPTH: usize = 256;

/// Maximum depth of lists, quotes and tables in each other, each of which indents its lines.
const MAX_BLOCK_DEPTH: usize = 16;

/// Elements that are never content. `noscript` is kept, because it holds the fallback for scripted content.
const NO_CONTENT: &str = "script, style, template, svg, canvas, iframe, object, embed, video, audio, dialog, \
                          button, input, select, textarea, link, meta, [hidden], [aria-hidden=true]";

/// Elements beside the content.
const BESIDE_CONTENT: &str = "nav, footer, aside, body > header, [role=navigation], [role=banner], \
                              [role=contentinfo], [role=complementary], [role=search], [role=dialog]";

const HEADINGS: [&str; 6] = ["h1", "h2", "h3", "h4", "h5", "h6"];

/// Prefixes of classes that name the language of code.
const LANGUAGE_PREFIXES: [&str; 3] = ["language-", "lang-", "highlight-source-"];

/// Class before the one that names the language, as pandoc writes them.
const PANDOC_CLASS: &str = "sourceCode";

/// Replaces what is nested too deeply by its text, so that the time and the memory of conversions are bounded. Returns
/// the sum of the depths of all elements.
pub(super) fn flatten(document: &Document) -> usize {
    let mut depths = 0;
    let mut open = vec![(document.root(), 0, 0)];
    while let Some((node, depth, blocks)) = open.pop() {
        depths += depth;
        let is_block = ["ul", "ol", "blockquote", "table"].iter().any(|name| node.has_name(name));
        let blocks = blocks + usize::from(is_block);
        if depth >= MAX_DEPTH || blocks > MAX_BLOCK_DEPTH {
            let text = node.text();
            node.set_text(text);
            continue;
        }
        open.extend(node.children_it(false).map(|child| (child, depth + 1, blocks)));
    }
    depths
}

/// Removes what is never content.
pub(super) fn remove_no_content(root: &NodeRef<'_>) {
    Selection::from(*root).select(NO_CONTENT).remove();
}

/// Removes navigation, sidebars and the like.
pub(super) fn remove_beside_content(root: &NodeRef<'_>) {
    Selection::from(*root).select(BESIDE_CONTENT).remove();
}

/// Keeps the headings of parts that open on a click, which are buttons or in buttons.
pub(super) fn keep_heading_buttons(document: &Document) {
    let buttons = document.select("button");
    let is_heading = |node: &NodeRef<'_>| HEADINGS.iter().any(|name| node.has_name(name));
    for button in buttons.nodes() {
        if button.parent().is_some_and(|parent| is_heading(&parent)) {
            button.rename("span");
        } else if button.children_it(false).any(|child| is_heading(&child)) {
            button.rename("div");
        }
    }
}

/// Ends lines of code that markup ends.
pub(super) fn break_code_lines(document: &Document) {
    for line_break in document.select("pre br").nodes() {
        line_break.replace_with(&line_break.tree.new_text("\n"));
    }
}

/// Makes a block of each term and each definition of a list of definitions, which Markdown does not have.
pub(super) fn separate_definitions(root: &NodeRef<'_>) {
    let is_part = |node: &NodeRef<'_>| ["dl", "dt", "dd"].iter().any(|name| node.has_name(name));
    let parts: Vec<_> = root.descendants_it().filter(is_part).collect();
    parts.iter().for_each(|part| part.rename("div"));
}

/// Names the languages of code blocks in the way that the converter reads.
pub(super) fn name_languages(document: &Document) {
    for block in document.select("pre").nodes() {
        let code = block.first_element_child().filter(|child| child.has_name("code"));
        let parents = block.ancestors_it(Some(2));
        let classes = code.into_iter().chain([*block]).chain(parents).filter_map(|node| node.class());
        let language = classes.into_iter().find_map(|class| language(&class).map(str::to_owned));
        if let Some(language) = language {
            block.set_attr("data-lang", &language);
        }
    }
}

fn language(class: &str) -> Option<&str> {
    let is_name = |name: &&str| {
        !name.is_empty()
            && name.len() <= 20
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+#-_".contains(&byte))
    };
    let mut names = class.split_ascii_whitespace();
    let of_prefix = |name| LANGUAGE_PREFIXES.iter().find_map(|prefix| str::strip_prefix(name, prefix));
    let prefixed = names.clone().filter_map(of_prefix).find(is_name);
    prefixed.or_else(|| names.find(|name| *name == PANDOC_CLASS).and_then(|_| names.next()).filter(is_name))
}

/// Makes the targets of links absolute, and removes images and links that say nothing to a reader: images without a
/// description or with their data in the URL, and links to scripts.
pub(super) fn resolve_links(root: &NodeRef<'_>, base: &WebUrl) {
    let nodes: Vec<_> = root.descendants_it().filter(NodeRef::is_element).collect();
    for node in nodes {
        if node.has_name("a") {
            let Some(href) = node.attr("href") else { continue };
            match base.resolve(&href) {
                Ok(url) if !href.trim_start().starts_with('#') => {
                    node.set_attr("href", &with_fragment(&url, &href))
                }
                _ if href.trim_start().to_ascii_lowercase().starts_with("mailto:") => {}
                _ => node.remove_attr("href"),
            }
        } else if node.has_name("img") {
            let is_described = node.attr("alt").is_some_and(|alt| !alt.trim().is_empty());
            match node.attr("src").filter(|_| is_described).and_then(|src| base.resolve(&src).ok()) {
                Some(url) => node.set_attr("src", url.as_str()),
                None => node.remove_from_parent(),
            }
        }
    }
}

fn with_fragment(url: &WebUrl, href: &str) -> String {
    match href.split_once('#') {
        Some((_, fragment))
            if fragment.bytes().all(|byte| byte.is_ascii_graphic() && !b"()<>\"".contains(&byte)) =>
        {
            format!("{url}#{fragment}")
        }
        _ => url.to_string(),
    }
}

/// Removes links without text and headings without text, which only scripts and styles give a meaning.
pub(super) fn remove_empty(root: &NodeRef<'_>) {
    let is_empty = |node: &NodeRef<'_>| {
        let is_candidate = ["a", "h1", "h2", "h3", "h4", "h5", "h6"].iter().any(|name| node.has_name(name));
        is_candidate
            && node.text().trim().is_empty()
            && !node.descendants_it().any(|child| child.has_name("img"))
    };
    let empty: Vec<NodeId> = root.descendants_it().filter(is_empty).map(|node| node.id).collect();
    for id in empty {
        NodeRef::new(id, root.tree).remove_from_parent();
    }
}
